package process

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// mapping is one line of /proc/PID/maps (proc_pid_maps(5)). The library's
// reader of this file joins words by single spaces, which breaks paths with
// more, and allocates three times a line.
type mapping struct {
	Start, End uint64
	// Offset is where in the file the mapping begins.
	Offset                       uint64
	Read, Write, Execute, Shared bool
	// Device is "major:minor" as printed, in hexadecimal; Inode 0 for memory
	// without a file.
	Device string
	Inode  uint64
	// Path is the file, a name in brackets ("[heap]"), or empty. Deleted: the
	// file has no name any more; Path is then its last one.
	Path    string
	Deleted bool
}

func (m *mapping) size() uint64 { return m.End - m.Start }

// maxMappings bounds what one process can make whyhang hold; the kernel's own
// default limit is 65,530 (vm.max_map_count), inference servers set it higher.
const maxMappings = 1 << 20

var errTooManyMappings = errors.New("more mappings than whyhang reads")

// readMaps reads a maps file. It may wait for the target's mmap_lock, so the
// caller holds a deadline.
func readMaps(path string) ([]mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseMaps(f)
}

// parseMaps reads mappings until the end, skipping lines that are none. The
// kernel prints them in the order of their addresses.
func parseMaps(r io.Reader) ([]mapping, error) {
	var maps []mapping
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 16<<10), 64<<10)
	var last mapping // neighbours share their path: one string for all of them
	for lines.Scan() {
		m, ok := parseMapping(lines.Bytes(), &last)
		if !ok {
			continue
		}
		if len(maps) == maxMappings {
			return maps, errTooManyMappings
		}
		maps = append(maps, m)
		last = m
	}
	return maps, lines.Err()
}

func parseMapping(line []byte, last *mapping) (mapping, bool) {
	var m mapping
	var word [5][]byte
	rest := line
	for i := range word {
		var ok bool
		word[i], rest, ok = bytes.Cut(rest, []byte(" "))
		if !ok && i < 4 {
			return m, false
		}
	}
	from, to, ok := bytes.Cut(word[0], []byte("-"))
	if !ok || len(word[1]) < 4 {
		return m, false
	}
	var ok1, ok2, ok3, ok4 bool
	m.Start, ok1 = hexNumber(from)
	m.End, ok2 = hexNumber(to)
	m.Offset, ok3 = hexNumber(word[2])
	m.Inode, ok4 = number(bytes.TrimSpace(word[4]))
	if !ok1 || !ok2 || !ok3 || !ok4 || m.End <= m.Start {
		return m, false
	}
	m.Read, m.Write, m.Execute, m.Shared = word[1][0] == 'r', word[1][1] == 'w', word[1][2] == 'x', word[1][3] == 's'
	m.Device = same(word[3], last.Device)
	// The path is padded to a column and may begin with no space of its own.
	name, deleted := bytes.CutSuffix(bytes.TrimLeft(rest, " "), []byte(" (deleted)"))
	m.Path, m.Deleted = same(name, last.Path), deleted
	if strings.Contains(m.Path, `\012`) {
		m.Path = strings.ReplaceAll(m.Path, `\012`, "\n") // the one byte maps escapes
	}
	return m, true
}

// same is b as a string, the known one if it is equal.
func same(b []byte, known string) string {
	if string(b) == known {
		return known
	}
	return string(b)
}

// mappingOf finds the mapping that holds addr, nil if none does.
func mappingOf(maps []mapping, addr uint64) *mapping {
	i, found := slices.BinarySearchFunc(maps, addr, func(m mapping, a uint64) int {
		switch {
		case m.End <= a:
			return -1
		case m.Start > a:
			return cmp.Compare(m.Start, a)
		}
		return 0
	})
	if !found {
		return nil
	}
	return &maps[i]
}
