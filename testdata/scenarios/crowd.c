/* N processes that hold M descriptors each and do nothing, as on a busy host:
 * files, pipes and sockets by turns.
 *
 * usage: crowd [N [M]]
 */
#include "scenario.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static void hold(int m)
{
	for (int i = 0; i < m;) {
		int p[2];
		if (i % 6 == 0 ? pipe(p) : i % 6 == 2 ? socketpair(AF_UNIX, SOCK_STREAM, 0, p) : -1)
			i += open("/proc/self/exe", O_RDONLY) >= 0;
		else
			i += 2;
	}
	sleep_ms(300 * 1000);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 300, m = argc > 2 ? atoi(argv[2]) : 20;
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			hold(m);
			_exit(0);
		}
	sleep_ms(300);
	ready();
	stay();
}
