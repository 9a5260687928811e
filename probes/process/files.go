package process

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// ChildFiles is the name of the child that answers questions about the
// target's files; main and TestMain hand FilesChild to probes.ChildMain under
// it.
const ChildFiles = "files"

// Files asks about files of the target, in a child of ourselves: stat and read
// on a dead mount sleep for ever and cannot be killed. A child that does not
// answer is left behind and a new one started; the directory it hung in is not
// asked again.
type Files struct {
	r *Reader

	asker   probes.Asker
	mu      sync.Mutex       // one question at a time
	stuck   map[string]error // by directory
	symbols map[string][]symbol
	naming  sync.Mutex         // one reading names functions at a time
	modules map[string]*module // by device, inode and path
	pythons map[string]pythonFile
}

// How long a question may take. A stat on a healthy network file system takes
// milliseconds, a directory of 200 shards a second.
const (
	sizeLimit    = 2 * time.Second
	weightsLimit = 5 * time.Second
	elfLimit     = 3 * time.Second
)

// maxLeft bounds how many children may be left behind in one run.
const maxLeft = 4

// newFiles asks about files of the processes of r. The child is started with
// the first question.
func newFiles(r *Reader) *Files {
	return &Files{r: r, asker: probes.Asker{Name: ChildFiles, MaxLeft: maxLeft}, stuck: map[string]error{}, symbols: map[string][]symbol{}}
}

// Close ends the child. Questions after it fail.
func (f *Files) Close() { f.asker.Close() }

// Left are the children that were left behind, and what they hung on.
func (f *Files) Left() []evidence.StuckChild { return f.asker.Left() }

// ask puts one question about something in dir. Timeouts are *StuckError,
// errors of the file system syscall.Errno.
func (f *Files) ask(ctx context.Context, limit time.Duration, dir string, q fileQuestion) (fileAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var a fileAnswer
	if err := f.stuck[dir]; err != nil {
		return a, fmt.Errorf("not asked again: %w", err)
	}
	err := f.asker.Ask(ctx, limit, q, &a)
	_, stuck := errors.AsType[*probes.StuckError](err)
	_, crashed := errors.AsType[*probes.CrashError](err)
	switch {
	case stuck, crashed:
	case err != nil:
		return a, err
	case a.Errno != 0:
		return a, syscall.Errno(a.Errno)
	default:
		return a, nil
	}
	if ctx.Err() == nil { // its own limit, not the caller's
		f.stuck[dir] = err
	}
	return a, err
}

// size is the size of a file of a process. The places are tried in order: they
// are names for one file, of which some may be closed to us.
func (f *Files) size(ctx context.Context, shown string, places []string) (uint64, error) {
	a, err := f.ask(ctx, sizeLimit, path.Dir(shown), fileQuestion{Op: opSize, Places: places})
	return a.Size, err
}

// places are the names under which a mapped file of a process can be opened:
// the mapping itself, which works for deleted files and other mount
// namespaces but needs CAP_CHECKPOINT_RESTORE for foreign processes, and its
// path below the process's root.
func (r *Reader) places(pid, via int, m *mapping) []string {
	return []string{
		r.path(pid, fmt.Sprintf("map_files/%x-%x", m.Start, m.End)),
		r.base(pid, via) + "/root" + m.Path,
	}
}

// libcVersion reads the version out of a glibc, as "2.36".
func (f *Files) libcVersion(ctx context.Context, m *mapping, places []string) (string, error) {
	if v, ok := glibcVersion(path.Base(m.Path)); ok {
		return v, nil
	}
	a, err := f.ask(ctx, elfLimit, path.Dir(m.Path), fileQuestion{Op: opLibc, Places: places})
	return a.Version, err
}

// symbolsOf finds functions in a mapped ELF file, once for each file. The file
// is the same for all processes that show the same device, inode and path.
func (f *Files) symbolsOf(ctx context.Context, m *mapping, places, names []string) ([]symbol, error) {
	key := m.Device + " " + strconv.FormatUint(m.Inode, 10) + " " + m.Path
	f.mu.Lock()
	found, ok := f.symbols[key]
	f.mu.Unlock()
	if ok {
		return found, nil
	}
	a, err := f.ask(ctx, elfLimit, path.Dir(m.Path), fileQuestion{Op: opSymbols, Places: places, Names: names})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.symbols[key] = a.Symbols
	f.mu.Unlock()
	return a.Symbols, nil
}
