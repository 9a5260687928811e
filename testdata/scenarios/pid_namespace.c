/* abba in a PID namespace of its own, where thread IDs are small numbers: the
 * child prints "ready" for both. Needs CAP_SYS_ADMIN; prints "cannot" without.
 *
 * usage: pid_namespace PATH-OF-ABBA [ARGUMENT]     (or of another scenario)
 */
#include "scenario.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
		printf("cannot: %s\n", strerror(errno));
		return 0;
	}
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* As in a container, /proc is the namespace's own. */
		if (mount("proc", "/proc", "proc", 0, NULL) != 0) {
			printf("cannot: %s\n", strerror(errno));
			return 0;
		}
		execl(argv[1], argv[1], argc > 2 ? argv[2] : "3", NULL);
		_exit(127);
	}
	waitpid(child, NULL, 0);
	return 0;
}
