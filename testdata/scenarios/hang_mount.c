/* Mounts a FUSE file system whose server never answers, in a mount namespace
 * of its own: whoever touches a path on it sleeps until this program ends.
 * Needs CAP_SYS_ADMIN and /dev/fuse; prints "cannot" without.
 *
 * usage: hang_mount DIRECTORY
 */
#include "scenario.h"
#include <sched.h>
#include <sys/mount.h>

int main(int argc, char **argv)
{
	char options[128];
	if (argc != 2)
		return 2;
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	if (fuse < 0 || unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("hang", argv[1], "fuse", MS_NODEV | MS_NOSUID, options) != 0) {
		printf("cannot: %s\n", strerror(errno));
		return 0;
	}
	ready();
	stay();
}
