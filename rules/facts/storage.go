package facts

import (
	"math"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// AtStorage is a thread that every look of the window found asleep in one and
// the same call, in a place of the kernel where only a file system wakes it.
type AtStorage struct {
	PID, TID int
	// Wait is how the last look found it; At is where it stands in the snapshot,
	// FirstAt where the first one stands.
	Wait        *evidence.StorageWait
	At, FirstAt []any
	// Looks is how many looks found it so, MS the time between the first and
	// the last of them.
	Looks int
	MS    float64
	// Asleep: by the scheduler's counters it did not run in all that time.
	Asleep bool
	// Network: the file system is served by another process or machine, and may
	// pause; so may one that is not known.
	Network bool
	// Still: its process read nothing in that time, by any counter.
	Still bool
}

// Below these, in bytes over the whole window, a process has read nothing: a
// server that waits still reads a clock or a library's page now and then.
const (
	stillRead   = 64 << 10
	stillMapped = 128 << 10
)

// storageOf finds the threads that waited for storage in every look at threads
// before whyhang asked anything.
func storageOf(s *evidence.Snapshot) []AtStorage {
	var looks []int
	for n := range s.Frames {
		if s.Frames[n].During == "" && s.Frames[n].StorageLooked {
			looks = append(looks, n)
		}
	}
	if len(looks) < 2 {
		return nil
	}
	var stuck []AtStorage
	first, last := &s.Frames[looks[0]], &s.Frames[looks[len(looks)-1]]
	for k := range last.Storage {
		w := &last.Storage[k]
		a := AtStorage{PID: w.PID, TID: w.TID, Wait: w, At: []any{"frames", looks[len(looks)-1], "storage", k},
			Looks: len(looks), MS: last.SinceMS - first.SinceMS, Network: w.Mount == nil || NetworkFS(w.Mount.FSType)}
		if a.throughout(s, looks) {
			a.Still = still(first, last, w.PID)
			stuck = append(stuck, a)
		}
	}
	return stuck
}

// throughout holds that each look found the thread in the same call.
func (a *AtStorage) throughout(s *evidence.Snapshot, looks []int) bool {
	for i, n := range looks {
		k := storageAt(&s.Frames[n], a.PID, a.TID)
		if k < 0 {
			return false
		}
		w := &s.Frames[n].Storage[k]
		if w.Syscall != a.Wait.Syscall {
			return false
		}
		if i == 0 {
			a.FirstAt = []any{"frames", n, "storage", k}
			a.Asleep = w.RunNS != nil && a.Wait.RunNS != nil && *w.RunNS == *a.Wait.RunNS &&
				w.Slices != nil && a.Wait.Slices != nil && *w.Slices == *a.Wait.Slices
		}
	}
	return true
}

func storageAt(f *evidence.Frame, pid, tid int) int {
	for k := range f.Storage {
		if f.Storage[k].TID == tid && f.Storage[k].PID == pid {
			return k
		}
	}
	return -1
}

// still tells whether a process read nothing between two looks: neither by
// calls, nor from storage, nor by mapping pages in, nor by moving on in a file.
// Counters that could not be read speak neither way.
func still(a, b *evidence.Frame, pid int) bool {
	i, j := ProcessAt(a, pid), ProcessAt(b, pid)
	if i < 0 || j < 0 {
		return false
	}
	p, q := &a.Processes[i], &b.Processes[j]
	within := func(x, y *uint64, limit float64) bool {
		return x == nil || y == nil || math.Abs(float64(*y)-float64(*x)) < limit
	}
	if !within(p.ReadCharBytes, q.ReadCharBytes, stillRead) || !within(p.ReadBytes, q.ReadBytes, stillRead) || !within(p.RSSFileBytes, q.RSSFileBytes, stillMapped) {
		return false
	}
	for m := range p.Files {
		for n := range q.Files {
			if p.Files[m].Path == q.Files[n].Path && !within(p.Files[m].PosBytes, q.Files[n].PosBytes, stillRead) {
				return false
			}
		}
	}
	return true
}

// networkFS are file systems, as mountinfo names them, whose data come from
// another process or machine.
var networkFS = map[string]bool{"nfs": true, "nfs4": true, "cifs": true, "smb3": true, "smbfs": true, "ceph": true, "lustre": true, "gpfs": true,
	"beegfs": true, "fhgfs": true, "9p": true, "virtiofs": true, "afs": true, "wekafs": true, "orangefs": true, "glusterfs": true, "gfs2": true,
	"ocfs2": true, "panfs": true, "prl_fs": true, "vboxsf": true, "fuse": true}

// NetworkFS tells file systems that may pause from local ones.
func NetworkFS(fsType string) bool {
	return networkFS[fsType] || strings.HasPrefix(fsType, "fuse.")
}
