package deadlocked

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// LockCycle is the classic deadlock, proved.
var LockCycle = rule.Rule{
	ID:      "lock-cycle",
	Verdict: rule.Deadlocked,
	Title:   "Threads wait for each other's locks in a circle",
	Doc: `Looks for threads that sleep without a time-out for something that only certain
others can give: a mutex of any kind, a rwlock, a Python RLock, a file lock, the
end of a thread or of a child process. If the chain from waiter to owner comes
back to its start, none of these threads can ever run again.

What makes it a proof: every thread's system call and scheduler counters
(/proc/PID/task/TID/syscall and schedstat) are read before and after the lock
words. Where both are equal the thread slept in that one call all the time, so
the whole circle was true at one instant; and a circle of sleepers cannot end by
itself. It must be seen twice, some 100 ms apart, in the very same waits. One
look alone shows circles that do not exist whenever locks are handed over.

An owner is sure if the kernel keeps the word itself (priority inheritance, the
word of pthread_join), or if a return address on the thread's stack shows the
function that takes such locks. Memory that merely looks like a mutex gives
"likely", which is never enough for "deadlocked". A plain Python Lock names no
owner: the one thread that is inside its ` + "`with`" + ` block is taken for it, and the
circle is then "strong" and not proved. A kernel without schedstat gives
"likely" too.

Some waits can be ended by more than what they wait for, and a circle is worth no
more than its weakest: a thread that waits for its own mutex, which another could
unlock against POSIX; a join, which can be cancelled; a child, which a watchdog
can kill; a plain Python Lock, which any thread may release; and calls that a
signal with a handler ends, among them every wait of Python's main thread. Such a
circle is proved only if every thread of the process is dead and it handles no
signals; it is strong if it handles only those by which people ask (SIGTERM), or
if nobody at all ran for seconds; and likely otherwise.

What would make it wrong: a mutex implementation that lays out its words as
glibc does and lies in them; a debugger that wakes a thread by hand.

Sources: glibc nptl (pthread_mutex_lock.c, lowlevellock.c, struct
__pthread_mutex_s, struct __pthread_rwlock_arch_t), musl pthread_mutex_lock.c,
CPython Modules/_threadmodule.c, futex(2), proc_pid_syscall(5), proc_locks(5),
kernel Documentation/scheduler/sched-stats.rst.`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords},
	Suppresses: suppressed,
	Eval:       func(c *rule.Case) []rule.Finding { return circles(c, rule.LockCycle, throughLocks) },
	Against:    againstCircle,
}

// suppressed are the consequences of any deadlock.
var suppressed = []rule.ID{"no-movement", "no-answer", "accept-stuck", "engine-stuck", "ready-by-its-word", "gil-held", "lost-wakeup"}
