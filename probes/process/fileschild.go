package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// What the child can be asked.
const (
	opSize    = "size"
	opLibc    = "libc"
	opSymbols = "symbols"
	opWeights = "weights"
	opHeaders = "headers"

	opPageCache = "page cache"

	opFunctions = "functions"
	opPython    = "python"
)

// fileQuestion is one question to the child. Places are tried in order.
type fileQuestion struct {
	Op     string   `json:"op"`
	Places []string `json:"places,omitempty"`
	Names  []string `json:"names,omitempty"`
	// Offsets are places in the file.
	Offsets []uint64 `json:"offsets,omitempty"`
	// Root is the directory that Path begins at: links that lead up or to the
	// top stay below it.
	Root string `json:"root,omitempty"`
	Path string `json:"path,omitempty"`
}

// fileAnswer answers it. Errno is an error of the file system: sent as a
// number, so that the parent knows which it was.
type fileAnswer struct {
	Errno   int                   `json:"errno,omitempty"`
	Size    uint64                `json:"size,omitempty"`
	Version string                `json:"version,omitempty"`
	Symbols []symbol              `json:"symbols,omitempty"`
	Python  *pythonFile           `json:"python,omitempty"`
	Weights []evidence.WeightFile `json:"weights,omitempty"`
	Real    string                `json:"real,omitempty"`
	Parts   *missingParts         `json:"parts,omitempty"`
	// Headers are those of the Places, in their order; nil for one that could
	// not be read.
	Headers []*evidence.WeightHeader `json:"headers,omitempty"`
	DTypes  map[string]uint64        `json:"dtypes,omitempty"`

	Functions []function `json:"functions,omitempty"`
}

// FilesChild is the child's side of Files. Everything here may hang for ever:
// it names what it is about to touch first.
func FilesChild() probes.Handler {
	return func(_ context.Context, question json.RawMessage, stage func(string)) (any, error) {
		var q fileQuestion
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		a, err := answerFile(q, stage)
		var errno syscall.Errno
		if errors.As(err, &errno) {
			return fileAnswer{Errno: int(errno)}, nil
		}
		return a, err
	}
}

func answerFile(q fileQuestion, stage func(string)) (fileAnswer, error) {
	switch q.Op {
	case opSize:
		return firstPlace(q.Places, stage, func(place string) (fileAnswer, error) {
			var st unix.Stat_t
			err := unix.Stat(place, &st)
			return fileAnswer{Size: uint64(max(st.Size, 0))}, err
		})
	case opLibc:
		return firstPlace(q.Places, stage, func(place string) (fileAnswer, error) {
			f, err := openRegular(place)
			if err != nil {
				return fileAnswer{}, err
			}
			defer f.Close()
			v, err := readLibcVersion(f)
			return fileAnswer{Version: v}, err
		})
	case opSymbols:
		return firstPlace(q.Places, stage, func(place string) (fileAnswer, error) {
			f, err := openRegular(place)
			if err != nil {
				return fileAnswer{}, err
			}
			defer f.Close()
			s, err := readSymbols(f, q.Names)
			return fileAnswer{Symbols: s}, err
		})
	case opPython:
		return firstPlace(q.Places, stage, func(place string) (fileAnswer, error) {
			f, err := openRegular(place)
			if err != nil {
				return fileAnswer{}, err
			}
			defer f.Close()
			p, err := readPythonFile(f)
			return fileAnswer{Python: p}, err
		})
	case opFunctions:
		return firstPlace(q.Places, stage, func(place string) (fileAnswer, error) {
			f, err := openRegular(place)
			if err != nil {
				return fileAnswer{}, err
			}
			defer f.Close()
			fns, err := functionsAt(f, q.Offsets)
			return fileAnswer{Functions: fns}, err
		})
	case opWeights:
		return listWeights(q.Root, q.Path, stage)
	case opHeaders:
		return readHeaders(q.Root, q.Places, stage)
	case opPageCache:
		return countPages(q.Root, q.Places, stage)
	}
	return fileAnswer{}, fmt.Errorf("no question %q", q.Op)
}

// firstPlace answers from the first place that can be read. The last error
// counts: the later places are the plainer ones.
func firstPlace(places []string, stage func(string), look func(string) (fileAnswer, error)) (fileAnswer, error) {
	err := error(syscall.ENOENT)
	for _, place := range places {
		stage(place)
		var a fileAnswer
		if a, err = look(place); err == nil {
			return a, nil
		}
	}
	return fileAnswer{}, err
}

// openRegular opens a file that the target may have replaced by a FIFO or a
// device.
func openRegular(place string) (*os.File, error) {
	f, err := os.OpenFile(place, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = syscall.EINVAL
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
