/* N threads (default 3) in a circle: each holds one mutex and waits for the
 * next one's. Several numbers make several circles at once.
 *
 * usage: cycle [N...]
 */
#include "scenario.h"

struct circle {
	int n;
	pthread_mutex_t *mutexes;
	volatile pid_t *tids;
	pthread_barrier_t all_hold_one;
};

struct place {
	struct circle *circle;
	int i;
};

static void *hold_and_want(void *arg)
{
	struct circle *c = ((struct place *)arg)->circle;
	int i = ((struct place *)arg)->i;
	pthread_mutex_lock(&c->mutexes[i]);
	pthread_barrier_wait(&c->all_hold_one);
	c->tids[i] = tid_of_self();
	pthread_mutex_lock(&c->mutexes[(i + 1) % c->n]);
	return NULL;
}

static void make(int n)
{
	struct circle *c = calloc(1, sizeof *c);
	struct place *places = calloc(n, sizeof *places);
	c->n = n;
	c->mutexes = calloc(n, sizeof *c->mutexes);
	c->tids = calloc(n, sizeof *c->tids);
	CHECK(pthread_barrier_init(&c->all_hold_one, NULL, n));
	for (int i = 0; i < n; i++) {
		CHECK(pthread_mutex_init(&c->mutexes[i], NULL));
		places[i] = (struct place){ c, i };
	}
	for (int i = 0; i < n; i++)
		start(hold_and_want, &places[i]);
	for (int i = 0; i < n; i++)
		wait_asleep(&c->tids[i]);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		make(3);
	for (int i = 1; i < argc; i++)
		make(atoi(argv[i]));
	ready();
	stay();
}
