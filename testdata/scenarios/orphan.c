/* A thread waits for a mutex whose owner has ended with it, or, in the twins,
 * still lives:
 *
 *   ended     the owner is a thread that has ended (default)
 *   leader    the owner is the first thread, which has ended before the others
 *   process   the owner is a child process that has ended; the mutex is shared
 *   lives     the owner is a thread that sleeps, and then goes on
 *   handed    the owner is a new thread each time: each takes the mutex, starts
 *             the next, lets go and ends
 *
 * usage: orphan [MODE]
 */
#include "lockkinds.h"
#include <sys/wait.h>

static pthread_mutex_t *m;
static const char *mode = "ended";
static volatile pid_t waits;

static void *owner(void *unused)
{
	(void)unused;
	lock(m);
	if (strcmp(mode, "lives") == 0) {
		waits = tid_of_self();
		sleep_ms(200 * 1000);
		pthread_mutex_unlock(m);
	}
	return NULL;
}

static void *waiter(void *unused)
{
	(void)unused;
	waits = tid_of_self();
	lock(m);
	return NULL;
}

static void *hand_over(void *unused)
{
	pthread_t next;
	(void)unused;
	lock(m);
	while (pthread_create(&next, NULL, hand_over, NULL) != 0)
		sleep_ms(1);
	pthread_detach(next);
	pthread_mutex_unlock(m);
	return NULL;
}

static void *report(void *unused)
{
	(void)unused;
	wait_asleep(&waits);
	ready();
	stay();
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		mode = argv[1];
	const char *kind = strcmp(mode, "process") == 0 ? "pshared" : "";
	m = room(sizeof *m, kind);
	init_mutex(m, kind);
	if (strcmp(mode, "handed") == 0) {
		for (int i = 0; i < 4; i++)
			start(hand_over, NULL);
		ready();
		stay();
	}
	if (strcmp(mode, "leader") == 0) {
		lock(m);
		start(waiter, NULL);
		wait_asleep(&waits);
		start(report, NULL);
		pthread_exit(NULL);
	}
	if (strcmp(mode, "process") == 0) {
		pid_t child = fork();
		if (child == 0) {
			lock(m);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	} else if (strcmp(mode, "lives") == 0) {
		start(owner, NULL);
		wait_asleep(&waits);
		waits = 0;
	} else {
		CHECK(pthread_join(start(owner, NULL), NULL));
	}
	start(waiter, NULL);
	report(NULL);
}
