/* Stands for a compiler: copied to a file called nvcc or cicc it has that name
 * in /proc.
 *
 * usage: compiler OUT [CHILD]
 *   OUT    the object file, to which it writes a little all the time
 *   CHILD  start this one and wait for it, as nvcc does with cicc
 */
#include "scenario.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc > 2) {
		pid_t child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			execl(argv[2], argv[2], argv[1], (char *)NULL);
			_exit(127);
		}
		return waitpid(child, NULL, 0) == child ? 0 : 1;
	}
	FILE *out = fopen(argv[1], "w");
	volatile double x = 1;
	for (long n = 0; out != NULL; n++) {
		x = x * 1.0000001 + 1e-9;
		if (n % 20000000 == 0) {
			fprintf(out, "%f\n", x);
			fflush(out);
		}
	}
	return 1;
}
