package process

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// capSysPtrace is the bit of CAP_SYS_PTRACE (capabilities(7)).
const capSysPtrace = 19

// Host says what machine this is and what whyhang may do on it.
func (r *Reader) Host() evidence.Host {
	h := evidence.Host{
		Arch:      runtime.GOARCH,
		CPUs:      runtime.NumCPU(),
		UID:       os.Geteuid(),
		YamaScope: r.yamaScope(),
		CapPtrace: hasPtrace(),
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
		h.Arch = unix.ByteSliceToString(u.Machine[:])
	}
	// NumCPU counts those whyhang may use, which in a container are fewer.
	if b, err := os.ReadFile(r.dir + "/stat"); err == nil {
		if n := countCPUs(b); n > 0 {
			h.CPUs = n
		}
	}
	_, h.ZoneOffsetS = time.Now().Zone()
	return h
}

// countCPUs counts the cpuN lines of /proc/stat: the online CPUs.
func countCPUs(procStat []byte) int {
	n := 0
	for line := range bytes.Lines(procStat) {
		if len(line) > 3 && bytes.HasPrefix(line, []byte("cpu")) && line[3] >= '0' && line[3] <= '9' {
			n++
		}
	}
	return n
}

// yamaScope is nil where the kernel has no Yama (Documentation/admin-guide/
// LSM/Yama.rst).
func (r *Reader) yamaScope() *int {
	b, err := os.ReadFile(r.dir + "/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return nil
	}
	return &n
}

// hasPtrace says whether whyhang itself holds CAP_SYS_PTRACE. Its own rights
// stand in its own /proc, whichever one is looked at.
func hasPtrace() bool {
	s, err := readStatus("/proc/self", make([]byte, statusFileSize))
	return err == nil && s.CapEff&(1<<capSysPtrace) != 0
}
