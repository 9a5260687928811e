package diagnose

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxSnapshot limits a snapshot file, unpacked: 100,000 threads in a dozen
// frames stay below, and a bomb does not fill the memory.
const maxSnapshot = 256 << 20

// Save writes a snapshot as JSON, packed if the name ends in .gz. The file is
// new and belongs to its owner alone: an existing file, or a link somebody put
// there, is not written through.
func Save(path string, s *evidence.Snapshot) error {
	var b bytes.Buffer
	if !strings.HasSuffix(path, ".gz") {
		if err := json.NewEncoder(&b).Encode(s); err != nil {
			return err
		}
		return WriteFile(path, b.Bytes(), 0o600)
	}
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(s); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return WriteFile(path, b.Bytes(), 0o600)
}

// WriteFile writes a file beside its final name and renames it: whoever reads
// it sees all or nothing, and a link at the name is replaced, not followed.
func WriteFile(path string, b []byte, mode os.FileMode) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		// A device or a pipe is what the operator named: write to it. A pipe
		// that nobody reads is an error, not a wait without end.
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if errors.Is(err, unix.ENXIO) {
			return errors.New("is a pipe that nobody reads")
		}
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		return errors.Join(err, f.Close())
	}
	dir, name := filepath.Split(path)
	beside := filepath.Join(dir, fmt.Sprintf(".%s.%08x", name, rand.Uint32()))
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(beside, path)
	}
	if err != nil {
		os.Remove(beside)
	}
	return err
}

// Load reads a snapshot file. Unknown fields are accepted, an unknown major
// schema is an error that says so.
func Load(path string) (*evidence.Snapshot, error) {
	f, err := openInput(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode(f)
}

func decode(r io.Reader) (*evidence.Snapshot, error) {
	head := make([]byte, 2)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errors.New("is empty")
	}
	r = io.MultiReader(bytes.NewReader(head[:n]), r)
	if n == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("is no whole gzip file: %w", err)
		}
		r = z
	}
	limited := &io.LimitedReader{R: r, N: maxSnapshot}
	var s evidence.Snapshot
	d := json.NewDecoder(limited)
	err = d.Decode(&s)
	if err == nil && d.More() {
		return nil, errors.New("is no snapshot: something follows behind its end")
	}
	if err != nil {
		wrong, mistyped := errors.AsType[*json.UnmarshalTypeError](err)
		switch {
		case mistyped && wrong.Field == "":
			return nil, fmt.Errorf("is no snapshot but a JSON %s", wrong.Value)
		case mistyped:
			return nil, fmt.Errorf("is no snapshot: %q holds a JSON %s", wrong.Field, wrong.Value)
		case limited.N <= 0:
			return nil, fmt.Errorf("is larger than %d bytes", maxSnapshot)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errors.New("is cut off: the snapshot ends in its middle")
		}
		return nil, fmt.Errorf("is no snapshot: %w", err)
	}
	if !strings.HasPrefix(s.Schema, "whyhang.snapshot/1") || len(s.Schema) > len(evidence.SnapshotSchema) && s.Schema[len(evidence.SnapshotSchema)] != '.' {
		if s.Schema == "" {
			return nil, errors.New(`is no snapshot: it has no "schema"`)
		}
		return nil, fmt.Errorf("has schema %q; this version reads %s", s.Schema, evidence.SnapshotSchema)
	}
	bounded(reflect.ValueOf(&s))
	return &s, nil
}
