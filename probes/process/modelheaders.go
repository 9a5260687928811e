package process

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// Reading headers is bounded in time: the child stops after headersBudget and
// leaves the rest unread, and is left behind after headersLimit.
const (
	headersBudget = 1500 * time.Millisecond
	headersLimit  = 3 * time.Second
	maxHeaders    = 1024
)

// OtherFiles asks about the same processes in a child of its own, so that a
// question that may take long keeps nobody waiting. The caller closes it.
func (r *Reader) OtherFiles() *Files { return newFiles(r) }

// Headers reads the headers of the model files in w, as process pid sees them,
// and gives w with what they say; w itself stays as it is. This reads from the
// file system of the model: on one that does not answer the child hangs, and
// the error is a *probes.StuckError.
//
// Files on FUSE and virtiofs are left alone: where the server does not ask to keep
// the cache (FOPEN_KEEP_CACHE), the kernel drops all pages of a file whenever
// anybody opens it (fs/fuse/file.c fuse_finish_open), those the target has mapped
// in as well. So are files on a file system that is not known.
func (f *Files) Headers(ctx context.Context, pid int, w *evidence.Weights) (*evidence.Weights, error) {
	with := *w
	with.Files = append([]evidence.WeightFile(nil), w.Files...)
	with.DTypeBytes = nil
	q := fileQuestion{Op: opHeaders, Root: f.r.path(pid, "root")}
	for i := range min(len(with.Files), maxHeaders) {
		q.Places = append(q.Places, with.Files[i].Path)
	}
	if len(q.Places) == 0 {
		return &with, nil
	}
	if w.FSType == "" || isFUSE(w.FSType) {
		with.Unread = &evidence.Unread{What: "headers in " + path.Dir(q.Places[0]), Status: evidence.Skipped,
			Why: "to open a file on FUSE may drop the pages that the server has read of it"}
		return &with, nil
	}
	a, err := f.askBelow(ctx, pid, headersLimit, path.Dir(q.Places[0]), q)
	if err != nil {
		u := evidence.Unread{What: "headers in " + path.Dir(q.Places[0])}
		u.Status, u.Why = probes.Classify(err)
		var stuck *probes.StuckError
		if errors.As(err, &stuck) {
			u.Status, u.Why = evidence.Timeout, stuck.Error()
		}
		with.Unread = &u
		return &with, err
	}
	with.ExpectedBytes = 0
	unread := 0
	for i := range with.Files {
		file := &with.Files[i]
		if i < len(a.Headers) {
			file.Header = a.Headers[i]
		}
		expected := file.SizeBytes
		if file.Header != nil {
			expected = max(expected, file.Header.ExpectedBytes)
		} else if formatOf(file.Path) != "bin" {
			unread++
		}
		with.ExpectedBytes += expected
	}
	if with.MissingCount > 0 {
		with.ExpectedBytes = max(with.ExpectedBytes, with.IndexBytes)
	}
	with.DTypeBytes = a.DTypes
	if unread > 0 {
		with.Unread = &evidence.Unread{What: "headers in " + path.Dir(q.Places[0]), Status: evidence.Partial,
			Why: strconv.Itoa(unread) + " of the files were not read in time or not readable"}
	}
	return &with, nil
}

// askBelow puts a question about what lies below the root of a process.
func (f *Files) askBelow(ctx context.Context, pid int, limit time.Duration, dir string, q fileQuestion) (fileAnswer, error) {
	a, err := f.ask(ctx, limit, dir, q)
	// Another user's root may not be entered. In the same mount namespace our
	// own root is the same place.
	if errors.Is(err, fs.ErrPermission) {
		if mounts, _ := f.r.mounts(pid, 0); sharesMounts(mounts) {
			q.Root = "/"
			a, err = f.ask(ctx, limit, dir, q)
		}
	}
	return a, err
}

// readHeaders runs in the child: it reads the headers of the files at these
// paths below root, as many as it can in its time.
func readHeaders(root string, paths []string, stage func(string)) (fileAnswer, error) {
	stage(root)
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fileAnswer{}, err
	}
	defer unix.Close(fd)
	t := tree{root: fd, stage: stage}
	a := fileAnswer{Headers: make([]*evidence.WeightHeader, len(paths))}
	sum := modelHeader{}
	deadline := time.Now().Add(headersBudget)
	for i, p := range paths {
		if time.Now().After(deadline) {
			break
		}
		h, err := t.header(p)
		if errors.Is(err, errNoHeader) {
			continue
		}
		if err != nil && h.Expected == 0 && !errors.Is(err, errCutOff) {
			if i == 0 && errors.Is(err, fs.ErrPermission) {
				return fileAnswer{}, err
			}
			continue
		}
		said := &evidence.WeightHeader{ExpectedBytes: h.Expected, Tensors: h.Tensors}
		if err != nil {
			said.Problem = err.Error()
		}
		a.Headers[i] = said
		for dtype, bytes := range h.DTypes {
			sum.add(dtype, bytes)
		}
	}
	a.DTypes = sum.DTypes
	return a, nil
}

// errNoHeader says that a file begins like neither format.
var errNoHeader = errors.New("neither safetensors nor GGUF")

// header reads one file's header. What the file is called does not matter: the
// caches of Ollama and the Hugging Face hub name files by their content.
func (t tree) header(p string) (modelHeader, error) {
	fd, err := t.open(p, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return modelHeader{}, err
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return modelHeader{}, errNoHeader
	}
	return readModelHeader(f)
}

func readModelHeader(r io.Reader) (modelHeader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	first, err := in.Peek(9)
	if err != nil {
		return modelHeader{}, errNoHeader
	}
	if string(first[:4]) == "GGUF" {
		return readGGUF(in)
	}
	n := binary.LittleEndian.Uint64(first)
	if n < 2 || n > maxSafetensorsHeader || first[8] != '{' {
		return modelHeader{}, errNoHeader
	}
	_, _ = in.Discard(8)
	return readSafetensors(in, n)
}
