/* What all scenarios share: each gets into its position, prints a line that
 * begins with "ready" (see ready below), and stays there until its standard input ends, or for
 * 300 s so that a forgotten one does not stay for ever.
 *
 * Build: cc -O1 -pthread -o abba abba.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call)                                                            \
	do {                                                                   \
		int check_error = (call);                                      \
		if (check_error != 0) {                                        \
			fprintf(stderr, "%s: %s\n", #call, strerror(check_error)); \
			exit(1);                                               \
		}                                                              \
	} while (0)

static inline pid_t tid_of_self(void) { return (pid_t)syscall(SYS_gettid); }

static inline void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

/* Reads the first bytes of a file of /proc; "" if it is not there. */
static inline void read_proc(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
}

/* The state letter in a stat file, '-' if it is not there. */
static inline char state_in(const char *path)
{
	char text[512];
	read_proc(path, text, sizeof text);
	char *end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end[2] : '-';
}

/* Waits until a thread of this process sleeps in the kernel. The thread says
 * itself when it is about to go there; this sees it arrive. */
static inline void wait_asleep(volatile pid_t *tid)
{
	for (int try = 0; try < 10000; try++, sleep_ms(1)) {
		char path[64];
		if (*tid == 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)*tid);
		if (state_in(path) == 'S')
			return;
	}
	fprintf(stderr, "thread %d did not fall asleep\n", (int)*tid);
	exit(1);
}

/* Says that the position is reached: on standard output, or, where that is a
 * log, on the descriptor named by READY_FD. */
static inline void ready(void)
{
	const char *fd = getenv("READY_FD");
	dprintf(fd ? atoi(fd) : 1, "ready\n");
}

/* Stays until standard input ends. The main thread waits in poll: for the
 * outside world, not for another thread. */
static inline void stay(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char byte;
	while (poll(&in, 1, 300 * 1000) > 0)
		if (read(0, &byte, 1) <= 0)
			break;
	_exit(0);
}

/* A thread with a small stack, so that thousands fit. */
static inline pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	CHECK(pthread_attr_init(&attr));
	CHECK(pthread_attr_setstacksize(&attr, 64 * 1024));
	CHECK(pthread_create(&thread, &attr, run, arg));
	CHECK(pthread_attr_destroy(&attr));
	return thread;
}

/* Threads that wait for work that never comes, as the pools of a server do. */
static pthread_mutex_t idle_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle_work = PTHREAD_COND_INITIALIZER;
static int idle_waiting;

static inline void *idle_thread(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&idle_mutex);
	idle_waiting++;
	for (;;)
		pthread_cond_wait(&idle_work, &idle_mutex);
	return NULL;
}

static inline void start_idle(int n)
{
	for (int i = 0; i < n; i++)
		start(idle_thread, NULL);
	for (int waiting = 0; waiting < n; sleep_ms(1)) {
		pthread_mutex_lock(&idle_mutex);
		waiting = idle_waiting; /* the mutex is free: they are in the wait */
		pthread_mutex_unlock(&idle_mutex);
	}
}
