/* Two threads lock two mutexes in opposite order and wait for each other for
 * ever; N more (default 129) wait on a condition variable and are innocent.
 * "undumpable" forbids other processes of the same user to look inside.
 *
 * usage: abba [N [undumpable]]
 */
#include "scenario.h"
#include <sys/prctl.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold_one;
static volatile pid_t tid_ab, tid_ba;

static void *ab(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&a);
	pthread_barrier_wait(&both_hold_one);
	tid_ab = tid_of_self();
	pthread_mutex_lock(&b);
	return NULL;
}

static void *ba(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&b);
	pthread_barrier_wait(&both_hold_one);
	tid_ba = tid_of_self();
	pthread_mutex_lock(&a);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[2], "undumpable"))
		prctl(PR_SET_DUMPABLE, 0);
	start_idle(argc > 1 ? atoi(argv[1]) : 129);
	CHECK(pthread_barrier_init(&both_hold_one, NULL, 2));
	start(ab, NULL);
	start(ba, NULL);
	wait_asleep(&tid_ab);
	wait_asleep(&tid_ba);
	ready();
	stay();
}
