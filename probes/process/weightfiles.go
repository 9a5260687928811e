package process

import (
	"strconv"

	"github.com/prometheus/procfs"

	"github.com/whyhang/whyhang/probes/evidence"
)

// weightFiles gathers what a process has mapped and open of its weights, one
// entry for each path.
type weightFiles struct {
	more   []string
	order  []string
	byPath map[string]*evidence.OpenFile
	places map[string][]string
}

func newWeightFiles(more []string) *weightFiles {
	return &weightFiles{more: more, byPath: map[string]*evidence.OpenFile{}, places: map[string][]string{}}
}

func (w *weightFiles) has(path string) bool { return w.byPath[path] != nil }

// entry is the one for path, nil if there are too many.
func (w *weightFiles) entry(path string) *evidence.OpenFile {
	if f := w.byPath[path]; f != nil {
		return f
	}
	if len(w.order) >= maxFiles {
		return nil
	}
	f := &evidence.OpenFile{Path: path, FD: -1}
	w.byPath[path] = f
	w.order = append(w.order, path)
	return f
}

func (w *weightFiles) mapped(m *mapping, places func() []string) {
	if m.Inode == 0 || weightsByName(m.Path, w.more) == noWeights {
		return
	}
	if f := w.entry(m.Path); f != nil {
		f.Mapped = true
		f.MappedBytes += m.size()
		if w.places[m.Path] == nil && places != nil {
			w.places[m.Path] = places()
		}
	}
}

// addDescriptors adds open files. Of several descriptors of one file the one
// that came furthest counts: loaders open a file once for each thread.
func (w *weightFiles) addDescriptors(dir string, proc procfs.Proc) error {
	return fdLinks(dir, func(fd int, target string) {
		if !isFilePath(target) || weightsByName(target, w.more) == noWeights {
			return
		}
		f := w.entry(target)
		if f == nil {
			return
		}
		pos := fdPosition(proc, fd)
		if f.FD < 0 || pos != nil && (f.PosBytes == nil || *pos > *f.PosBytes) {
			f.FD, f.PosBytes = fd, pos
			// A descriptor leads to the very file, whatever its path says now.
			w.places[target] = append([]string{dir + "/fd/" + strconv.Itoa(fd)}, w.places[target]...)
		}
	})
}

func (w *weightFiles) anyMapped() bool {
	for _, f := range w.byPath {
		if f.Mapped {
			return true
		}
	}
	return false
}

func (w *weightFiles) list() []evidence.OpenFile {
	var files []evidence.OpenFile
	for _, path := range w.order {
		files = append(files, *w.byPath[path])
	}
	return files
}
