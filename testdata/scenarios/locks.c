/* Two threads and two mutexes of one kind. The first holds a and waits for b,
 * which the second holds; what the second does then is the mode:
 *
 *   abba      it waits for a, and neither ever goes on
 *   sleeps    it sleeps for a while, and then goes on
 *   timed     it waits for a, and will give up
 *   tries     it asks for a again and again, and will give up
 *
 * usage: locks KIND MODE      (kinds: see lockkinds.h)
 *
 * Prints "ready TID TID", the first thread's first.
 */
#include "lockkinds.h"

struct both {
	pthread_mutex_t a, b;
};

static struct both *both;
static const char *mode;
static pthread_barrier_t hold_one;
static volatile pid_t tid_first, tid_second;

static void *first(void *unused)
{
	(void)unused;
	lock(&both->a);
	pthread_barrier_wait(&hold_one);
	tid_first = tid_of_self();
	lock(&both->b);
	return NULL;
}

static void *second(void *unused)
{
	struct timespec late;
	(void)unused;
	lock(&both->b);
	pthread_barrier_wait(&hold_one);
	tid_second = tid_of_self();
	clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += 200;
	if (strcmp(mode, "sleeps") == 0)
		sleep_ms(200 * 1000);
	else if (strcmp(mode, "timed") == 0)
		pthread_mutex_timedlock(&both->a, &late);
	else if (strcmp(mode, "tries") == 0)
		for (int i = 0; i < 200 * 1000 && pthread_mutex_trylock(&both->a) != 0; i++)
			sleep_ms(1);
	else
		lock(&both->a);
	pthread_mutex_unlock(&both->b);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	mode = argv[2];
	both = room(sizeof *both, argv[1]);
	init_mutex(&both->a, argv[1]);
	init_mutex(&both->b, argv[1]);
	CHECK(pthread_barrier_init(&hold_one, NULL, 2));
	start(first, NULL);
	start(second, NULL);
	wait_asleep(&tid_first);
	wait_asleep(&tid_second);
	printf("ready %d %d\n", (int)tid_first, (int)tid_second);
	fflush(stdout);
	stay();
}
