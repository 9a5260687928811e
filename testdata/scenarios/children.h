/* Scenarios of several processes: the first one starts the others, waits until
 * all below it sleep, says "ready" and stays. Whoever is in position is one of
 * the others. */
static pid_t children[256];
static int children_count;

/* Runs statements in a child, which ends with its parent. */
#define IN_CHILD(...)                                    \
	do {                                             \
		pid_t in_child = fork();                 \
		if (in_child == 0) {                     \
			prctl(PR_SET_PDEATHSIG, SIGKILL); \
			__VA_ARGS__;                     \
			_exit(0);                        \
		}                                        \
		children[children_count++] = in_child;   \
	} while (0)

/* The state letter of a process, '-' if it is not there. */
static inline char state_of(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	return state_in(path);
}

/* Waits until all children have slept for a while, or have ended, then stays.
 * Who is in position wakes up for nothing. */
static inline void ready_when_asleep(void)
{
	for (int quiet = 0; quiet < 10; sleep_ms(5)) {
		quiet++;
		for (int i = 0; i < children_count; i++) {
			char s = state_of(children[i]);
			if (s != 'S' && s != 'Z')
				quiet = 0;
		}
	}
	ready();
	stay();
}
