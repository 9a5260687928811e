/* N threads (default 3) in a circle: each holds one mutex and waits for the
 * next one's.
 *
 * usage: cycle [N]
 */
#include "scenario.h"

static pthread_mutex_t *mutexes;
static volatile pid_t *tids;
static int n = 3;
static pthread_barrier_t all_hold_one;

static void *hold_and_want(void *arg)
{
	int i = (int)(size_t)arg;
	pthread_mutex_lock(&mutexes[i]);
	pthread_barrier_wait(&all_hold_one);
	tids[i] = tid_of_self();
	pthread_mutex_lock(&mutexes[(i + 1) % n]);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		n = atoi(argv[1]);
	mutexes = calloc(n, sizeof *mutexes);
	tids = calloc(n, sizeof *tids);
	CHECK(pthread_barrier_init(&all_hold_one, NULL, n));
	for (int i = 0; i < n; i++)
		CHECK(pthread_mutex_init(&mutexes[i], NULL));
	for (int i = 0; i < n; i++)
		start(hold_and_want, (void *)(size_t)i);
	for (int i = 0; i < n; i++)
		wait_asleep(&tids[i]);
	ready();
	stay();
}
