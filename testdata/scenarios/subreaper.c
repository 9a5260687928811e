/* Runs a program as an init does: its orphans become children of this process,
 * which calls itself "tini". It ends when standard input does; its orphans are for
 * the test to end.
 *
 * usage: subreaper PROGRAM [ARGUMENT...]
 */
#include "scenario.h"
#include <sys/prctl.h>
#include <sys/wait.h>

static void *reaps(void *unused)
{
	(void)unused;
	for (;;)
		if (waitpid(-1, NULL, 0) < 0)
			sleep_ms(100);
	return NULL;
}

int main(int argc, char **argv)
{
	char byte;
	if (argc < 2 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		return 1;
	prctl(PR_SET_NAME, "tini");
	if (fork() == 0) {
		execvp(argv[1], argv + 1);
		_exit(1);
	}
	start(reaps, NULL);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
