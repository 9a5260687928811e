/* N processes (default 2) in a circle, on process-shared mutexes in shared
 * memory: each holds one and waits for the next one's. The parent prints "ready"
 * when all sleep.
 *
 * usage: pshared [N]
 */
#include "scenario.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define MOST 16

struct shared {
	pthread_mutex_t mutexes[MOST];
	pthread_barrier_t all_hold_one;
};

static int asleep(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	return state_in(path) == 'S';
}

static pid_t lock_both(struct shared *s, pthread_mutex_t *first, pthread_mutex_t *second)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_mutex_lock(first);
	pthread_barrier_wait(&s->all_hold_one);
	pthread_mutex_lock(second);
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 2;
	pid_t pids[MOST];
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;
	pthread_barrierattr_t battr;
	if (s == MAP_FAILED || n < 2 || n > MOST)
		return 1;
	CHECK(pthread_mutexattr_init(&attr));
	CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	for (int i = 0; i < n; i++)
		CHECK(pthread_mutex_init(&s->mutexes[i], &attr));
	CHECK(pthread_barrierattr_init(&battr));
	CHECK(pthread_barrierattr_setpshared(&battr, PTHREAD_PROCESS_SHARED));
	CHECK(pthread_barrier_init(&s->all_hold_one, &battr, n));
	for (int i = 0; i < n; i++)
		pids[i] = lock_both(s, &s->mutexes[i], &s->mutexes[(i + 1) % n]);
	/* Asleep in the barrier would not count: all locks must be wanted first. */
	for (int quiet = 0; quiet < 5; sleep_ms(5)) {
		int all = 1;
		for (int i = 0; i < n; i++)
			all = all && asleep(pids[i]) && s->mutexes[i].__data.__lock == 2;
		quiet = all ? quiet + 1 : 0;
	}
	ready();
	stay();
}
