package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// memory reads words of a target's memory through /proc/PID/mem, which works
// for every /proc that is mounted, and where a seccomp profile forbids
// process_vm_readv.
//
// A read of a page that comes from a file may have to fetch it: from a dead
// FUSE or NFS server that never ends, and the reader cannot even be killed.
// So only pages that cannot come from such a file are read: anonymous ones,
// shared memory, and of private file mappings those that were written to and
// so became anonymous.
type memory struct {
	mem, pagemap int
	maps         []mapping
	shared       map[string]bool // devices of shared memory
	pageSize     uint64
}

var (
	errUnmapped = errors.New("address is not mapped")
	errOfFile   = errors.New("page comes from a file")
)

// openMemory opens the memory of a process. It may wait for the target's
// mmap_lock, so the caller holds a deadline.
func (r *Reader) openMemory(pid, via int) (*memory, error) {
	dir := r.base(pid, via)
	mem, err := openAt(unix.AT_FDCWD, dir+"/mem", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	m := &memory{mem: mem, pagemap: -1, pageSize: r.pageSize}
	if m.maps, err = readMaps(dir + "/maps"); err != nil {
		m.close()
		return nil, err
	}
	// Without pagemap, pages of private file mappings are not read.
	if fd, err := openAt(unix.AT_FDCWD, dir+"/pagemap", unix.O_RDONLY); err == nil {
		m.pagemap = fd
	}
	m.shared = map[string]bool{}
	if d := kernelShm(); d != "" {
		m.shared[d] = true
	}
	if mounts, err := r.mounts(pid, via); err == nil {
		for _, mt := range mounts {
			if mt.FSType == "tmpfs" || mt.FSType == "ramfs" {
				m.shared[mt.Device] = true
			}
		}
	}
	return m, nil
}

func (m *memory) close() {
	unix.Close(m.mem)
	if m.pagemap >= 0 {
		unix.Close(m.pagemap)
	}
}

// read fills buf from addr, or returns why not: part of it is no read at all.
func (m *memory) read(addr uint64, buf []byte) error {
	end := addr + uint64(len(buf))
	if end < addr || end > 1<<63 {
		return errUnmapped
	}
	for at := addr; at < end; {
		mp := mappingOf(m.maps, at)
		if mp == nil || !mp.Read {
			return errUnmapped
		}
		if err := m.mayRead(mp, at, min(end, mp.End)); err != nil {
			return err
		}
		at = mp.End
	}
	for done := 0; done < len(buf); {
		n, err := unix.Pread(m.mem, buf[done:], int64(addr)+int64(done))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return errUnmapped // the process has ended
		default:
			done += n
		}
	}
	return nil
}

// readSome is read up to the end of the mapping that holds addr.
func (m *memory) readSome(addr uint64, buf []byte) ([]byte, error) {
	if mp := mappingOf(m.maps, addr); mp != nil && mp.End-addr < uint64(len(buf)) {
		buf = buf[:mp.End-addr]
	}
	if err := m.read(addr, buf); err != nil {
		return nil, err
	}
	return buf, nil
}

// mayRead says whether the pages of [from, to) in one mapping can be read
// without asking a file system.
func (m *memory) mayRead(mp *mapping, from, to uint64) error {
	switch {
	case isAnonymous(mp), m.isShared(mp):
		return nil
	case mp.Shared || !mp.Write:
		return errOfFile
	}
	for page := from / m.pageSize; page <= (to-1)/m.pageSize; page++ {
		if err := m.wasWritten(page); err != nil {
			return err
		}
	}
	return nil
}

// isAnonymous tells mappings without a file. vvar and vdso are none of them:
// the kernel refuses to read the first.
func isAnonymous(mp *mapping) bool {
	if mp.Inode != 0 {
		return false
	}
	return mp.Path == "" || mp.Path == "[heap]" || strings.HasPrefix(mp.Path, "[stack") ||
		strings.HasPrefix(mp.Path, "[anon")
}

// isShared tells shared memory: memfd_create, shm_open, System V segments,
// anonymous shared mappings. In containers /dev is a tmpfs with device files
// on it, which are something else.
func (m *memory) isShared(mp *mapping) bool {
	if mp.Inode == 0 && !strings.HasPrefix(mp.Path, "/SYSV") || !m.shared[mp.Device] {
		return false
	}
	return !strings.HasPrefix(mp.Path, "/dev/") || strings.HasPrefix(mp.Path, "/dev/shm/") || mp.Path == "/dev/zero"
}

// Bits of a pagemap entry (Documentation/admin-guide/mm/pagemap.rst). They are
// readable without privileges, unlike the page numbers.
const (
	pagePresent = 1 << 63
	pageOfFile  = 1 << 61
)

// wasWritten says whether a page of a private file mapping has become
// anonymous: present and no page of the file any more.
func (m *memory) wasWritten(page uint64) error {
	if m.pagemap < 0 || page > 1<<59 {
		return errOfFile
	}
	var entry [8]byte
	if n, err := unix.Pread(m.pagemap, entry[:], int64(page*8)); err != nil || n != len(entry) {
		return errOfFile
	}
	if e := binary.NativeEndian.Uint64(entry[:]); e&pagePresent == 0 || e&pageOfFile != 0 {
		return errOfFile
	}
	return nil
}

// kernelShm is the device of the kernel's own shared-memory file system, which
// no mount shows. A memory file of our own tells: all processes share it.
var kernelShm = sync.OnceValue(func() string {
	fd, err := unix.MemfdCreate("whyhang", unix.MFD_CLOEXEC)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return ""
	}
	return formatDevice(unix.Major(st.Dev), unix.Minor(st.Dev))
})

func (m *memory) uint64(addr uint64) (uint64, error) {
	var b [8]byte
	if err := m.read(addr, b[:]); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

func hexAddr(a uint64) string { return fmt.Sprintf("0x%x", a) }
