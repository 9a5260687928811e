/* The first thread ends and others live on: /proc/PID then shows a zombie
 * without memory or descriptors, though the process works.
 */
#include "scenario.h"

static pthread_t leader;

static void *outlive(void *unused)
{
	pthread_join(leader, NULL);
	ready();
	stay();
	return unused;
}

int main(void)
{
	leader = pthread_self();
	start(outlive, NULL);
	pthread_exit(NULL);
}
