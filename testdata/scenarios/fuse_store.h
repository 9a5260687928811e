/* A FUSE file system with one file, for scenarios that need a store they can
 * slow down or let die. Whoever includes this defines FILE_BYTES and
 *
 *   int store_answers(uint32_t opcode)
 *
 * which is asked before each request is answered: 0 leaves it without an answer
 * for ever. It may take its time. One request is served at a time.
 *
 * The mount is in a mount namespace of its own. When the last descriptor of
 * /dev/fuse is closed the kernel ends the connection, and all who wait for it
 * wake up: so only the server may hold one (close it in children).
 */
#include <linux/fuse.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define MIB (1 << 20)
#define FILE_NAME "model.safetensors"
#define FILE_NODE 2
#define PAGE 4096

static int store_answers(uint32_t opcode);

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
	if (in->opcode != FUSE_INIT && !store_answers(in->opcode))
		return;
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

/* Opens /dev/fuse and mounts; says why it cannot, and is 0 then. */
static int mount_store(const char *dir)
{
	char options[128];
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	if (fuse >= 0 && unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("store", dir, "fuse", MS_NODEV | MS_NOSUID, options) == 0)
		return 1;
	printf("cannot: %s\n", strerror(errno));
	return 0;
}
