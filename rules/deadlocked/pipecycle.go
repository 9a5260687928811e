package deadlocked

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// PipeCycle is a circle that goes through a pipe or a socket.
var PipeCycle = rule.Rule{
	ID:      "pipe-cycle",
	Verdict: rule.Deadlocked,
	Title:   "Processes wait for each other through pipes in a circle",
	Doc: `Looks for threads that read from an empty pipe, or write to a full one, while
every process that holds the other end sleeps as well and can be woken only by
threads of the same set. The usual case: a parent waits for its child to end,
and the child cannot write its last output because nobody reads the pipe. A
process that itself holds the only other end of its pipe waits for itself.

It is a proof as a lock cycle is one: all threads of all these processes slept
in the same calls through both looks. Every process on the machine that holds
the other end counts; where the descriptors of some process could not be read,
nothing is claimed. A TCP connection counts if both its ends are in one network
namespace. A process that waits for a terminal, another host or a
timer is never part of a circle.

What would make it wrong: a descriptor of the other end that is on its way
inside a message (SCM_RIGHTS), which no file in /proc shows; a signal from
outside.

Sources: pipe(7), unix(7), tcp(7), proc_pid_net(5), sock_diag(7), proc_pid_fd(5), proc_pid_fdinfo(5).`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords},
	Suppresses: suppressed,
	Eval:       func(c *rule.Case) []rule.Finding { return circles(c, rule.PipeCycle, throughPipes) },
}
