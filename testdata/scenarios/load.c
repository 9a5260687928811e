/* Loads a weight file of MIB mebibytes at RATE MiB/s, as engines do, and says
 * nothing meanwhile. The file is PATH and is made sparse.
 *
 * usage: load mmap|read|pread|stop PATH MIB RATE [BURST_MS [RANKS]]
 *
 * "stop" maps the file, touches a tenth of it, and then waits for ever for a
 * store that does not answer: the twin of the others. BURST_MS is how long it
 * rests between two steps (default 50): the rate stays the same. RANKS children
 * load it instead, each all of it.
 */
#include "scenario.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *work(void *arg)
{
	char **argv = arg;
	const char *how = argv[1], *path = argv[2];
	long size = atol(argv[3]) << 20, rate = atol(argv[4]) << 20;
	long rest_ms = argv[5] ? atol(argv[5]) : 50;
	long step = rate * rest_ms / 1000;
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0 || ftruncate(fd, size) != 0) {
		perror(path);
		exit(1);
	}
	volatile char *m = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	char *buffer = malloc(step);
	char sum = 0;
	ready();
	double begin = now();
	for (long done = 0; done < size; done += step) {
		long n = size - done < step ? size - done : step;
		if (strcmp(how, "read") == 0) {
			if (read(fd, buffer, n) != n)
				break;
		} else if (strcmp(how, "pread") == 0) {
			if (pread(fd, buffer, n, done) != n)
				break;
		} else {
			for (long i = done; i < done + n; i += 4096)
				sum += m[i];
		}
		if (strcmp(how, "stop") == 0 && done > size / 10) {
			int never[2];
			char byte;
			if (pipe(never) == 0 && read(never[0], &byte, 1) >= 0)
				sum += byte;
		}
		double next = begin + (double)(done + n) / rate;
		while (now() < next)
			sleep_ms(1 + (long)((next - now()) * 1000) / 2);
	}
	(void)sum;
	for (;;)
		pause();
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	if (argc < 7)
		start(work, argv);
	for (long n = argc < 7 ? 0 : atol(argv[6]); n > 0; n--) {
		pid_t rank = fork();
		CHECK(rank < 0 ? errno : 0);
		if (rank == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(argv);
		}
	}
	stay();
}
