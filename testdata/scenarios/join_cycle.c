/* A thread holds a mutex and joins a thread that wants the mutex. */
#include "scenario.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile pid_t tid_joins, tid_wants;
static pthread_t wanting;

static void *want(void *unused)
{
	(void)unused;
	tid_wants = tid_of_self();
	pthread_mutex_lock(&m);
	return NULL;
}

static void *hold_and_join(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&m);
	wanting = start(want, NULL);
	tid_joins = tid_of_self();
	pthread_join(wanting, NULL);
	return NULL;
}

int main(void)
{
	start(hold_and_join, NULL);
	wait_asleep(&tid_wants);
	wait_asleep(&tid_joins);
	ready();
	stay();
}
