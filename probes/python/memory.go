package python

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// Memory is the memory of the target. Read fills buf from addr or says why
// not; it must not wait for a file system.
type Memory interface {
	Read(addr uint64, buf []byte) error
}

// Limits bound one reading of an interpreter.
type Limits struct {
	// Reads is how many reads of memory may be done, Bytes how much they may
	// hold and Time how long they may take in all.
	Reads int
	Bytes uint64
	Time  time.Duration
	// Threads and Frames (of each thread) are how many are read.
	Threads, Frames int
}

// DefaultLimits are more than a healthy server needs: one with 131 threads
// takes 1,500 reads and 5 ms.
var DefaultLimits = Limits{Reads: 60_000, Bytes: 64 << 20, Time: time.Second, Threads: 512, Frames: 128}

// errSpent ends a reading that found more than it may read.
var errSpent = errors.New("more of the interpreter than whyhang reads")

// memory is a Memory with a budget. It keeps what it reads by the page: frames
// of a thread stand side by side, and a call costs more than its bytes. What a
// sleeping thread has there does not change meanwhile.
type memory struct {
	m     Memory
	reads int
	left  uint64 // bytes
	until time.Time
	pages map[uint64][]byte // nil: cannot be read whole
	// slab is room for more pages, taken are all slabs.
	slab  []byte
	taken []*[slabBytes]byte
}

const pageBytes = 4096

func newMemory(m Memory, limits Limits) *memory {
	return &memory{m: m, reads: limits.Reads, left: limits.Bytes, until: time.Now().Add(limits.Time), pages: map[uint64][]byte{}}
}

// read reads through the pages.
func (m *memory) read(addr uint64, buf []byte) error {
	if len(buf) > pageBytes/2 {
		return m.readNow(addr, buf)
	}
	for done := 0; done < len(buf); {
		at := addr + uint64(done)
		page := m.page(at / pageBytes)
		if page == nil || at < addr {
			return m.readNow(addr, buf)
		}
		done += copy(buf[done:], page[at%pageBytes:])
	}
	return nil
}

func (m *memory) page(n uint64) []byte {
	if page, ok := m.pages[n]; ok {
		return page
	}
	if len(m.slab) < pageBytes {
		m.slab = slabs.Get().(*[slabBytes]byte)[:]
		m.taken = append(m.taken, (*[slabBytes]byte)(m.slab))
	}
	page := m.slab[:pageBytes:pageBytes]
	if m.readNow(n*pageBytes, page) != nil {
		m.pages[n] = nil
		return nil
	}
	m.slab = m.slab[pageBytes:]
	m.pages[n] = page
	return page
}

// slabs are memory for pages, used again by the next reading: clearing it would
// cost as much as the reading.
var slabs = sync.Pool{New: func() any { return new([slabBytes]byte) }}

const slabBytes = 64 * pageBytes

// release gives the pages back. Nothing that was read may point into them.
func (m *memory) release() {
	for _, s := range m.taken {
		slabs.Put(s)
	}
	m.taken, m.slab, m.pages = nil, nil, map[uint64][]byte{}
}

// readNow reads past the pages.
func (m *memory) readNow(addr uint64, buf []byte) error {
	if m.reads <= 0 || uint64(len(buf)) > m.left || m.reads%64 == 0 && time.Now().After(m.until) {
		m.reads = 0
		return errSpent
	}
	m.reads--
	m.left -= uint64(len(buf))
	return m.m.Read(addr, buf)
}

func (m *memory) spent() bool { return m.reads <= 0 }

// bytes reads n bytes into a buffer of their own.
func (m *memory) bytes(addr, n uint64) ([]byte, error) {
	if n > m.left {
		m.reads = 0
		return nil, errSpent
	}
	buf := make([]byte, n)
	if err := m.read(addr, buf); err != nil {
		return nil, err
	}
	return buf, nil
}

func (m *memory) word(addr uint64) (uint64, error) {
	var buf [8]byte
	if err := m.read(addr, buf[:]); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(buf[:]), nil
}

// wordAt is the 64-bit word at an offset of buf; 0 if it lies outside, which
// no caller takes for an address.
func wordAt(buf []byte, at uint64) uint64 {
	if at > uint64(len(buf)) || uint64(len(buf))-at < 8 {
		return 0
	}
	return binary.NativeEndian.Uint64(buf[at:])
}

// intAt is the same for a 32-bit int.
func intAt(buf []byte, at uint64) int32 {
	if at > uint64(len(buf)) || uint64(len(buf))-at < 4 {
		return 0
	}
	return int32(binary.NativeEndian.Uint32(buf[at:]))
}

func byteAt(buf []byte, at uint64) byte {
	if at >= uint64(len(buf)) {
		return 0
	}
	return buf[at]
}
