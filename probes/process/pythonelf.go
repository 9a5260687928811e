package process

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"syscall"

	"github.com/whyhang/whyhang/probes/python"
)

// This file runs in the child, as elf.go does.

// pythonFile is what a file says of the CPython in it: nothing if there is
// none.
type pythonFile struct {
	// Data are addresses of exported data, relative to where byte 0 of the file
	// would be mapped if it were all one mapping of the code's.
	Data map[string]uint64 `json:"data,omitempty"`
	// Hex is the value of Py_Version, which 3.11 and later have.
	Hex uint64 `json:"hex,omitempty"`
	// Head are the first bytes of _PyRuntime.
	Head []byte `json:"head,omitempty"`
}

// pythonData are the symbols that are looked for.
var pythonData = []string{"_PyRuntime", "PyCode_Type", "PyCFunction_Type", "PyMethod_Type", "Py_Version"}

// maxPlainTable bounds the full symbol table that is read where the dynamic one
// has none of the symbols: a table of debug builds may have hundreds of MB.
const maxPlainTable = 32 << 20

// readPythonFile finds CPython in an ELF file: a libpython, or an executable
// that has it inside and exports it for its extension modules.
func readPythonFile(f io.ReaderAt) (*pythonFile, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, syscall.ENOEXEC
	}
	code := codeSegment(e)
	if code == nil {
		return &pythonFile{}, nil
	}
	all, err := e.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, syscall.ENOEXEC
	}
	p := pythonSymbols(e, code, all)
	if p.Data["_PyRuntime"] != 0 {
		return p, nil
	}
	if table := e.SectionByType(elf.SHT_SYMTAB); table == nil || table.Size > maxPlainTable {
		return p, nil
	}
	if all, err = e.Symbols(); err != nil {
		return p, nil
	}
	return pythonSymbols(e, code, all), nil
}

// codeSegment is the part of the file that is mapped executable.
func codeSegment(e *elf.File) *elf.Prog {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			return p
		}
	}
	return nil
}

func pythonSymbols(e *elf.File, code *elf.Prog, all []elf.Symbol) *pythonFile {
	p := &pythonFile{Data: map[string]uint64{}}
	for _, s := range all {
		if s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_OBJECT {
			continue
		}
		for _, name := range pythonData {
			if s.Name == name {
				p.Data[name] = s.Value - (code.Vaddr - code.Off)
			}
		}
		switch s.Name {
		case "Py_Version":
			if b := fileBytes(e, s.Value, 8); b != nil {
				p.Hex = binary.NativeEndian.Uint64(b)
			}
		case "_PyRuntime":
			p.Head = fileBytes(e, s.Value, python.HeadBytes)
		}
	}
	return p
}

// fileBytes are the bytes at a virtual address as they stand in the file; nil
// if they are not in it, as those of .bss are.
func fileBytes(e *elf.File, addr uint64, n int) []byte {
	for _, p := range e.Progs {
		if p.Type != elf.PT_LOAD || addr < p.Vaddr || addr-p.Vaddr >= p.Filesz || p.Filesz-(addr-p.Vaddr) < uint64(n) {
			continue
		}
		b := make([]byte, n)
		if _, err := p.ReadAt(b, int64(addr-p.Vaddr)); err != nil {
			return nil
		}
		return b
	}
	return nil
}
