/* A process is forked while one of its threads holds a mutex, and the child
 * waits for its copy, which nobody can release. What the parent does then is
 * the mode:
 *
 *   waits     it waits for the child to end
 *   sleeps    it sleeps, as a supervisor does
 *   own       a twin: the child made the mutex anew, a thread of its own holds
 *             it, sleeps, and then lets go
 *
 * A mutex with priority inheritance is none for this: the kernel refuses the
 * child, and glibc aborts.
 *
 * usage: forked KIND MODE
 *
 * Prints "ready PID TID": the child, and the parent's thread that owns.
 */
#include "lockkinds.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static pthread_mutex_t *m;
static volatile pid_t owns;

static void *owner(void *unused)
{
	(void)unused;
	lock(m);
	owns = tid_of_self();
	sleep_ms(200 * 1000);
	pthread_mutex_unlock(m);
	return NULL;
}

static void child(const char *kind, const char *mode, int parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(mode, "own") == 0) {
		owns = 0;
		init_mutex(m, kind);
		start(owner, NULL);
		wait_asleep(&owns);
	}
	if (write(parent, "", 1) == 1)
		lock(m);
	_exit(0);
}

static int asleep(pid_t pid)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
	read_proc(path, text, sizeof text);
	return atoi(text) == SYS_futex;
}

int main(int argc, char **argv)
{
	int said[2];
	char byte;
	if (argc != 3 || pipe(said) != 0)
		return 2;
	m = room(sizeof *m, argv[1]);
	init_mutex(m, argv[1]);
	start(owner, NULL);
	wait_asleep(&owns);
	pid_t pid = fork();
	if (pid == 0)
		child(argv[1], argv[2], said[1]);
	if (read(said[0], &byte, 1) != 1)
		return 1;
	for (int try = 0; !asleep(pid); sleep_ms(1))
		if (++try == 10000 || waitpid(pid, NULL, WNOHANG) != 0) {
			fprintf(stderr, "the child does not wait\n");
			return 1;
		}
	printf("ready %d %d\n", (int)pid, (int)owns);
	fflush(stdout);
	if (strcmp(argv[2], "waits") == 0)
		waitpid(pid, NULL, 0);
	stay();
}
