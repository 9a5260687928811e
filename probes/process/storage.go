package process

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/redact"
)

// fileSystemWaits are beginnings of the kernel functions (wchan) in which
// threads sleep until storage answers. The first group is every file system's:
// the page cache and the block layer.
var fileSystemWaits = []string{
	"folio_wait_", "__folio_lock", "wait_on_page_bit", "__lock_page", "filemap_", "io_schedule", "bit_wait_io", "blk_", "submit_bio_wait", "wait_on_buffer", "__wait_on_buffer",
	"request_wait_answer", "fuse_", "__fuse_", // FUSE and virtiofs
	"rpc_wait_bit_killable", "__rpc_", "rpc_", "nfs_", "nfs4_", "nfs3_", "nfsv", "pnfs_",
	"ceph_", "netfs_", "smb2_", "cifs_", "wait_for_response", "SMB2_", "p9_", "v9fs_", "afs_",
	"ptlrpc_", "ll_", "osc_", "cl_sync_io", "ldlm_", // Lustre
	"cxiWait", "mmfs", // GPFS
	"Fhgfs", "MessagingTk", // BeeGFS
	"xfs_", "ext4_", "jbd2_", "btrfs_", "zfs_", "zio_", "dmu_", "ovl_",
}

// noFileSystemWaits begin like one of those, and are waits for work.
var noFileSystemWaits = []string{
	"fuse_dev_", // a FUSE server that waits for a request
}

func waitsForFileSystem(wchan string) bool {
	for _, p := range noFileSystemWaits {
		if strings.HasPrefix(wchan, p) {
			return false
		}
	}
	for _, p := range fileSystemWaits {
		if strings.HasPrefix(wchan, p) {
			return true
		}
	}
	return false
}

// kindsOfWait are the file systems that a kernel function belongs to, by its
// beginning; those of the page cache belong to all.
var kindsOfWait = map[string]func(fsType string) bool{
	"request_wait_answer": isFUSE, "fuse_": isFUSE, "__fuse_": isFUSE,
	"rpc_": isNFS, "__rpc_": isNFS, "nfs": isNFS, "pnfs_": isNFS,
	"ceph_": func(t string) bool { return t == "ceph" },
	"smb2_": isCIFS, "SMB2_": isCIFS, "cifs_": isCIFS, "wait_for_response": isCIFS,
	"p9_": is9P, "v9fs_": is9P,
	"ptlrpc_": isLustre, "ll_": isLustre, "osc_": isLustre, "cl_sync_io": isLustre, "ldlm_": isLustre,
}

func isFUSE(t string) bool {
	return t == "fuse" || t == "fuseblk" || strings.HasPrefix(t, "fuse.") || t == "virtiofs"
}
func isNFS(t string) bool    { return t == "nfs" || t == "nfs4" }
func isCIFS(t string) bool   { return t == "cifs" || t == "smb3" }
func is9P(t string) bool     { return t == "9p" }
func isLustre(t string) bool { return t == "lustre" }

// kindOfWait is the file system a kernel function belongs to; nil for any.
func kindOfWait(wchan string) func(string) bool {
	for p, is := range kindsOfWait {
		if strings.HasPrefix(wchan, p) {
			return is
		}
	}
	return nil
}

// fdArgument is which argument of a call is the descriptor it reads or writes;
// -1 if it has none.
func fdArgument(number uint64) int {
	switch number {
	case unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_PREADV, unix.SYS_PREADV2, unix.SYS_READAHEAD,
		unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_WRITEV, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_GETDENTS64, unix.SYS_FSTAT,
		unix.SYS_COPY_FILE_RANGE, unix.SYS_FADVISE64, unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE:
		return 0
	case unix.SYS_SENDFILE:
		return 1
	}
	return -1
}

// Bounds on one look.
const (
	maxStorageWaits  = 256
	maxStoragePerPID = 16
	storageLimit     = 500 * time.Millisecond
)

// StorageWaits finds the threads that wait for a file system in these frames,
// and the file and mount of each. It asks no file system: the name of a
// descriptor's file (readlink of /proc/PID/fd/N) and the list of mounts are in
// memory. The frames must be of one look, as descriptors are closed and used
// again.
func (r *Reader) StorageWaits(ctx context.Context, procs []evidence.Process, frames []evidence.ProcessFrame) []evidence.StorageWait {
	byPID := map[int]*evidence.Process{}
	for i := range procs {
		byPID[procs[i].PID] = &procs[i]
	}
	var all []evidence.StorageWait
	for i := range frames {
		f, p := &frames[i], byPID[frames[i].PID]
		if p == nil || len(all) >= maxStorageWaits {
			continue
		}
		waits := storageSleepers(f)
		if len(waits) == 0 {
			continue
		}
		weights := weightsInHand(p, f)
		found := within(ctx, storageLimit, func() []evidence.StorageWait { return r.placeWaits(p.PID, waits, weights) })
		if found.Done {
			waits = found.Value
		}
		for _, w := range waits {
			// Where the kernel names no functions, only a known file tells.
			if w.Wchan != "" || weightsByName(w.Path, nil) != noWeights {
				all = append(all, w)
			}
		}
	}
	return all
}

