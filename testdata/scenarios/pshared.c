/* AB-BA across two processes, on two process-shared mutexes in shared memory.
 * The parent prints "ready" when both sleep.
 */
#include "scenario.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

struct shared {
	pthread_mutex_t a, b;
	pthread_barrier_t both_hold_one;
};

/* Any thread of any process, seen from outside: its state letter. */
static int asleep(pid_t pid)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' && end[2] == 'S';
}

static pid_t lock_both(struct shared *s, pthread_mutex_t *first, pthread_mutex_t *second)
{
	pid_t child = fork();
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_mutex_lock(first);
	pthread_barrier_wait(&s->both_hold_one);
	pthread_mutex_lock(second);
	_exit(0);
}

int main(void)
{
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attr;
	pthread_barrierattr_t battr;
	if (s == MAP_FAILED)
		return 1;
	CHECK(pthread_mutexattr_init(&attr));
	CHECK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK(pthread_mutex_init(&s->a, &attr));
	CHECK(pthread_mutex_init(&s->b, &attr));
	CHECK(pthread_barrierattr_init(&battr));
	CHECK(pthread_barrierattr_setpshared(&battr, PTHREAD_PROCESS_SHARED));
	CHECK(pthread_barrier_init(&s->both_hold_one, &battr, 2));
	pid_t one = lock_both(s, &s->a, &s->b), two = lock_both(s, &s->b, &s->a);
	/* Asleep in the barrier would not count: both locks must be held first. */
	for (int quiet = 0; quiet < 5; sleep_ms(5))
		quiet = asleep(one) && asleep(two) && s->a.__data.__lock == 2 && s->b.__data.__lock == 2 ? quiet + 1 : 0;
	ready();
	stay();
}
