/* Waits at pipes and FIFOs.
 *
 * usage: pipe_ends MODE [N | FIFO FIFO]
 *   self          one process reads a pipe whose only write end it has itself
 *   self-full     one process writes into a full pipe that only it could read
 *   threads       as self, and another thread of it sleeps for an hour
 *   stdout        a parent waits for its child to end, which writes into a full
 *                 pipe that only the parent could read
 *   stdout-slow   the same, but the parent sleeps for an hour before it reads
 *   cross         two processes read, each from the other
 *   cross-slow    the same, but one sleeps for an hour before it writes
 *   flight        as self, but the write end lies in a socket message, too, unread
 *   many N        N processes, each as self
 *   fifo          as cross, over two FIFOs
 *   fifo-self     one process reads a FIFO that it has open for both
 */
#include "scenario.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "children.h"

static void fill(int fd)
{
	char block[4096] = { 0 };
	while (write(fd, block, sizeof block) > 0)
		;
}

static void read_one(int fd)
{
	char byte;
	if (read(fd, &byte, 1) < 0)
		perror("read");
}

static void *sleep_hour(void *unused)
{
	sleep_ms(3600 * 1000);
	return unused;
}

/* Reads from one and would answer on the other. */
static void answer(int in, int out, int close1, int close2)
{
	close(close1);
	close(close2);
	read_one(in);
	fill(out);
}

static void send_away(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr m = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	if (sendmsg(socket, &m, 0) != 1)
		perror("sendmsg");
}

static void alone(const char *mode, const char *fifo)
{
	int p[2], s[2];
	if (strcmp(mode, "fifo-self") == 0) {
		read_one(open(fifo, O_RDWR));
		return;
	}
	if (pipe(p) != 0)
		exit(1);
	if (strcmp(mode, "threads") == 0)
		start(sleep_hour, NULL);
	if (strcmp(mode, "self-full") == 0)
		fill(p[1]);
	if (strcmp(mode, "flight") == 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
			exit(1);
		send_away(s[0], p[1]);
	}
	read_one(p[0]);
}

static void with_child(int slow)
{
	int p[2];
	if (pipe(p) != 0)
		exit(1);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(p[0]);
		fill(p[1]);
		_exit(0);
	}
	close(p[1]);
	if (slow)
		sleep_ms(3600 * 1000);
	waitpid(child, NULL, 0);
}

static void cross(int slow)
{
	int a[2], b[2];
	if (pipe(a) != 0 || pipe(b) != 0)
		exit(1);
	IN_CHILD(answer(a[0], b[1], a[1], b[0]));
	IN_CHILD(if (slow) sleep_ms(3600 * 1000); answer(b[0], a[1], b[1], a[0]));
	close(a[0]), close(a[1]), close(b[0]), close(b[1]);
}

static void fifos(const char *a, const char *b)
{
	/* Opened in the same order, so that nobody waits in open. */
	IN_CHILD(int in = open(a, O_RDONLY); int out = open(b, O_WRONLY); answer(in, out, -1, -1));
	IN_CHILD(int out = open(a, O_WRONLY); int in = open(b, O_RDONLY); answer(in, out, -1, -1));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "self";
	for (int i = 2; i < argc && strncmp(mode, "fifo", 4) == 0; i++)
		if (mkfifo(argv[i], 0600) != 0)
			return 1;
	if (strncmp(mode, "stdout", 6) == 0)
		IN_CHILD(with_child(mode[6] != 0));
	else if (strncmp(mode, "cross", 5) == 0)
		cross(mode[5] != 0);
	else if (strcmp(mode, "fifo") == 0 && argc == 4)
		fifos(argv[2], argv[3]);
	else if (strcmp(mode, "many") == 0 && argc == 3)
		for (int n = atoi(argv[2]); n > 0; n--)
			IN_CHILD(alone("self", NULL));
	else
		IN_CHILD(alone(mode, argv[2]));
	ready_when_asleep();
}
