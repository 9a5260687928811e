/* Plain memory that looks like locks which a live thread holds. Threads wait on
 * it through syscall(2), as libraries do that bring locks of their own. Nothing
 * says that the thread whose ID stands there will end the wait.
 *
 * Prints "ready NAME=TID…", the threads that wait.
 */
#include "scenario.h"
#include <linux/futex.h>
#include <stdint.h>

struct wait {
	const char *name;
	uint32_t *word;
	int op;
	volatile pid_t tid;
};

static void *wait_for_change(void *arg)
{
	struct wait *w = arg;
	uint32_t value = *w->word;
	w->tid = tid_of_self();
	for (;;)
		syscall(SYS_futex, w->word, w->op, value, NULL, NULL, ~0);
	return NULL;
}

int main(void)
{
	uint32_t me = (uint32_t)tid_of_self();
	static uint32_t mutex[16], robust[16], rwlock[16], joined[16], musl[16], future[16];
	mutex[0] = 2, mutex[2] = me, mutex[3] = 1;
	robust[0] = me | FUTEX_WAITERS, robust[1] = 1, robust[2] = me, robust[3] = 1, robust[4] = 0x90;
	robust[6] = robust[8] = 8;
	rwlock[0] = 3, rwlock[2] = 3, rwlock[6] = me;
	joined[0] = me;
	musl[0] = 1, musl[1] = me | FUTEX_WAITERS, musl[2] = 1;
	future[0] = FUTEX_WAITERS;
	struct wait waits[] = {
		{ "mutex", mutex, FUTEX_WAIT_PRIVATE, 0 },
		{ "robust", robust, FUTEX_WAIT, 0 },
		{ "rwlock", rwlock + 2, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0 },
		{ "join", joined, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0 },
		{ "musl", musl + 1, FUTEX_WAIT_PRIVATE, 0 },
		{ "future", future, FUTEX_WAIT, 0 },
	};
	size_t n = sizeof waits / sizeof *waits;
	for (size_t i = 0; i < n; i++) {
		start(wait_for_change, &waits[i]);
		wait_asleep(&waits[i].tid);
	}
	printf("ready");
	for (size_t i = 0; i < n; i++)
		printf(" %s=%d", waits[i].name, (int)waits[i].tid);
	printf("\n");
	fflush(stdout);
	stay();
}
