/* Threads that live for an instant, about N a second (default 10,000): a
 * reader of /proc/PID/task meets threads that end while it reads them.
 *
 * usage: churn [N]
 */
#include "scenario.h"

static long per_second = 10000;

static void *live_briefly(void *unused)
{
	return unused;
}

static void *make_threads(void *unused)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	for (long made = 0;; made++) {
		pthread_t thread = start(live_briefly, NULL);
		pthread_join(thread, NULL);
		if (made % 10 == 9) { /* ten at a time, then wait for the clock */
			t.tv_nsec += 10 * (1000000000L / per_second);
			while (t.tv_nsec >= 1000000000L) {
				t.tv_nsec -= 1000000000L;
				t.tv_sec++;
			}
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		}
	}
	return unused;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		per_second = atol(argv[1]);
	start(make_threads, NULL);
	ready();
	stay();
}