// storageSleepers are the threads of a look that may wait for a file system.
func storageSleepers(f *evidence.ProcessFrame) []evidence.StorageWait {
	var waits []evidence.StorageWait
	for i := range f.Threads {
		t := &f.Threads[i]
		if t.State != "D" && t.State != "S" || len(waits) >= maxStoragePerPID {
			continue
		}
		c, inCall := parseCall([]byte(t.Syscall))
		named := t.Wchan == "" && inCall && fdArgument(c.Number) >= 0
		// Locks of files wait for whoever holds them, also where a file system
		// hands them out.
		isLock := inCall && (c.Number == unix.SYS_FLOCK || c.Number == unix.SYS_FCNTL)
		if isLock || !waitsForFileSystem(t.Wchan) && !named {
			continue
		}
		waits = append(waits, evidence.StorageWait{PID: f.PID, TID: t.TID, Name: t.Name, State: t.State, Syscall: t.Syscall, Wchan: t.Wchan, RunNS: t.RunNS, Slices: t.Slices})
	}
	return waits
}

// weightsInHand are the weight files that a process has mapped, by a look and by
// its discovery; those it has open if it has none mapped.
func weightsInHand(p *evidence.Process, f *evidence.ProcessFrame) []string {
	var paths []string
	for i := range p.Files {
		if p.Files[i].Mapped {
			paths = append(paths, p.Files[i].Path)
		}
	}
	for i := range f.Files {
		if f.Files[i].ResidentBytes != nil || f.Files[i].FD < 0 {
			paths = append(paths, f.Files[i].Path)
		}
	}
	if len(paths) > 0 {
		return paths
	}
	for i := range p.Files {
		paths = append(paths, p.Files[i].Path)
	}
	for i := range f.Files {
		paths = append(paths, f.Files[i].Path)
	}
	return paths
}

// placeWaits names the file and the mount of each wait.
func (r *Reader) placeWaits(pid int, waits []evidence.StorageWait, weights []string) []evidence.StorageWait {
	waits = append([]evidence.StorageWait(nil), waits...)
	mounts, _ := r.mounts(pid, 0)
	buf := make([]byte, statusFileSize)
	for i := range waits {
		w := &waits[i]
		dir := r.path(pid, "task/"+strconv.Itoa(w.TID))
		if c, ok := parseCall([]byte(w.Syscall)); ok {
			if arg := fdArgument(c.Number); arg >= 0 {
				w.Path, w.Mount = fileOfCall(dir, int(int32(uint32(c.Args[arg]))), mounts, buf)
			}
		}
		kind := kindOfWait(w.Wchan)
		if w.Mount != nil && kind != nil && !kind(w.Mount.FSType) && w.Mount.FSType != "overlay" {
			// A fault on another file within the call: it is not the descriptor's
			// that it waits for.
			w.Path, w.Mount = "", nil
		}
		if w.Mount == nil && w.Wchan != "" {
			w.Mount = guessMount(mounts, weights, kind)
			w.Guessed = w.Mount != nil
		}
	}
	return waits
}

// fileOfCall is the file behind a descriptor and its mount; "" for what is no
// file. mnt_id of fdinfo is exact where a path alone may be covered by another
// mount.
func fileOfCall(dir string, fd int, mounts []mount, buf []byte) (string, *evidence.Mount) {
	if fd < 0 {
		return "", nil
	}
	n := strconv.Itoa(fd)
	target, err := os.Readlink(dir + "/fd/" + n)
	target = strings.TrimSuffix(target, " (deleted)")
	if err != nil || !isFilePath(target) || strings.HasPrefix(target, "/dev/") && !strings.HasPrefix(target, "/dev/shm/") {
		return "", nil
	}
	if b, err := readAt(unix.AT_FDCWD, dir+"/fdinfo/"+n, buf); err == nil {
		if id := parseFDInfo(b).MountID; id != 0 {
			for i := range mounts {
				if mounts[i].ID == id {
					return target, mounts[i].evidence()
				}
			}
		}
	}
	if m := mountOf(mounts, target); m != nil {
		return target, m.evidence()
	}
	return target, nil
}

// guessMount is the mount of the weights in hand if they all lie on one and it
// is of the kind; else the only mount of the kind.
func guessMount(mounts []mount, weights []string, kind func(string) bool) *evidence.Mount {
	var one *mount
	for _, path := range weights {
		m := mountOf(mounts, path)
		if m == nil || one != nil && one.ID != m.ID {
			return nil
		}
		one = m
	}
	if one != nil && (kind == nil || kind(one.FSType)) {
		return one.evidence()
	}
	if kind == nil {
		return nil
	}
	one = nil
	for i := range mounts {
		if !kind(mounts[i].FSType) {
			continue
		}
		if one != nil {
			return nil
		}
		one = &mounts[i]
	}
	if one == nil {
		return nil
	}
	return one.evidence()
}

func (m *mount) evidence() *evidence.Mount {
	return &evidence.Mount{ID: m.ID, Point: m.Point, FSType: m.FSType, Source: redact.String(m.Source)}
}
