package process

import (
	"debug/elf"
	"errors"
	"io"
	"regexp"
	"slices"
	"syscall"
)

// This file runs in the child: the files belong to the target and may make the
// reader crash or take all memory.

// symbol is where a function lies in an ELF file: bytes From up to To of the
// file, which do not depend on where it is mapped.
type symbol struct {
	Name string `json:"name"`
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// readSymbols finds the functions names: in the dynamic symbols, which every
// shared library has, else in the full table of a static executable.
func readSymbols(f io.ReaderAt, names []string) ([]symbol, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, syscall.ENOEXEC
	}
	var found []symbol
	for _, read := range []func() ([]elf.Symbol, error){e.DynamicSymbols, e.Symbols} {
		all, err := read()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return nil, syscall.ENOEXEC
		}
		for _, s := range all {
			if s.Size == 0 || s.Section == elf.SHN_UNDEF || !slices.Contains(names, s.Name) {
				continue
			}
			if at, ok := fileOffset(e, s.Value); ok {
				found = append(found, symbol{Name: s.Name, From: at, To: at + s.Size})
			}
		}
		if len(found) > 0 {
			break
		}
	}
	return found, nil
}

// fileOffset is where in the file the byte at a virtual address lies.
func fileOffset(e *elf.File, addr uint64) (uint64, bool) {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return addr - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}

// libcBanner is what glibc prints about itself (csu/version.c).
var libcBanner = regexp.MustCompile(`GNU C Library[^\n]{0,100} release version (\d+\.\d+)`)

// readLibcVersion finds the banner in the constants of a glibc.
func readLibcVersion(f io.ReaderAt) (string, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return "", syscall.ENOEXEC
	}
	section := e.Section(".rodata")
	if section == nil {
		return "", syscall.ENOEXEC
	}
	b, err := io.ReadAll(io.LimitReader(section.Open(), 8<<20))
	if err != nil {
		return "", syscall.ENOEXEC
	}
	if v := libcBanner.FindSubmatch(b); v != nil {
		return string(v[1]), nil
	}
	return "", syscall.ENOEXEC
}
