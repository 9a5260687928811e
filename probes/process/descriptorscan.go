package process

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// holding is a descriptor of some process that leads to something wanted.
type holding struct {
	pid, fd int
	link    string
	info    fdinfo
}

// descriptorScan is one look at the descriptors of all processes for all that
// the waits of a reading are about. Links are read and never followed: to open
// a pipe through /proc would make whyhang one of its ends, and to stat a file
// asks its file system.
//
// It reads the table of each process, not of each thread: a descriptor that
// only a thread with a table of its own has (unshare(2), CLONE_FILES) is not
// found.
type descriptorScan struct {
	r        *Reader
	deadline time.Time

	// links are the wanted "pipe:[N]" and "socket:[N]", names the wanted base
	// names of FIFOs, inodes those of locked files.
	links, names map[string]bool
	inodes       map[uint64]bool

	// found is by link, byName by base name, locked by the file's inode.
	found, byName map[string][]holding
	locked        map[uint64][]holding

	// What keeps the list from being complete.
	denied  int
	late    bool
	outside bool
	// inFlight: descriptors lie unread in some socket; uring: an io_uring has
	// something wanted, or has too many files to say.
	inFlight, uring bool
	// rings are processes that have an io_uring: it may read and write for them
	// while all their threads sleep.
	rings map[int]bool

	// sockets are all sockets that were met, by their fdinfo.
	sockets []string

	link []byte
	buf  []byte
}

func newDescriptorScan(r *Reader, deadline time.Time) *descriptorScan {
	return &descriptorScan{
		r: r, deadline: deadline,
		links: map[string]bool{}, names: map[string]bool{}, inodes: map[uint64]bool{},
		found: map[string][]holding{}, byName: map[string][]holding{}, locked: map[uint64][]holding{},
		link: make([]byte, unix.PathMax), buf: make([]byte, statusFileSize),
	}
}

func (s *descriptorScan) wanted() bool { return len(s.links)+len(s.names)+len(s.inodes) > 0 }

// rounds is how often the list of processes is asked again for those that were
// born during the scan: a child may have what its parent has closed since.
const rounds = 3

// run looks at every process.
func (s *descriptorScan) run() {
	s.outside = !s.r.seesAll()
	done := map[int]bool{}
	for range rounds {
		var born []int
		for _, pid := range s.r.pids() {
			if !done[pid] {
				done[pid] = true
				born = append(born, pid)
			}
		}
		if len(born) == 0 {
			return
		}
		s.processes(born)
	}
}

// processesPerWorker is from where on a second worker pays.
const processesPerWorker = 50

// processes looks at many processes.
func (s *descriptorScan) processes(pids []int) {
	workers := max(1, min(runtime.GOMAXPROCS(0), 4, len(pids)/processesPerWorker))
	parts := make([]*descriptorScan, workers)
	var all sync.WaitGroup
	for i := range parts {
		part := newDescriptorScan(s.r, s.deadline)
		part.links, part.names, part.inodes = s.links, s.names, s.inodes // only read from here on
		parts[i] = part
		all.Go(func() {
			for n := i; n < len(pids) && !part.late; n += workers {
				part.process(pids[n])
				part.late = part.late || time.Now().After(part.deadline)
			}
		})
	}
	all.Wait()
	for _, part := range parts {
		s.add(part)
	}
}

// add takes over what a worker found.
func (s *descriptorScan) add(part *descriptorScan) {
	for link, h := range part.found {
		s.found[link] = append(s.found[link], h...)
	}
	for name, h := range part.byName {
		s.byName[name] = append(s.byName[name], h...)
	}
	for inode, h := range part.locked {
		s.locked[inode] = append(s.locked[inode], h...)
	}
	s.denied += part.denied
	for pid := range part.rings {
		if s.rings == nil {
			s.rings = map[int]bool{}
		}
		s.rings[pid] = true
	}
	s.late, s.uring = s.late || part.late, s.uring || part.uring
	s.sockets = append(s.sockets, part.sockets...)
}

// lookInSockets looks for descriptors that nobody has now, as they lie unread in
// a message (SCM_RIGHTS, unix(7)). It reads a file for each socket of the
// machine, so it is done only where the answer matters.
func (s *descriptorScan) lookInSockets() {
	for n, path := range s.sockets {
		b, err := readAt(unix.AT_FDCWD, path, s.buf)
		if err == nil && parseFDInfo(b).InFlight > 0 {
			s.inFlight = true
			return
		}
		if n%1024 == 1023 && time.Now().After(s.deadline) {
			s.late = true
			return
		}
	}
}

