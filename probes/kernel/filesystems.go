package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// roomLimit is how long a file system may take to answer.
const roomLimit = 2 * time.Second

// maxPlaces bounds how many places are asked about.
const maxPlaces = 48

// place is a directory or file that the server writes to.
type place struct {
	pid int
	uid int
	// shown is its path by the view of the process; root and at how it is reached.
	shown, root, at string
	// what it is to the server: "HOME", "fd 1".
	what string
}

// homeVariables name directories of caches; the caches lie in or below them.
var homeVariables = []string{"HOME", "XDG_CACHE_HOME", "HF_HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "VLLM_CACHE_ROOT", "FLASHINFER_WORKSPACE_BASE", "CUDA_CACHE_PATH"}

// Variables are the names of the environment variables that FileSystems asks
// for, to be kept with each process.
func Variables() []string { return slices.Clone(homeVariables) }

// FileSystems asks for the room on the file systems that the tree writes to:
// those of its log, its working directory, its caches, /tmp and /dev/shm. Each
// is asked in a child, as a dead mount hangs who asks.
func (r *Reader) FileSystems(ctx context.Context, procs []evidence.Process) (found []evidence.FileSystem, unread []evidence.Unread) {
	byDevice := map[uint64]int{}
	stuck := map[string]error{} // by mount: what hung once is not asked again
	for _, p := range r.places(procs) {
		mount, fsType := r.mountOf(p)
		if err := stuck[mount]; err != nil {
			unread = append(unread, unreadPlace(p, err))
			continue
		}
		a, err := r.ask(ctx, roomLimit, question{Op: opRoom, Root: p.root, Path: p.at})
		if ctx.Err() != nil {
			return found, unread
		}
		if err != nil {
			if _, ok := errors.AsType[*probes.StuckError](err); ok {
				stuck[mount] = err
			}
			if !errors.Is(err, fs.ErrNotExist) {
				unread = append(unread, unreadPlace(p, err))
			}
			continue
		}
		room := a.Room
		use := evidence.Use{PID: p.pid, What: p.what, Path: p.shown}
		if n, ok := byDevice[room.Device]; ok {
			found[n].For = append(found[n].For, use)
			continue
		}
		byDevice[room.Device] = len(found)
		found = append(found, evidence.FileSystem{PID: p.pid, Mount: mount, FSType: fsType, For: []evidence.Use{use}, UID: p.uid,
			SizeBytes: room.Size, FreeBytes: room.Free, AvailBytes: room.Avail, Inodes: room.Inodes, FreeInodes: room.FreeInodes, ReadOnly: room.ReadOnly})
	}
	return found, unread
}

func unreadPlace(p place, err error) evidence.Unread {
	u := evidence.Unread{What: "room at " + p.shown}
	u.Status, u.Why = probes.Classify(err)
	if stuck, ok := errors.AsType[*probes.StuckError](err); ok {
		u.Status, u.Why = evidence.Timeout, stuck.Error()
	}
	if errors.Is(err, fs.ErrPermission) {
		u.Status, u.Hint = evidence.Denied, fmt.Sprintf("sudo df -h %s; sudo df -i %s", probes.Quoted(p.shown), probes.Quoted(p.shown))
	}
	return u
}

// places lists where the tree writes, each once.
func (r *Reader) places(procs []evidence.Process) []place {
	var all []place
	seen := map[string]bool{}
	add := func(p *evidence.Process, shown, root, at, what string) {
		key := p.MntNS + " " + shown
		if seen[key] || !path.IsAbs(shown) || len(all) >= maxPlaces {
			return
		}
		seen[key] = true
		all = append(all, place{pid: p.PID, uid: p.UID, shown: shown, root: root, at: at, what: what})
	}
	for i := range procs {
		p := &procs[i]
		if p.State == "Z" || p.State == "X" || p.State == "" || p.Kernel {
			continue
		}
		for _, fd := range []string{"1", "2"} {
			// What a descriptor leads to is asked through the descriptor: the file
			// may be deleted, or have another name there.
			link, err := os.Readlink(r.path(p.PID, "fd/"+fd))
			if err == nil && path.IsAbs(link) && !strings.HasPrefix(link, "/dev/") {
				add(p, link, "", r.path(p.PID, "fd/"+fd), "fd "+fd)
			}
		}
		below := func(shown, what string) {
			if clean := path.Clean(shown); path.IsAbs(shown) {
				add(p, clean, r.path(p.PID, "root"), clean, what)
			}
		}
		below("/tmp", "/tmp")
		below("/dev/shm", "/dev/shm")
		for _, name := range homeVariables {
			below(p.Env[name], name)
		}
		if p.Cwd != "" {
			add(p, p.Cwd, "", r.path(p.PID, "cwd"), "working directory")
		}
	}
	return all
}

// mountOf finds the mount a place lies on in the list of the process; reading
// the list asks none of the file systems in it.
func (r *Reader) mountOf(p place) (point, fsType string) {
	proc, err := r.fs.Proc(p.pid)
	if err != nil {
		return p.shown, ""
	}
	infos, err := proc.MountInfo()
	if err != nil {
		return p.shown, ""
	}
	best := -1
	for _, i := range infos {
		at := unescape(i.MountPoint)
		if len(at) >= best && (at == "/" || p.shown == at || strings.HasPrefix(p.shown, at+"/")) {
			best, point, fsType = len(at), at, i.FSType
		}
	}
	if best < 0 {
		return p.shown, ""
	}
	return point, fsType
}
