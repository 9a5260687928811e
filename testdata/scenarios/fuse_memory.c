/* A process whose memory comes from a FUSE file system that died: it mapped
 * model.safetensors while the store still served it, and now no READ is
 * answered any more. Everything else is. Two threads of it wait for each
 * other's mutexes, in ordinary memory. Where a reader of its memory would
 * sleep until the store answers:
 *
 *   word-shared    sleeps on a mutex in the shared mapping, whose page is gone
 *   word-private   sleeps on a futex in the private mapping, likewise
 *   stack          sleeps on an ordinary condition; its stack is in the mapping
 *   touch-private  is in the page fault itself, and so are touch-shared,
 *   futex-private  with a futex call around it, futex-shared,
 *   read           and inside a read
 *
 * "code" maps the file as code as well, and puts addresses of it on the stack of
 * one thread of the circle, as if they were return addresses. "argv" lets the
 * process's own command line and environment begin in the mapping
 * (PR_SET_MM_MAP).
 *
 * The first process is the server, and prints the PID of the other. The file
 * system is in a mount namespace of its own and ends with the server: no one
 * else has its /dev/fuse, and closing that wakes all who wait.
 * Needs CAP_SYS_ADMIN and /dev/fuse; prints "cannot" without.
 *
 * usage: fuse_memory DIRECTORY [code|argv]
 */
#include "scenario.h"
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define FILE_BYTES (64 * MIB)
#include "fuse_store.h"

/* In memory of both: the store serves no READ any more. */
static volatile int *dead;

/* ---- the server ---- */

static int store_answers(uint32_t opcode)
{
	return opcode != FUSE_READ || !*dead;
}

/* Serves until standard input ends; says "ready" when the target does. */
static void serve(pid_t target, int says)
{
	struct pollfd at[] = { { .fd = 0, .events = POLLIN }, { .fd = fuse, .events = POLLIN }, { .fd = says, .events = POLLIN } };
	const char *to = getenv("READY_FD");
	char byte;
	while (poll(at, 3, 300 * 1000) > 0) {
		if (at[1].revents)
			serve_one();
		if (at[2].revents) {
			if (read(says, &byte, 1) != 1)
				return; /* the target has failed and said why */
			dprintf(to ? atoi(to) : 1, "ready %d\n", (int)target);
			at[2].fd = -1;
		}
		if (at[0].revents && read(0, &byte, 1) <= 0)
			return;
	}
}

/* ---- the target ---- */

static int file;
static char *shared, *private, *code;
static const char *mode = "";

/* Where in the file what lies, far from each other for the read-ahead. */
enum { AT_MUTEX = 0, AT_WORD = 1 * MIB, AT_STACK = 2 * MIB, AT_TOUCH = 8 * MIB, AT_FUTEX = 16 * MIB, AT_READ = 48 * MIB };
enum { STACK_BYTES = 64 << 10 };

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold_one;

struct role {
	const char *name;
	void (*run)(void);
	volatile pid_t tid;
};

static void ab(void)
{
	void *volatile decoys[8];
	for (int i = 0; i < 8; i++)
		decoys[i] = code ? code + PAGE * i + 16 : NULL;
	pthread_mutex_lock(&a);
	pthread_barrier_wait(&both_hold_one);
	pthread_mutex_lock(&b);
	(void)decoys[0];
}

static void ba(void)
{
	pthread_mutex_lock(&b);
	pthread_barrier_wait(&both_hold_one);
	pthread_mutex_lock(&a);
}

static void word_shared(void) { pthread_mutex_lock((void *)(shared + AT_MUTEX)); }
static void word_private(void) { syscall(SYS_futex, private + AT_WORD, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0); }
static void on_stack(void) { idle_thread(NULL); }
static void touch_private(void) { (void)*(volatile char *)(private + AT_TOUCH); }
static void touch_shared(void) { *(volatile char *)(shared + AT_TOUCH + 4 * MIB) = 1; }
static void futex_private(void) { syscall(SYS_futex, private + AT_FUTEX, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0); }
static void futex_shared(void) { syscall(SYS_futex, shared + AT_FUTEX + 4 * MIB, FUTEX_WAIT, 0, NULL, NULL, 0); }

static void read_file(void)
{
	char buf[PAGE];
	(void)!pread(file, buf, sizeof buf, AT_READ);
}

static struct role circle[] = { { "ab", ab, 0 }, { "ba", ba, 0 } };
static struct role asleep[] = { { "word-shared", word_shared, 0 }, { "word-private", word_private, 0 },
	{ "stack", on_stack, 0 } };
static struct role stuck[] = { { "touch-private", touch_private, 0 }, { "touch-shared", touch_shared, 0 },
	{ "futex-private", futex_private, 0 }, { "futex-shared", futex_shared, 0 }, { "read", read_file, 0 } };

#define EACH(roles, r) for (struct role *r = roles; r < roles + sizeof roles / sizeof *roles; r++)

static void *play(void *arg)
{
	struct role *r = arg;
	prctl(PR_SET_NAME, r->name);
	r->tid = tid_of_self();
	r->run();
	return NULL;
}

