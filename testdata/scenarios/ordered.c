/* The twin of abba that is healthy: N threads (default 131) fight over a few
 * mutexes, two at a time, always in the same order. At any instant many wait
 * for mutexes that others hold, and it never ends in a circle.
 *
 * usage: ordered [N]
 */
#include "scenario.h"

#define MUTEXES 8

static pthread_mutex_t mutexes[MUTEXES];
static volatile unsigned long work;
static pthread_barrier_t all_run;

static void *fight(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	pthread_barrier_wait(&all_run);
	for (;;) {
		int first = rand_r(&seed) % MUTEXES, second = rand_r(&seed) % MUTEXES;
		if (first == second)
			continue;
		if (first > second) {
			int other = first;
			first = second;
			second = other;
		}
		pthread_mutex_lock(&mutexes[first]);
		pthread_mutex_lock(&mutexes[second]);
		for (int i = 0; i < 2000; i++)
			work++;
		pthread_mutex_unlock(&mutexes[second]);
		pthread_mutex_unlock(&mutexes[first]);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 131;
	for (int i = 0; i < MUTEXES; i++)
		CHECK(pthread_mutex_init(&mutexes[i], NULL));
	CHECK(pthread_barrier_init(&all_run, NULL, n + 1));
	for (int i = 0; i < n; i++)
		start(fight, (void *)(size_t)(i + 1));
	pthread_barrier_wait(&all_run);
	ready();
	stay();
}
