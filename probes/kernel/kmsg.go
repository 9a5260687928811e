package kernel

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Bounds of one reading of the kernel's log: the ring holds a few megabytes.
const (
	maxRecords = 1 << 20
	maxKills   = 200
	recordSize = 8 << 10 // a smaller buffer gets EINVAL
)

// readKernelLog reads the kernel's log once, without waiting for more, and
// keeps what it says of kills since a time after boot. /dev/kmsg gives one
// record per read, EPIPE when records were overwritten meanwhile, and EAGAIN
// at the end.
func readKernelLog(path string, since time.Duration) (*evidence.KernelLog, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, recordSize)
	c := newKillCollector(since)
	for range maxRecords {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EPIPE:
			c.gap()
			continue
		case err == unix.EINVAL: // longer than any record of today
			c.gap()
			return c.log, nil
		case err == unix.EAGAIN || err == nil && n == 0:
			return c.log, nil
		case err != nil:
			return nil, err
		}
		c.take(buf[:n])
	}
	return nil, errors.New("the kernel's log does not end")
}

// killCollector keeps the kills among records.
type killCollector struct {
	log     *evidence.KernelLog
	since   time.Duration
	asleep  time.Duration
	started bool
	groups  map[int]string // memory group by PID, from the line before
}

func newKillCollector(since time.Duration) *killCollector {
	return &killCollector{log: &evidence.KernelLog{}, since: since, asleep: suspended(), groups: map[int]string{}}
}

// gap: records were lost.
func (c *killCollector) gap() { c.log.Complete = false }

// startSlack is how much earlier than the tree's start a record may seem: the
// kernel's log has a clock of its own.
const startSlack = 5 * time.Second

func (c *killCollector) take(b []byte) {
	r, err := parseRecord(b)
	if err != nil {
		return
	}
	at := time.Duration(min(r.atUS, 1<<50))*time.Microsecond + c.asleep
	if !c.started {
		// The oldest record that is left: the first since boot has number 0.
		c.started = true
		c.log.Complete = r.sequence == 0 || at <= c.since
	}
	if !r.kernel || at+startSlack < c.since {
		return
	}
	if pid, group, ok := parseKillGroup(r.text); ok && len(c.groups) < maxKills {
		c.groups[pid] = group
		return
	}
	k, ok := parseKill(r.text)
	if !ok {
		return
	}
	if len(c.log.Kills) >= maxKills {
		c.gap()
		return
	}
	k.At = bootTime().Add(at)
	k.Cgroup = c.groups[k.PID]
	delete(c.groups, k.PID)
	c.log.Kills = append(c.log.Kills, k)
}

// clock reads a clock of the kernel; 0 if it cannot.
func clock(id int32) time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// suspended is how long the machine slept since boot: the log's clock stood
// still then, the one of process start times went on.
func suspended() time.Duration {
	return max(0, clock(unix.CLOCK_BOOTTIME)-clock(unix.CLOCK_MONOTONIC))
}

func bootTime() time.Time { return time.Now().Add(-clock(unix.CLOCK_BOOTTIME)) }

// firstPIDNamespace is the inode of the first PID namespace of a machine
// (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const firstPIDNamespace = 0xEFFFFFFC

// samePIDs tells whether the PIDs of a /proc are those of the kernel's log: its
// process 1 is the machine's, or, where that one may not be asked, we are in the
// first namespace ourselves.
func samePIDs(proc string) bool {
	var st unix.Stat_t
	if unix.Stat(proc+"/1/ns/pid", &st) == nil {
		return st.Ino == firstPIDNamespace
	}
	return proc == "/proc" && unix.Stat("/proc/self/ns/pid", &st) == nil && st.Ino == firstPIDNamespace
}
