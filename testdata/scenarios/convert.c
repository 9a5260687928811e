/* Has read its weights and converts them on one thread: a loop over floating
 * point numbers into memory that grows. It logs nothing.
 *
 * usage: convert PATH MIB     converts, with PATH (made sparse) mapped and read
 *        convert PATH MIB in-place   the same into memory it already has: no
 *                             counter but processor time moves
 *        convert - 0          burns the processor the same way with no weights
 *                             at all and no memory: the twin, no server
 */
#include "scenario.h"
#include <sys/mman.h>

static void *work(void *arg)
{
	char **argv = arg;
	long size = atol(argv[2]) << 20;
	volatile unsigned char *m = NULL;
	if (size > 0) {
		int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
		if (fd < 0 || ftruncate(fd, size) != 0) {
			perror(argv[1]);
			exit(1);
		}
		m = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		char sum = 0;
		for (long i = 0; i < size; i += 4096)
			sum += m[i];
		(void)sum;
	}
	volatile float sink = 0;
	long tensor = 1 << 20;
	float *own = NULL;
	if (argv[3] != NULL) {
		own = malloc(tensor * sizeof *own);
		memset(own, 1, tensor * sizeof *own);
	}
	ready();
	for (;;) {
		/* A tensor's worth: 4-bit values to floats, one scale each 32. */
		long n = tensor;
		float *out = own;
		if (out == NULL && size > 0)
			out = malloc(n * sizeof *out);
		for (int round = 0; round < 40; round++)
			for (long i = 0; i < n; i++) {
				unsigned char q = m ? m[i % size] : (unsigned char)i;
				float v = (float)(q & 15) * 0.125f + (float)(i % 32) * 1e-3f;
				if (out)
					out[i] = v;
				else
					sink += v;
			}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	start_idle(8);
	start(work, argv);
	stay();
}
