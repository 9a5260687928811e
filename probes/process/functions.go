package process

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/ianlancetaylor/demangle"
)

// This file runs in the child: the files belong to the target and may make the
// reader crash or take all memory.

// function is what lies at a place in a file.
type function struct {
	// At is the place: an offset in the file.
	At uint64 `json:"at"`
	// Behind: a call instruction ends there, so it may be a return address.
	Behind bool `json:"behind,omitempty"`
	// Name is readable; "" if the file has none for it.
	Name string `json:"name,omitempty"`
}

// Bounds of what a file can make the child do.
const (
	maxSymbols     = 16 << 20 // of 24 bytes each; the largest libraries have a million
	maxRawName     = 4 << 10
	maxFunction    = 200 // bytes of a readable name
	demangleExpand = 14  // 2^n: more a name may not grow to
	maxPlaces      = 1 << 12
)

// symbolSize is that of an Elf64_Sym: name, info, other, section, value, size.
const symbolSize = 24

// functionsAt names the functions at offsets of an ELF file. The table of
// symbols is read piece by piece, so that its size costs time only. Symbols of
// 32-bit files are not read.
func functionsAt(f io.ReaderAt, offsets []uint64) ([]function, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, syscall.ENOEXEC
	}
	if len(offsets) > maxPlaces {
		offsets = offsets[:maxPlaces]
	}
	found := make([]function, len(offsets))
	addrs := make([]placed, 0, len(offsets))
	for i, at := range offsets {
		found[i] = function{At: at, Behind: isBehindCall(f, e.Machine, at)}
		if addr, ok := addressOf(e, at); ok {
			addrs = append(addrs, placed{addr: addr, index: i})
		}
	}
	table := e.Section(".symtab")
	if table == nil || table.Type == elf.SHT_NOBITS {
		table = e.Section(".dynsym")
	}
	if table == nil || e.Class != elf.ELFCLASS64 || len(addrs) == 0 {
		return found, nil
	}
	if err := nameAll(f, e, table, addrs); err != nil {
		return nil, err
	}
	for _, a := range addrs {
		found[a.index].Name = a.name
	}
	return found, nil
}

// placed is an address whose function is looked for.
type placed struct {
	addr  uint64
	index int
	// The smallest function around it so far, by its name's place.
	size     uint64
	nameAt   uint32
	hasBest  bool
	name     string
	isGlobal bool
}

// nameAll finds the smallest function around each address.
func nameAll(f io.ReaderAt, e *elf.File, table *elf.Section, addrs []placed) error {
	if table.Flags&elf.SHF_COMPRESSED != 0 || int(table.Link) >= len(e.Sections) || table.Size/symbolSize > maxSymbols {
		return syscall.ENOEXEC
	}
	slices.SortFunc(addrs, func(a, b placed) int {
		if a.addr < b.addr {
			return -1
		}
		return 1
	})
	low, high := addrs[0].addr, addrs[len(addrs)-1].addr
	buf := make([]byte, symbolSize*4096)
	for at := uint64(0); at+symbolSize <= table.Size; {
		n, err := f.ReadAt(buf[:min(uint64(len(buf)), table.Size-at)], int64(table.Offset+at))
		if n < symbolSize {
			if errors.Is(err, io.EOF) || err == nil {
				return syscall.ENOEXEC
			}
			return err
		}
		n -= n % symbolSize
		at += uint64(n)
		for b := buf[:n]; len(b) > 0; b = b[symbolSize:] {
			value, size := e.ByteOrder.Uint64(b[8:]), e.ByteOrder.Uint64(b[16:])
			if value > high || size == 0 || value+size < low || value+size < value {
				continue
			}
			kind := elf.ST_TYPE(b[4])
			if kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC || e.ByteOrder.Uint16(b[6:]) == uint16(elf.SHN_UNDEF) {
				continue
			}
			global := elf.ST_BIND(b[4]) == elf.STB_GLOBAL
			// A return address may be the byte behind its function.
			i, _ := slices.BinarySearchFunc(addrs, value, func(p placed, v uint64) int {
				if p.addr <= v {
					return -1
				}
				return 1
			})
			for ; i < len(addrs) && addrs[i].addr <= value+size; i++ {
				p := &addrs[i]
				if !p.hasBest || size < p.size || size == p.size && global && !p.isGlobal {
					p.hasBest, p.size, p.nameAt, p.isGlobal = true, size, e.ByteOrder.Uint32(b), global
				}
			}
		}
	}
	names := e.Sections[table.Link]
	for i := range addrs {
		if addrs[i].hasBest && uint64(addrs[i].nameAt) < names.Size {
			addrs[i].name = readableName(nameAt(f, names, addrs[i].nameAt))
		}
	}
	return nil
}

func nameAt(f io.ReaderAt, names *elf.Section, at uint32) string {
	b := make([]byte, min(maxRawName, names.Size-uint64(at)))
	n, _ := f.ReadAt(b, int64(names.Offset)+int64(at))
	name, _, _ := strings.Cut(string(b[:n]), "\x00")
	return name
}

// readableName undoes the mangling of C++ and Rust, and keeps what can be shown.
func readableName(name string) string {
	name = demangle.Filter(name, demangle.NoParams, demangle.NoClones, demangle.MaxLength(demangleExpand))
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return '?'
		}
		return r
	}, name)
	if len(name) > maxFunction {
		name = strings.ToValidUTF8(name[:maxFunction], "") + "…"
	}
	return name
}

// addressOf is the virtual address of a byte of executable code in the file.
func addressOf(e *elf.File, at uint64) (uint64, bool) {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && at >= p.Off && at-p.Off < p.Filesz {
			return at - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}

// isBehindCall looks at the instruction that ends at an offset. On x86-64
// instructions can only be read forwards: bytes that end like a call are taken
// for one.
func isBehindCall(f io.ReaderAt, machine elf.Machine, at uint64) bool {
	var b [7]byte
	if at < uint64(len(b)) || at > 1<<62 {
		return false
	}
	if _, err := f.ReadAt(b[:], int64(at)-int64(len(b))); err != nil {
		return false
	}
	switch machine {
	case elf.EM_X86_64:
		return endsWithCallX86(b)
	case elf.EM_AARCH64:
		return isCallARM64(binary.LittleEndian.Uint32(b[3:]))
	}
	return true
}

// endsWithCallX86 knows the near calls: E8 with a displacement, and FF /2 with
// each form of its operand (Intel SDM, CALL; ModR/M).
func endsWithCallX86(b [7]byte) bool {
	if b[2] == 0xe8 {
		return true
	}
	for length := 2; length <= 7; length++ {
		c := b[7-length:]
		if c[0] == 0xff && c[1]>>3&7 == 2 && callLength(c) == length {
			return true
		}
	}
	return false
}

// callLength is how long FF with this ModR/M byte is; 0 if it is cut off.
func callLength(c []byte) int {
	mod, rm := c[1]>>6, c[1]&7
	n := 2
	if mod != 3 && rm == 4 {
		if n++; len(c) < 3 {
			return 0
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5, mod == 0 && rm == 4 && c[2]&7 == 5:
		n += 4
	}
	return n
}

// isCallARM64 knows BL and BLR, also with pointer authentication (Arm ARM,
// C6.2).
func isCallARM64(instruction uint32) bool {
	return instruction>>26 == 0x25 || instruction&0xfefff000 == 0xd63f0000
}
