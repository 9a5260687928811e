/* A server that listens and of which every thread, the first one too, waits on
 * a condition variable: the one that would have taken the connections has ended.
 * Nothing that happens outside can reach it. Its twin is idle_http.
 *
 * usage: lost_wakeup [THREADS]
 */
#include "scenario.h"
#include <arpa/inet.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 16) != 0) {
		perror("listen");
		return 1;
	}
	start_idle(argc > 1 ? atoi(argv[1]) : 20);
	ready();
	idle_thread(NULL);
	return 0;
}
