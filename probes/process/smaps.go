package process

import (
	"bufio"
	"bytes"
	"io"
	"os"
)

// readResident reads how many bytes of each mapped file are mapped in now,
// from the Rss lines of /proc/PID/smaps, for the paths that keep wants.
//
// The kernel walks the page tables of every mapping for this file and holds
// the target's mmap_lock meanwhile, some 10 ms per GiB mapped in by 4 KiB
// pages: seconds for a mapping of 500 GB, in which the target cannot map
// anything. Callers ask only for small processes.
func readResident(path string, keep func(path string) bool) (map[string]uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseSmaps(f, keep)
}

// parseSmaps sums Rss by path. A header line looks like one of maps, the lines
// below it are "Name: value"; a path cannot imitate those, as a newline in it
// is escaped.
func parseSmaps(r io.Reader, keep func(path string) bool) (map[string]uint64, error) {
	resident := map[string]uint64{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 16<<10), 64<<10)
	var last mapping
	wanted := false
	for lines.Scan() {
		line := lines.Bytes()
		if value, ok := bytes.CutPrefix(line, []byte("Rss:")); ok {
			words := bytes.Fields(value)
			if kb, ok := firstNumber(words); wanted && ok && kb < 1<<53 {
				resident[last.Path] += kb * 1024
			}
			continue
		}
		if m, ok := parseMapping(line, &last); ok {
			last = m
			wanted = m.Inode != 0 && keep(m.Path)
		}
	}
	return resident, lines.Err()
}

func firstNumber(words [][]byte) (uint64, bool) {
	if len(words) == 0 {
		return 0, false
	}
	return number(words[0])
}
