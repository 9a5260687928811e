/* Threads wait on words in every kind of memory a lock can lie in. Only some
 * kinds may be read from outside: a page that comes from a file could have to
 * be fetched from a server that does not answer.
 *
 * usage: lock_places DIRECTORY      (for two files)
 *
 * Prints "ready NAME=ADDRESS…".
 */
#include "scenario.h"
#include <linux/futex.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096

static volatile pid_t tid;

static void *wait_for_change(void *arg)
{
	uint32_t *word = arg;
	tid = tid_of_self();
	/* A shared wait would write to a private page, and so change its kind. */
	for (;;)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, *word, NULL, NULL, 0);
	return NULL;
}

static uint32_t in_bss;
static uint32_t in_data = 7; /* written to below, so its page is private */

static void *map(int fd, int flags)
{
	void *m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (m == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return m;
}

static int file(const char *dir, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, PAGE) != 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	int mem = memfd_create("words", MFD_CLOEXEC);
	if (mem < 0 || ftruncate(mem, PAGE) != 0) {
		perror("memfd_create");
		return 1;
	}
	in_data = 8;
	uint32_t *written = map(file(argv[1], "written"), MAP_PRIVATE);
	*written = 9;
	uint32_t in_stack = 10;

	struct {
		const char *name;
		uint32_t *word;
	} places[] = {
		{ "bss", &in_bss },
		{ "data", &in_data },
		{ "stack", &in_stack },
		{ "heap", malloc(64) },
		{ "anonymous", map(-1, MAP_PRIVATE | MAP_ANONYMOUS) },
		{ "anonymous-shared", map(-1, MAP_SHARED | MAP_ANONYMOUS) },
		{ "memfd", map(mem, MAP_SHARED) },
		{ "file-written", written },
		{ "file-private", map(file(argv[1], "private"), MAP_PRIVATE) },
		{ "file-shared", map(file(argv[1], "shared"), MAP_SHARED) },
	};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		tid = 0;
		start(wait_for_change, places[i].word);
		wait_asleep(&tid);
	}
	printf("ready");
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		printf(" %s=0x%lx", places[i].name, (unsigned long)places[i].word);
	printf("\n");
	fflush(stdout);
	stay();
}
