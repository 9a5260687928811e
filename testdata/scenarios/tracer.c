/* Traces another process, as a debugger does.
 *
 * usage: tracer PID stops     stops it and keeps it so
 *        tracer PID watches   only attaches; its threads go on
 */
#include "scenario.h"
#include <sys/ptrace.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	pid_t pid = atoi(argv[1]);
	int stops = strcmp(argv[2], "stops") == 0, status;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 ||
	    (stops && (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, &status, __WALL) != pid))) {
		perror("ptrace");
		return 1;
	}
	ready();
	stay();
}
