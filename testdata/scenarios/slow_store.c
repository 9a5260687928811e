/* Ranks that load a model from a FUSE store which takes its time for each read.
 * The first process is the store; it prints the PID of the root of the ranks,
 * and on SIGUSR1 stops answering, whatever it is asked, and says nothing.
 *
 *   read, pread, mmap    how each rank reads the file, from its begin to its end
 *   open                 it opens the file again and again, and reads nothing
 *   RANKS                1: the root itself reads; more: so many children of it,
 *                        each of them the whole file, the later ones slower
 *   BURST_MIB PAUSE_MS   after each so many MiB a rank rests for so long, as
 *                        loaders do that convert what they have read
 *
 * Everything ends with the store. Needs CAP_SYS_ADMIN and /dev/fuse; prints
 * "cannot" without.
 *
 * usage: slow_store DIRECTORY read|pread|mmap|open DELAY_MS RANKS [BURST_MIB PAUSE_MS]
 */
#include "scenario.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define FILE_BYTES (1024L * MIB)
#include "fuse_store.h"

static volatile sig_atomic_t stopped;
static long delay_ms;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static int store_answers(uint32_t opcode)
{
	if (opcode == FUSE_READ && !stopped)
		sleep_ms(delay_ms);
	return !stopped;
}

static void serve(void)
{
	struct pollfd at[] = { { .fd = 0, .events = POLLIN }, { .fd = fuse, .events = POLLIN } };
	char byte;
	for (;;) {
		int n = poll(at, 2, 300 * 1000);
		if (n == 0 || (n < 0 && errno != EINTR))
			return;
		if (n < 0)
			continue;
		if (at[1].revents)
			serve_one();
		if (at[0].revents && read(0, &byte, 1) <= 0)
			return;
	}
}

static const char *how, *path;
static long burst, pause_ms;

static void *load(void *arg)
{
	long slower = (long)arg;
	enum { STEP = 64 << 10 };
	static char buffer[STEP];
	char sum = 0;
	int file = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(file < 0 ? errno : 0);
	volatile char *m = MAP_FAILED;
	if (!strcmp(how, "mmap")) {
		m = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
		CHECK(m == MAP_FAILED ? errno : 0);
		close(file);
	}
	for (long done = 0; done < FILE_BYTES; done += STEP) {
		if (!strcmp(how, "open")) {
			close(file);
			file = open(path, O_RDONLY | O_CLOEXEC);
			sleep_ms(10);
			done = 0;
			continue;
		}
		if (m != MAP_FAILED)
			for (long i = done; i < done + STEP; i += PAGE)
				sum += m[i];
		else if (strcmp(how, "read") ? pread(file, buffer, STEP, done) != STEP : read(file, buffer, STEP) != STEP)
			break;
		sleep_ms(slower);
		if (burst > 0 && (done + STEP) % burst == 0)
			sleep_ms(pause_ms);
	}
	(void)sum;
	for (;;)
		pause();
	return NULL;
}

static void root(int ranks)
{
	if (ranks == 1)
		start(load, NULL);
	for (long i = 0; ranks > 1 && i < ranks; i++) {
		pid_t rank = fork();
		CHECK(rank < 0 ? errno : 0);
		if (rank == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			load((void *)(i * 10));
		}
	}
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	char file[512];
	if (argc < 5)
		return 2;
	how = argv[2];
	delay_ms = atol(argv[3]);
	burst = argc > 6 ? atol(argv[5]) * MIB : 0;
	pause_ms = argc > 6 ? atol(argv[6]) : 0;
	snprintf(file, sizeof file, "%s/" FILE_NAME, argv[1]);
	path = file;
	if (!mount_store(argv[1]))
		return 0;
	signal(SIGUSR1, stop);
	pid_t child = fork();
	CHECK(child < 0 ? errno : 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, SIG_DFL);
		close(fuse);
		root(atoi(argv[4]));
	}
	dprintf(1, "ready %d\n", (int)child);
	serve();
	umount2(argv[1], MNT_DETACH);
	close(fuse);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(0);
}
