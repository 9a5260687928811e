package process

import "fmt"

// doubts says why other processes may hold what was looked for.
func (s *descriptorScan) doubts(w *blockedWait) {
	if s.late {
		w.unsure(fmt.Sprintf("the descriptors of all processes could not be read within %s", blockersLimit))
	}
	if s.inFlight {
		w.unsure("descriptors are on their way in a message that a socket holds")
	}
	if s.uring {
		w.unsure("an io_uring holds it, too")
	}
	for _, k := range w.b.Wakers {
		if s.rings[k.PID] {
			w.unsure(fmt.Sprintf("process %d has an io_uring, which may read and write while its threads sleep", k.PID))
			break
		}
	}
	if s.denied > 0 {
		w.doubt(fmt.Sprintf("the descriptors of %d processes of other users could not be read", s.denied))
	}
	if s.outside {
		w.doubt("processes outside this PID namespace, or hidden ones, are not seen")
	}
}

// seesAll says whether this /proc shows every process of the machine: that of
// the first PID namespace does, in which process 2 is the kernel's kthreadd.
// With hidepid it is not seen, as others are not.
func (r *Reader) seesAll() bool {
	s, err := readStat(r.base(2, 0), make([]byte, statusFileSize))
	return err == nil && s.isKernelThread()
}
