/* Mutexes of every kind, by the names that the scenarios take as arguments:
 * words joined by "-", such as "pshared-robust". */
#include "scenario.h"
#include <sys/mman.h>

static int has(const char *kind, const char *word)
{
	size_t n = strlen(word);
	for (const char *at = kind; (at = strstr(at, word)) != NULL; at += n)
		if ((at == kind || at[-1] == '-') && (at[n] == 0 || at[n] == '-'))
			return 1;
	return 0;
}

/* A mutex that cannot be made here: says so, and the test is skipped. */
static void cannot(const char *what, int error)
{
	printf("cannot: %s: %s\n", what, strerror(error));
	exit(0);
}

#ifdef __GLIBC__
/* A priority ceiling is for real-time threads; those started later inherit it. */
static void protect(pthread_mutexattr_t *attr)
{
	struct sched_param low = { .sched_priority = 1 };
	CHECK(pthread_mutexattr_setprotocol(attr, PTHREAD_PRIO_PROTECT));
	CHECK(pthread_mutexattr_setprioceiling(attr, 2));
	if (sched_setscheduler(0, SCHED_FIFO, &low) != 0)
		cannot("sched_setscheduler", errno);
}
#endif

static void init_mutex(pthread_mutex_t *m, const char *kind)
{
	pthread_mutexattr_t attr;
	CHECK(pthread_mutexattr_init(&attr));
	if (has(kind, "normal"))
		CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_NORMAL));
	if (has(kind, "recursive"))
		CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
	if (has(kind, "errorcheck"))
		CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
	if (has(kind, "robust"))
		CHECK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	if (has(kind, "pi"))
		CHECK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
	if (has(kind, "pshared"))
		CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
#ifdef __GLIBC__
	if (has(kind, "adaptive"))
		CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP));
	if (has(kind, "protect"))
		protect(&attr);
#else
	if (has(kind, "adaptive") || has(kind, "protect"))
		cannot(kind, ENOTSUP);
#endif
	int error = pthread_mutex_init(m, &attr);
	if (error != 0)
		cannot("pthread_mutex_init", error);
}

/* Takes a mutex whose owner may have ended. */
static void lock(pthread_mutex_t *m)
{
	int error = pthread_mutex_lock(m);
	if (error == EPERM || error == EINVAL)
		cannot("pthread_mutex_lock", error);
	if (error != 0 && error != EOWNERDEAD) {
		fprintf(stderr, "pthread_mutex_lock: %s\n", strerror(error));
		exit(1);
	}
}

/* Shared memory for what process-shared mutexes are meant to lie in, private
 * memory for the others. */
static void *room(size_t size, const char *kind)
{
	int flags = MAP_ANONYMOUS | (has(kind, "pshared") ? MAP_SHARED : MAP_PRIVATE);
	void *m = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (m == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return m;
}
