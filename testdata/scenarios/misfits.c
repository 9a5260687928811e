/* Healthy programs that read like a thread which waits for its own mutex.
 *
 *   namespaces  two processes, each the first of a PID namespace of its own,
 *               share a mutex: both owners are called 1 (needs CAP_SYS_ADMIN)
 *   raw-clone   a child made by clone(2) without glibc holds a shared mutex; in
 *               its memory glibc still has the parent's thread ID
 *   event       a thread parks on its own normal mutex until another unlocks it,
 *               which POSIX forbids and glibc lets happen
 *
 * usage: misfits MODE
 */
#include "scenario.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static pthread_mutex_t *shared;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static volatile pid_t parked;

static void hold(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_mutex_lock(shared);
	sleep_ms(3600 * 1000);
}

static void in_namespace(void (*then)(void))
{
	int before = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (before < 0 || unshare(CLONE_NEWPID) != 0) {
		printf("cannot: unshare: %s\n", strerror(errno));
		exit(0);
	}
	if (fork() == 0)
		then();
	setns(before, CLONE_NEWPID);
	close(before);
	sleep_ms(300);
}

static void wait_for_it(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_mutex_lock(shared);
}

static void *park(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&own);
	parked = tid_of_self();
	for (;;)
		pthread_mutex_lock(&own);
	return NULL;
}

static void *unpark(void *unused)
{
	(void)unused;
	for (;;) {
		sleep_ms(200);
		pthread_mutex_unlock(&own);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attr;
	const char *mode = argc > 1 ? argv[1] : "";
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(pthread_mutexattr_init(&attr));
	CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK(pthread_mutex_init(shared, &attr));
	if (!strcmp(mode, "namespaces")) {
		in_namespace(hold);
		in_namespace(wait_for_it);
	} else if (!strcmp(mode, "raw-clone")) {
		if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0)
			hold();
		sleep_ms(300);
		ready();
		pthread_mutex_lock(shared);
	} else {
		start(park, NULL);
		wait_asleep(&parked);
		start(unpark, NULL);
	}
	ready();
	stay();
}
