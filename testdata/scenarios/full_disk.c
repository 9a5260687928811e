/* Mounts a small file system of its own (in a mount namespace of its own, which
 * only root may make), fills it, and stays.
 *
 * usage: full_disk DIR logs      its standard output is a file there, and it
 *                                goes on writing lines that all fail
 *        full_disk DIR idle      writes nothing: the twin
 *        full_disk DIR inodes    the same with room for bytes, none for files
 */
#include "scenario.h"
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static void *log_lines(void *unused)
{
	(void)unused;
	for (;; sleep_ms(100))
		if (write(1, "a line of the log\n", 18) == 18)
			break; /* there was room: no longer what it should be */
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	int inodes = strcmp(argv[2], "inodes") == 0;
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", argv[1], "tmpfs", 0, inodes ? "size=4m,nr_inodes=4" : "size=256k") != 0) {
		perror("mount");
		return 1;
	}
	char path[4096], block[4096];
	memset(block, 'x', sizeof block - 1);
	block[sizeof block - 1] = '\n';
	for (int i = 0; i < 16; i++) {
		snprintf(path, sizeof path, "%s/file%d", argv[1], i);
		int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
		if (fd < 0)
			break;
		while (!inodes && write(fd, block, sizeof block) > 0)
			;
		if (i == 0 && strcmp(argv[2], "logs") == 0) {
			dup2(fd, 1);
			dup2(fd, 2);
		}
		close(fd);
	}
	ready();
	if (strcmp(argv[2], "logs") == 0)
		start(log_lines, NULL);
	stay();
}