static void start_on(void *stack, struct role *r)
{
	pthread_attr_t attr;
	pthread_t thread;
	CHECK(pthread_attr_init(&attr));
	CHECK(pthread_attr_setstack(&attr, stack, STACK_BYTES));
	CHECK(pthread_create(&thread, &attr, play, r));
}

/* Waits until a thread has slept for some time. Those who wait for the store
 * show S, and D once a signal has come for them. */
static void wait_long_asleep(struct role *r)
{
	for (int try = 0, in = 0; try < 5000; try++, sleep_ms(1)) {
		char path[64], text[512] = "", *end;
		snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)r->tid);
		int fd = r->tid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fd < 0)
			continue;
		(void)!read(fd, text, sizeof text - 1);
		close(fd);
		in = (end = strrchr(text, ')')) && end[1] == ' ' && (end[2] == 'S' || end[2] == 'D') ? in + 1 : 0;
		if (in == 20)
			return;
	}
	fprintf(stderr, "%s did not fall asleep\n", r->name);
	exit(1);
}

static void *map(int protection, int flags)
{
	void *p = mmap(NULL, FILE_BYTES, protection, flags, file, 0);
	CHECK(p == MAP_FAILED ? errno : 0);
	return p;
}

/* Gives back the pages of the file: of the process, and of the kernel. Those
 * who sleep do not notice. */
static void forget_pages(void)
{
	unsigned char there[FILE_BYTES / PAGE];
	CHECK(msync(shared, FILE_BYTES, MS_SYNC) ? errno : 0);
	CHECK(madvise(shared, FILE_BYTES, MADV_DONTNEED) ? errno : 0);
	CHECK(madvise(private, FILE_BYTES, MADV_DONTNEED) ? errno : 0);
	CHECK(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED));
	CHECK(mincore(shared, FILE_BYTES, there) ? errno : 0);
	for (size_t i = 0; i < sizeof there; i++)
		if (there[i] & 1) {
			fprintf(stderr, "page %zu is still there\n", i);
			exit(1);
		}
}

/* The command line and the environment are where the kernel is told. */
static void move_argv(void)
{
	struct prctl_mm_map m = { .exe_fd = (uint32_t)-1 };
	/* The places of the others must be valid; they are those of now. */
	char text[2048] = "";
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	(void)!read(fd, text, sizeof text - 1);
	close(fd);
	char *save, *word = strtok_r(strrchr(text, ')') + 2, " ", &save);
	for (int field = 3; word != NULL; field++, word = strtok_r(NULL, " ", &save)) {
		uint64_t v = strtoull(word, NULL, 10);
		switch (field) { /* proc_pid_stat(5) */
		case 26: m.start_code = v; break;
		case 27: m.end_code = v; break;
		case 28: m.start_stack = v; break;
		case 45: m.start_data = v; break;
		case 46: m.end_data = v; break;
		case 47: m.start_brk = v; break;
		}
	}
	m.brk = (uint64_t)sbrk(0);
	m.arg_start = (uint64_t)(shared + AT_TOUCH + 20 * MIB);
	m.env_start = (uint64_t)(shared + AT_TOUCH + 24 * MIB);
	m.arg_end = m.arg_start + 100;
	m.env_end = m.env_start + 100;
	CHECK(prctl(PR_SET_MM, PR_SET_MM_MAP, &m, sizeof m, 0) ? errno : 0);
}

static void target(const char *dir, int says)
{
	char path[512];
	snprintf(path, sizeof path, "%s/" FILE_NAME, dir);
	file = open(path, O_RDWR | O_CLOEXEC);
	CHECK(file < 0 ? errno : 0);
	shared = map(PROT_READ | PROT_WRITE, MAP_SHARED);
	private = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	if (!strcmp(mode, "code"))
		code = map(PROT_READ | PROT_EXEC, MAP_PRIVATE);

	CHECK(pthread_mutex_init((void *)(shared + AT_MUTEX), NULL));
	CHECK(pthread_mutex_lock((void *)(shared + AT_MUTEX)));
	start(play, &asleep[0]);
	start(play, &asleep[1]);
	start_on(shared + AT_STACK, &asleep[2]);
	EACH(asleep, r)
		wait_long_asleep(r);
	forget_pages();
	*dead = 1;

	CHECK(pthread_barrier_init(&both_hold_one, NULL, 2));
	EACH(circle, r)
		start(play, r);
	EACH(stuck, r)
		start(play, r);
	EACH(circle, r)
		wait_long_asleep(r);
	EACH(stuck, r)
		wait_long_asleep(r);
	if (!strcmp(mode, "argv"))
		move_argv();
	(void)!write(says, "r", 1);
	close(says);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int says[2];
	if (argc < 2)
		return 2;
	if (argc > 2)
		mode = argv[2];
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none); /* the end of the store is SIGBUS for the other */
	dead = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(dead == MAP_FAILED ? errno : 0);
	CHECK(pipe2(says, O_CLOEXEC) ? errno : 0);
	if (!mount_store(argv[1]))
		return 0;
	pid_t child = fork();
	CHECK(child < 0 ? errno : 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fuse);
		close(says[0]);
		target(argv[1], says[1]);
	}
	close(says[1]);
	serve(child, says[0]);
	umount2(argv[1], MNT_DETACH);
	close(fuse);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(0);
}
