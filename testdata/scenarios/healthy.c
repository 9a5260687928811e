/* Healthy programs under load. At any instant threads wait for locks that
 * others hold; none of them is ever dead.
 *
 * usage: healthy mutexes | recursive | errorcheck | robust | pi | shared
 *                | conditions | rwlocks | semaphores | joins | pipes | timed
 *                | connections
 */
#include "scenario.h"
#include <semaphore.h>
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define LOCKS 6
#define THREADS 24

static pthread_mutex_t *mutexes;
static pthread_rwlock_t rwlocks[LOCKS];
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int queued;
static sem_t slots, items;
static int pipe_fds[2];
static volatile unsigned long work;
static int recursive, timed;

static void some_work(unsigned *seed)
{
	int n = 200 + rand_r(seed) % 3000;
	for (int i = 0; i < n; i++)
		work++;
	if (rand_r(seed) % 8 == 0)
		sleep_ms(rand_r(seed) % 3);
}

static void lock(pthread_mutex_t *m)
{
	if (timed) {
		struct timespec t;
		do {
			clock_gettime(CLOCK_REALTIME, &t);
			t.tv_sec += 5;
		} while (pthread_mutex_timedlock(m, &t) != 0);
	} else
		pthread_mutex_lock(m);
	if (recursive)
		pthread_mutex_lock(m);
}

static void unlock(pthread_mutex_t *m)
{
	if (recursive)
		pthread_mutex_unlock(m);
	pthread_mutex_unlock(m);
}

static void two(unsigned *seed, int *first, int *second)
{
	do {
		*first = rand_r(seed) % LOCKS;
		*second = rand_r(seed) % LOCKS;
	} while (*first >= *second);
}

static void *fight_mutexes(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	for (int first, second;;) {
		two(&seed, &first, &second);
		lock(&mutexes[first]);
		lock(&mutexes[second]);
		some_work(&seed);
		unlock(&mutexes[second]);
		unlock(&mutexes[first]);
		if (rand_r(&seed) % 4 == 0)
			sleep_ms(1);
	}
	return NULL;
}

static void *fight_rwlocks(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	for (int first, second;;) {
		two(&seed, &first, &second);
		for (int *l = &first; l; l = l == &first ? &second : NULL)
			if (rand_r(&seed) % 3)
				pthread_rwlock_rdlock(&rwlocks[*l]);
			else
				pthread_rwlock_wrlock(&rwlocks[*l]);
		some_work(&seed);
		pthread_rwlock_unlock(&rwlocks[second]);
		pthread_rwlock_unlock(&rwlocks[first]);
		sleep_ms(rand_r(&seed) % 2);
	}
	return NULL;
}

static void *produce(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	for (;;) {
		pthread_mutex_lock(&queue_mutex);
		while (queued == 4)
			pthread_cond_wait(&not_full, &queue_mutex);
		queued++;
		pthread_cond_signal(&not_empty);
		pthread_mutex_unlock(&queue_mutex);
		some_work(&seed);
	}
	return NULL;
}

static void *consume(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	for (;;) {
		pthread_mutex_lock(&queue_mutex);
		while (queued == 0)
			pthread_cond_wait(&not_empty, &queue_mutex);
		queued--;
		pthread_cond_signal(&not_full);
		pthread_mutex_unlock(&queue_mutex);
		some_work(&seed);
	}
	return NULL;
}

static void *post(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	for (;;) {
		sem_wait(&slots);
		some_work(&seed);
		sem_post(&items);
	}
	return NULL;
}

static void *take(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	for (;;) {
		sem_wait(&items);
		some_work(&seed);
		sem_post(&slots);
	}
	return NULL;
}

static void *short_life(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	some_work(&seed);
	sleep_ms(rand_r(&seed) % 5);
	return NULL;
}

static void *joins(void *arg)
{
	for (size_t n = (size_t)arg;; n++)
		pthread_join(start(short_life, (void *)n), NULL);
	return NULL;
}

static void *writes(void *arg)
{
	static char bytes[3000];
	unsigned seed = (unsigned)(size_t)arg;
	for (;;) {
		if (write(pipe_fds[1], bytes, sizeof bytes) < 0)
			exit(1);
		some_work(&seed);
	}
	return NULL;
}

static void *reads(void *arg)
{
	static char bytes[3000];
	unsigned seed = (unsigned)(size_t)arg;
	for (;;) {
		if (read(pipe_fds[0], bytes, sizeof bytes) < 0)
			exit(1);
		some_work(&seed);
	}
	return NULL;
}

static void threads(void *(*a)(void *), void *(*b)(void *))
{
	for (size_t i = 0; i < THREADS; i++)
		start(i % 2 ? a : b, (void *)(i + 1 + getpid()));
}

/* answers sends back each byte that comes; the other end begins. */
static void answers(int fd, int begins)
{
	unsigned seed = (unsigned)getpid();
	char byte = 0;
	if (begins && write(fd, &byte, 1) != 1)
		return;
	while (read(fd, &byte, 1) == 1) {
		some_work(&seed);
		if (write(fd, &byte, 1) != 1)
			return;
	}
}

/* Six pairs of processes, each of one thread, that answer each other over TCP. */
static void connections(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (void *)&a, size) != 0 || listen(l, 8) != 0 || getsockname(l, (void *)&a, &size) != 0)
		exit(1);
	for (int pair = 0; pair < 6; pair++) {
		int c = socket(AF_INET, SOCK_STREAM, 0), s;
		if (connect(c, (void *)&a, size) != 0 || (s = accept(l, NULL, NULL)) < 0)
			exit(1);
		for (int end = 0; end < 2; end++)
			if (fork() == 0) {
				prctl(PR_SET_PDEATHSIG, 9);
				close(l), close(end ? c : s);
				answers(end ? s : c, end);
				_exit(0);
			}
		close(c), close(s);
	}
	close(l);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "mutexes";
	pthread_mutexattr_t attr;
	CHECK(pthread_mutexattr_init(&attr));
	int shared = !strcmp(kind, "shared");
	recursive = !strcmp(kind, "recursive");
	timed = !strcmp(kind, "timed");
	if (recursive)
		CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
	if (!strcmp(kind, "errorcheck"))
		CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
	if (!strcmp(kind, "robust"))
		CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	if (!strcmp(kind, "pi"))
		CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
	if (shared)
		CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	mutexes = mmap(NULL, LOCKS * sizeof *mutexes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
	for (int i = 0; i < LOCKS; i++) {
		CHECK(pthread_mutex_init(&mutexes[i], &attr));
		CHECK(pthread_rwlock_init(&rwlocks[i], NULL));
	}
	sem_init(&slots, 0, 3);
	sem_init(&items, 0, 0);
	if (!strcmp(kind, "conditions"))
		threads(produce, consume);
	else if (!strcmp(kind, "rwlocks"))
		threads(fight_rwlocks, fight_rwlocks);
	else if (!strcmp(kind, "semaphores"))
		threads(post, take);
	else if (!strcmp(kind, "joins"))
		threads(joins, joins);
	else if (!strcmp(kind, "connections"))
		connections();
	else if (!strcmp(kind, "pipes")) {
		CHECK(pipe(pipe_fds));
		if (fork() == 0) {
			for (size_t i = 0; i < 4; i++)
				start(writes, (void *)i);
			stay();
		}
		for (size_t i = 0; i < 4; i++)
			start(reads, (void *)i);
	} else {
		if (shared && fork() == 0) {
			threads(fight_mutexes, fight_mutexes);
			stay();
		}
		threads(fight_mutexes, fight_mutexes);
	}
	sleep_ms(50);
	ready();
	stay();
}
