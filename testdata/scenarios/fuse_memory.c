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
#include <linux/fuse.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MIB (1 << 20)
#define FILE_BYTES (64 * MIB)
#define FILE_NAME "model.safetensors"
#define FILE_NODE 2
#define PAGE 4096

/* In memory of both: the store serves no READ any more. */
static volatile int *dead;

/* ---- the server ---- */

static int fuse;

static void answer(const struct fuse_in_header *in, int error, const void *body, size_t size)
{
	static char out[sizeof(struct fuse_out_header) + MIB];
	struct fuse_out_header head = { .len = sizeof head + size, .error = -error, .unique = in->unique };
	memcpy(out, &head, sizeof head);
	if (body != NULL)
		memcpy(out + sizeof head, body, size);
	if (write(fuse, out, head.len) < 0 && errno != ENOENT)
		perror("answer");
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr a = { .ino = node, .nlink = 1, .blksize = PAGE };
	a.mode = node == FILE_NODE ? S_IFREG | 0644 : S_IFDIR | 0755;
	a.size = node == FILE_NODE ? FILE_BYTES : 0;
	return a;
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out e = { .nodeid = FILE_NODE, .entry_valid = 1, .attr_valid = 1, .attr = attributes(FILE_NODE) };
	if (in->nodeid == FUSE_ROOT_ID && !strcmp(name, FILE_NAME))
		answer(in, 0, &e, sizeof e);
	else
		answer(in, ENOENT, NULL, 0);
}

static void list(const struct fuse_in_header *in, uint64_t offset)
{
	struct {
		struct fuse_dirent entry;
		char name[24];
	} d = { .entry = { .ino = FILE_NODE, .off = 1, .namelen = strlen(FILE_NAME), .type = S_IFREG >> 12 } };
	memcpy(d.entry.name, FILE_NAME, strlen(FILE_NAME));
	answer(in, 0, &d, offset == 0 ? FUSE_DIRENT_SIZE(&d.entry) : 0);
}

static void serve_one(void)
{
	static char request[2 * MIB], zeros[MIB];
	ssize_t n = read(fuse, request, sizeof request);
	if (n < (ssize_t)sizeof(struct fuse_in_header))
		return;
	struct fuse_in_header *in = (void *)request;
	void *arg = request + sizeof *in;
	/* Without FUSE_ASYNC_READ whoever needs a page waits for the answer to
	 * its own request, and cannot be killed there. */
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_readahead = 64 << 10, .max_write = 128 << 10 };
	struct fuse_attr_out attr = { .attr_valid = 1, .attr = attributes(in->nodeid) };
	struct fuse_open_out opened = { 0 };
	struct fuse_statfs_out space = { .st = { .blocks = FILE_BYTES / PAGE, .bsize = PAGE, .frsize = PAGE, .namelen = 255 } };
	struct fuse_write_out written = { 0 };
	switch (in->opcode) {
	case FUSE_INIT:
		answer(in, 0, &init, sizeof init);
		break;
	case FUSE_LOOKUP:
		look_up(in, arg);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		answer(in, 0, &attr, sizeof attr);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(in, 0, &opened, sizeof opened);
		break;
	case FUSE_READDIR:
		list(in, ((struct fuse_read_in *)arg)->offset);
		break;
	case FUSE_WRITE:
		written.size = ((struct fuse_write_in *)arg)->size;
		answer(in, 0, &written, sizeof written);
		break;
	case FUSE_READ: {
		uint32_t size = ((struct fuse_read_in *)arg)->size;
		if (!*dead)
			answer(in, 0, zeros, size < sizeof zeros ? size : sizeof zeros);
		break;
	}
	case FUSE_STATFS:
		answer(in, 0, &space, sizeof space);
		break;
	case FUSE_ACCESS:
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: /* which a dead store does not heed */
		break;
	default:
		answer(in, ENOSYS, NULL, 0);
	}
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
	char options[128];
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
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	if (fuse < 0 || unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("store", argv[1], "fuse", MS_NODEV | MS_NOSUID, options) != 0) {
		printf("cannot: %s\n", strerror(errno));
		return 0;
	}
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
