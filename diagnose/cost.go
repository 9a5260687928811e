package diagnose

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// cost measures what watching costs whyhang and its children, so that it can
// rest for long enough in between. It counts from the start, as children work
// beside the looks.
type cost struct {
	started time.Time
	base    time.Duration
	// other is what was spent on something else meanwhile.
	other time.Duration
}

func newCost() cost { return cost{started: time.Now(), base: cpuUsed()} }

// rest is how long to rest after a look: until its share of the time since the
// start is no more than screenShare. The first looks, which say what is going
// on, have something in advance.
func (c *cost) rest() time.Duration {
	spent := cpuUsed() - c.base - c.other
	owed := time.Duration(float64(spent-screenAdvance)/screenShare) - time.Since(c.started)
	return min(max(owed, screenStep), screenLongest)
}

// cpuUsed is the CPU time of this process and its children, living ones too.
func cpuUsed() time.Duration {
	var used time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	for _, pid := range ownChildren() {
		used += cpuOf(pid)
	}
	return used
}

// ownChildren are the living children of all threads (proc_tid_children(5)).
func ownChildren() []int {
	var pids []int
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	for _, t := range threads {
		b, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err != nil {
			continue // without CONFIG_PROC_CHILDREN the children are not counted
		}
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// cpuOf is finer than the ticks of stat where the kernel counts nanoseconds.
func cpuOf(pid int) time.Duration {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	if s, err := p.Schedstat(); err == nil {
		return time.Duration(s.RunningNanoseconds)
	}
	return 0
}
