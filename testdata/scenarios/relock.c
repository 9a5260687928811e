/* A thread locks a normal mutex that it holds already, and waits for itself. */
#include "scenario.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile pid_t tid;

static void *lock_twice(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&m);
	tid = tid_of_self();
	pthread_mutex_lock(&m);
	return NULL;
}

int main(void)
{
	start(lock_twice, NULL);
	wait_asleep(&tid);
	ready();
	stay();
}
