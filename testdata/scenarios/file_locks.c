/* Waits for locks of files, in the directory DIR.
 *
 * usage: file_locks MODE DIR [N]
 *   flock         two processes take two locks of flock(2) in opposite order
 *   flock-slow    the same, but one sleeps for an hour before its second lock
 *   self          one process waits for a lock that it has itself, by another
 *                 descriptor of the file
 *   inherited     a process waits for a lock whose taker has ended; it belongs to
 *                 a child of the taker now, which waits for the process's lock
 *   inherited-slow the same, but the child sleeps for an hour
 *   posix         N processes (default 2) in a ring, each with the lock of one
 *                 file, wait for that of the next; the kernel refuses the last
 *                 one up to a length of twelve (Linux 6.18) and says so:
 *                 "ready refused"
 *   posix-slow    the same, but the last one sleeps for an hour
 *   ofd           two processes take two locks of open file descriptions in
 *                 opposite order
 */
#include "scenario.h"
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "children.h"

static const char *dir;
static int slow;
static struct shared {
	pthread_barrier_t all_hold_one;
	int refused;
} *s;

static int file(int n)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/lock-%d", dir, n);
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	if (fd < 0)
		exit(1);
	return fd;
}

static int lock(const char *mode, int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (strncmp(mode, "posix", 5) == 0)
		return fcntl(fd, F_SETLKW, &l);
	if (strncmp(mode, "ofd", 3) == 0)
		return fcntl(fd, F_OFD_SETLKW, &l);
	return flock(fd, LOCK_EX);
}

static void take_two(const char *mode, int first, int second, int last)
{
	int a = file(first), b = file(second);
	if (lock(mode, a) != 0)
		perror("lock");
	pthread_barrier_wait(&s->all_hold_one);
	if (last && slow)
		sleep_ms(3600 * 1000);
	if (last)
		sleep_ms(50); /* the others are asleep by then */
	if (lock(mode, b) != 0 && errno == EDEADLK)
		s->refused = 1;
	sleep_ms(3600 * 1000);
}

/* The taker ends; its child keeps the descriptor and with it the lock. */
static void inherit(void)
{
	int a = file(0), b = file(1);
	flock(a, LOCK_EX);
	pthread_barrier_wait(&s->all_hold_one);
	pid_t taker = getpid();
	if (fork() != 0)
		_exit(0);
	while (getppid() == taker)
		sleep_ms(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* now that of the first process */
	if (slow)
		sleep_ms(3600 * 1000);
	flock(b, LOCK_EX);
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	const char *mode = argv[1];
	int n = argc > 3 ? atoi(argv[3]) : 2;
	pthread_barrierattr_t attr;
	dir = argv[2];
	slow = strstr(mode, "-slow") != NULL;
	s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return 1;
	CHECK(pthread_barrierattr_init(&attr));
	CHECK(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK(pthread_barrier_init(&s->all_hold_one, &attr, (unsigned)n));
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (strcmp(mode, "self") == 0)
		IN_CHILD(flock(file(0), LOCK_EX); flock(file(0), LOCK_EX));
	else if (strncmp(mode, "inherited", 9) == 0) {
		IN_CHILD(inherit());
		IN_CHILD(take_two("flock", 1, 0, 0));
	} else
		for (int i = 0; i < n; i++)
			IN_CHILD(take_two(mode, i, (i + 1) % n, i == n - 1));
	sleep_ms(150);
	if (s->refused) {
		printf("ready refused\n");
		fflush(stdout);
		stay();
	}
	ready_when_asleep();
}