// pids lists the processes there are.
func (r *Reader) pids() []int {
	dir, err := os.Open(r.dir)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 {
			pids = append(pids, n)
		}
	}
	return pids
}

// process looks at one process.
func (s *descriptorScan) process(pid int) {
	n, err := s.directory(pid, s.r.base(pid, 0))
	if err == nil && n > 0 {
		return
	}
	// A kernel thread has none; the first thread of a process that has ended
	// shows none, while others may live.
	b, readErr := readAt(unix.AT_FDCWD, s.r.path(pid, "stat"), s.buf)
	st, parseErr := parseStat(b)
	if readErr != nil || parseErr == nil && st.isKernelThread() {
		return
	}
	if parseErr == nil && (st.State == 'Z' || st.State == 'X') {
		via, _, lives := s.r.alive(pid, st)
		if !lives {
			return
		}
		_, err = s.directory(pid, s.r.base(pid, via))
	}
	if err != nil && !isGone(err) {
		s.denied++
	}
}

// directory looks at one table of descriptors and says how many there are.
func (s *descriptorScan) directory(pid int, base string) (int, error) {
	dir, err := openAt(unix.AT_FDCWD, base+"/fd", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(dir)
	list := make([]byte, 8<<10)
	var names []string
	total := 0
	var refused error
	for {
		n, err := unix.ReadDirent(dir, list)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return total, errors.Join(refused, err)
		}
		_, _, names = unix.ParseDirent(list[:n], -1, names[:0])
		for _, name := range names {
			total++
			n, err := unix.Readlinkat(dir, name, s.link)
			if err == nil {
				s.descriptor(pid, base, name, s.link[:n])
			} else if isDenied(err) {
				refused = err
			}
		}
		if time.Now().After(s.deadline) {
			s.late = true
			return total, refused
		}
	}
}

// descriptor keeps what is wanted.
func (s *descriptorScan) descriptor(pid int, base, name string, link []byte) {
	keep := func(into map[string][]holding, key []byte) {
		if info, ok := s.info(base, name); ok {
			fd, _ := strconv.Atoi(name)
			into[string(key)] = append(into[string(key)], holding{pid, fd, string(link), info})
		}
	}
	switch {
	case len(link) == 0:
	case link[0] == '/':
		if base := baseName(link); s.names[string(base)] {
			keep(s.byName, base)
		}
		// Reading fdinfo of a graphics card asks its driver: not in /dev, but
		// for the files in memory there.
		if len(s.inodes) == 0 || bytes.HasPrefix(link, []byte("/dev/")) && !bytes.HasPrefix(link, []byte("/dev/shm/")) {
			return
		}
		if info, ok := s.info(base, name); ok && len(info.Locks) > 0 {
			fd, _ := strconv.Atoi(name)
			for _, inode := range inodesOf(info.Locks) {
				if s.inodes[inode] {
					s.locked[inode] = append(s.locked[inode], holding{pid, fd, string(link), info})
				}
			}
		}
	case bytes.HasPrefix(link, []byte("pipe:[")):
		if s.links[string(link)] {
			keep(s.found, link)
		}
	case bytes.HasPrefix(link, []byte("socket:[")):
		s.sockets = append(s.sockets, base+"/fdinfo/"+name)
		if s.links[string(link)] {
			keep(s.found, link)
		}
	case string(link) == "anon_inode:[io_uring]":
		// What is registered with an io_uring stays open there when its
		// descriptor is closed; fdinfo lists it (io_uring_register(2)).
		if s.rings == nil {
			s.rings = map[int]bool{}
		}
		s.rings[pid] = true
		b, err := readAt(unix.AT_FDCWD, base+"/fdinfo/"+name, s.buf)
		if err == nil && parseFDInfo(b).UringFiles > 0 {
			s.uring = s.uring || len(b) == len(s.buf) || s.mentions(b)
		}
	}
}

// mentions says whether a text names a pipe or socket that is wanted.
func (s *descriptorScan) mentions(b []byte) bool {
	for link := range s.links {
		if bytes.Contains(b, []byte(link)) {
			return true
		}
	}
	return false
}

func (s *descriptorScan) info(base, fd string) (fdinfo, bool) {
	b, err := readAt(unix.AT_FDCWD, base+"/fdinfo/"+fd, s.buf)
	return parseFDInfo(b), err == nil
}

// baseName is the last part of a path; " (deleted)" belongs to it.
func baseName(link []byte) []byte { return link[bytes.LastIndexByte(link, '/')+1:] }
