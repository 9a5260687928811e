/* Two threads and two rwlocks. The first writes in a and waits for b; what the
 * second holds and does is the mode:
 *
 *   writers        it writes in b and wants to write in a
 *   reader-writer  it writes in b and wants to read a
 *   sleeps         it writes in b and sleeps for a while
 *   reads          it reads b and sleeps for a while: nobody can say who holds b
 *
 * usage: rwlocks MODE [pshared]
 *
 * Prints "ready TID TID", the first thread's first.
 */
#include "scenario.h"

static pthread_rwlock_t a, b;
static const char *mode;
static pthread_barrier_t hold_one;
static volatile pid_t tid_first, tid_second;

static void *first(void *unused)
{
	(void)unused;
	pthread_rwlock_wrlock(&a);
	pthread_barrier_wait(&hold_one);
	tid_first = tid_of_self();
	pthread_rwlock_wrlock(&b);
	return NULL;
}

static void *second(void *unused)
{
	(void)unused;
	if (strcmp(mode, "reads") == 0)
		pthread_rwlock_rdlock(&b);
	else
		pthread_rwlock_wrlock(&b);
	pthread_barrier_wait(&hold_one);
	tid_second = tid_of_self();
	if (strcmp(mode, "writers") == 0)
		pthread_rwlock_wrlock(&a);
	else if (strcmp(mode, "reader-writer") == 0)
		pthread_rwlock_rdlock(&a);
	else
		sleep_ms(200 * 1000);
	pthread_rwlock_unlock(&b);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_rwlockattr_t attr;
	if (argc < 2)
		return 2;
	mode = argv[1];
	CHECK(pthread_rwlockattr_init(&attr));
	if (argc > 2)
		CHECK(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK(pthread_rwlock_init(&a, &attr));
	CHECK(pthread_rwlock_init(&b, &attr));
	CHECK(pthread_barrier_init(&hold_one, NULL, 2));
	start(first, NULL);
	start(second, NULL);
	wait_asleep(&tid_first);
	wait_asleep(&tid_second);
	printf("ready %d %d\n", (int)tid_first, (int)tid_second);
	fflush(stdout);
	stay();
}
