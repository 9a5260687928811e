/* Waits at unix sockets.
 *
 * usage: socket_ends MODE
 *   read        two processes read, each from the other
 *   read-slow   the same, but one sleeps for an hour before it writes
 *   full        two processes write, each to the other, and their buffers are full
 *   full-slow   the same, but one sleeps for an hour before it reads
 *   datagram    as read, with datagrams
 *   timeout     as read, but with a time-out of an hour on the sockets
 *   tcp         one process reads from a TCP connection to itself
 */
#include "scenario.h"
#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "children.h"

static void use(int fd, int other, const char *mode)
{
	char block[4096] = { 0 };
	close(other);
	if (strncmp(mode, "full", 4) == 0)
		while (write(fd, block, sizeof block) > 0)
			;
	else if (recv(fd, block, 1, 0) < 0)
		perror("recv");
}

static void tcp(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (void *)&a, size) != 0 || listen(l, 1) != 0 || getsockname(l, (void *)&a, &size) != 0 ||
	    connect(c, (void *)&a, size) != 0)
		exit(1);
	use(c, -1, "read");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "read";
	int s[2], slow = strstr(mode, "-slow") != NULL;
	if (strcmp(mode, "tcp") == 0) {
		IN_CHILD(tcp());
		ready_when_asleep();
	}
	if (socketpair(AF_UNIX, strcmp(mode, "datagram") == 0 ? SOCK_DGRAM : SOCK_STREAM, 0, s) != 0)
		return 1;
	if (strcmp(mode, "timeout") == 0) {
		struct timeval hour = { 3600, 0 };
		if (setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour) != 0 ||
		    setsockopt(s[1], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour) != 0)
			return 1;
	}
	IN_CHILD(use(s[0], s[1], mode));
	IN_CHILD(if (slow) sleep_ms(3600 * 1000); use(s[1], s[0], mode));
	close(s[0]), close(s[1]);
	ready_when_asleep();
}
