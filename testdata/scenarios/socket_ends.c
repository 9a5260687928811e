/* Waits at unix sockets and at TCP connections that stay on the machine.
 *
 * usage: socket_ends MODE
 *   read        two processes read, each from the other
 *   read-slow   the same, but one sleeps for an hour before it writes
 *   full        two processes write, each to the other, and their buffers are full
 *   full-slow   the same, but one sleeps for an hour before it reads
 *   datagram    as read, with datagrams
 *   timeout     as read, but with a time-out of an hour on the sockets
 *   tcp         two processes read, each from the other, through TCP
 *   tcp-slow    the same, but one sleeps for an hour before it reads
 *   tcp-trickle the same, but another thread of one sends 3 KB every 5 s
 *   tcp-timeout as tcp, but with a time-out of an hour on the sockets
 *   tcp-self    one process reads from a TCP connection to itself that it does
 *               not accept
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

static struct sockaddr_in at = { .sin_family = AF_INET };

static int listens(void)
{
	socklen_t size = sizeof at;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(l, (void *)&at, size) != 0 || listen(l, 1) != 0 || getsockname(l, (void *)&at, &size) != 0)
		exit(1);
	return l;
}

static int connects(void)
{
	int c = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(c, (void *)&at, sizeof at) != 0)
		exit(1);
	return c;
}

static void *trickles(void *fd)
{
	char block[3072] = { 0 };
	for (;;) {
		sleep_ms(5000);
		if (write(*(int *)fd, block, sizeof block) < 0)
			return NULL;
	}
}

/* drain reads for ever. */
static void drain(int fd)
{
	char block[4096];
	while (recv(fd, block, sizeof block, 0) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "read";
	int s[2], slow = strstr(mode, "-slow") != NULL;
	if (strcmp(mode, "tcp-self") == 0) {
		IN_CHILD(listens(); use(connects(), -1, mode));
		ready_when_asleep();
	}
	if (strncmp(mode, "tcp", 3) == 0) {
		int l = listens();
		s[0] = connects();
		s[1] = accept(l, NULL, NULL);
		close(l);
		if (s[1] < 0)
			return 1;
	} else if (socketpair(AF_UNIX, strcmp(mode, "datagram") == 0 ? SOCK_DGRAM : SOCK_STREAM, 0, s) != 0)
		return 1;
	if (strstr(mode, "timeout") != NULL) {
		struct timeval hour = { 3600, 0 };
		if (setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour) != 0 ||
		    setsockopt(s[1], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour) != 0)
			return 1;
	}
	if (strcmp(mode, "tcp-trickle") == 0) {
		pthread_t t;
		IN_CHILD(close(s[1]); drain(s[0]));
		IN_CHILD(close(s[0]); pthread_create(&t, NULL, trickles, &s[1]); drain(s[1]));
		close(s[0]), close(s[1]);
		ready_when_asleep();
	}
	IN_CHILD(use(s[0], s[1], mode));
	IN_CHILD(if (slow) sleep_ms(3600 * 1000); use(s[1], s[0], mode));
	close(s[0]), close(s[1]);
	ready_when_asleep();
}
