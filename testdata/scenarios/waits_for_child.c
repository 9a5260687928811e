/* A process waits for its child to end, and the child for its parent.
 *
 * usage: waits_for_child MODE
 *   pid        waitpid(child), and the child reads a pipe whose only write end
 *              the parent has
 *   any        the same with wait()
 *   group      the same with waitid(P_PGID), the child being in a group of its own
 *   pidfd      the same with waitid(P_PIDFD)
 *   sleeps     waitpid(child), and the child sleeps for an hour
 *   other      waitpid for a child that sleeps for an hour; another one reads
 *   stopped    waitid for the child to be stopped
 */
#include "scenario.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "children.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static pid_t child(int *p, int sleeps)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	char byte;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(p[1]);
	if (sleeps)
		sleep_ms(3600 * 1000);
	_exit(read(p[0], &byte, 1) == 0);
}

static void parent(const char *mode)
{
	int p[2];
	siginfo_t info;
	if (pipe(p) != 0)
		exit(1);
	pid_t pid = child(p, strcmp(mode, "sleeps") == 0 || strcmp(mode, "other") == 0);
	if (strcmp(mode, "other") == 0)
		child(p, 0);
	close(p[0]);
	setpgid(pid, pid);
	if (strcmp(mode, "any") == 0)
		wait(NULL);
	else if (strcmp(mode, "group") == 0)
		waitid(P_PGID, (id_t)pid, &info, WEXITED);
	else if (strcmp(mode, "pidfd") == 0)
		waitid(P_PIDFD, (id_t)syscall(SYS_pidfd_open, pid, 0), &info, WEXITED);
	else if (strcmp(mode, "stopped") == 0)
		waitid(P_PID, (id_t)pid, &info, WSTOPPED);
	else
		waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "pid";
	IN_CHILD(parent(mode));
	ready_when_asleep();
}
