/* Holds a file as loaders do: maps all of it and touches the first MAPPED
 * bytes, and reads the first READ bytes through a descriptor.
 *
 * usage: holds_file PATH MAPPED READ     (0: not mapped, not opened)
 */
#include "scenario.h"
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	long mapped = atol(argv[2]), to_read = atol(argv[3]);
	int fd = open(argv[1], O_RDONLY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0) {
		perror(argv[1]);
		return 1;
	}
	if (mapped > 0) {
		volatile char *m = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (m == MAP_FAILED) {
			perror("mmap");
			return 1;
		}
		/* No reading ahead: what is resident is what was touched. */
		madvise((void *)m, st.st_size, MADV_RANDOM);
		char sum = 0;
		for (long i = 0; i < mapped; i += 4096)
			sum += m[i];
		(void)sum;
	}
	static char buffer[1 << 16];
	for (long done = 0; done < to_read;) {
		long want = to_read - done < (long)sizeof buffer ? to_read - done : (long)sizeof buffer;
		ssize_t n = read(fd, buffer, want);
		if (n <= 0)
			break;
		done += n;
	}
	if (to_read == 0)
		close(fd);
	ready();
	stay();
}
