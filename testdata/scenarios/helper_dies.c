/* A server and its helper at the two ends of a socket. The helper waits until
 * the server's standard input gives a byte, and then takes HELPER_MIB mebibytes
 * (an environment variable, as the command line is made to look like an
 * engine's). Nobody reaps it. The server waits for it at the socket for ever.
 *
 * usage: helper_dies ...      prints "ready PID-OF-THE-HELPER"
 */
#include "scenario.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static int ends[2];

static void *wait_for_helper(void *unused)
{
	(void)unused;
	char byte;
	while (recv(ends[0], &byte, 1, 0) != 1)
		pause(); /* its end is held open here too: no end of file */
	return NULL;
}

static void helper(void)
{
	char byte;
	long mib = atol(getenv("HELPER_MIB"));
	if (recv(3, &byte, 1, 0) != 1)
		_exit(1);
	for (long i = 0; i < mib; i++) {
		char *m = malloc(1 << 20);
		memset(m, 1, 1 << 20);
	}
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	(void)argc;
	if (strncmp(argv[0], "VLLM::", 6) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* never outlive the server */
		helper();
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 3);
		char *titled[] = { "VLLM::EngineCore", NULL };
		execv("/proc/self/exe", titled);
		_exit(1);
	}
	start(wait_for_helper, NULL);
	dprintf(1, "ready %d\n", (int)pid);
	struct pollfd in = { .fd = 0, .events = POLLIN };
	char byte;
	while (poll(&in, 1, 300 * 1000) > 0) {
		if (read(0, &byte, 1) <= 0)
			break;
		if (send(ends[0], &byte, 1, 0) != 1)
			break;
	}
	kill(pid, SIGKILL);
	_exit(0);
}
