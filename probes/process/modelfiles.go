package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"

	"github.com/prometheus/procfs"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// Weights lists the weight files of a model: path is the model directory or
// file as the process pid sees it, relative to its working directory if it
// does not begin with a slash; foundBy goes into the result. What does not
// exist is an fs.ErrNotExist (a hub name like org/model does not), a file
// system that does not answer a *probes.StuckError.
func (f *Files) Weights(ctx context.Context, pid int, modelPath, foundBy string) (*evidence.Weights, error) {
	if modelPath == "" {
		return nil, fs.ErrNotExist
	}
	full := modelPath
	if !path.IsAbs(full) {
		cwd, err := os.Readlink(f.r.path(pid, "cwd"))
		if err != nil {
			return nil, fmt.Errorf("%s is relative to a directory that cannot be read: %w", modelPath, err)
		}
		full = path.Join(cwd, full)
	}
	mounts, _ := f.r.mounts(pid, 0) // without them the type stays unknown
	q := fileQuestion{Op: opWeights, Root: f.r.path(pid, "root"), Path: path.Clean(full)}
	a, err := f.askBelow(ctx, pid, weightsLimit, path.Dir(q.Path), q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", full, err)
	}
	w := &evidence.Weights{Path: q.Path, FoundBy: foundBy, Files: a.Weights, Format: formatOfAll(a.Weights)}
	for _, file := range a.Weights {
		w.TotalBytes += file.SizeBytes
	}
	if a.Parts != nil {
		w.Missing, w.MissingCount, w.IndexBytes = a.Parts.Names, a.Parts.Count, a.Parts.IndexBytes
	}
	where := a.Real
	if len(a.Weights) > 0 && a.Weights[0].RealPath != "" {
		where = a.Weights[0].RealPath // the hub's cache may be elsewhere
	}
	w.FSType = fsTypeOf(mounts, where)
	return w, nil
}

// sharesMounts says whether a process with these mounts is in whyhang's mount
// namespace: only then do the IDs of the root mounts agree.
func sharesMounts(theirs []mount) bool {
	infos, err := procfs.GetMounts()
	if err != nil {
		return false
	}
	ours := rootMount(mountsOf(infos))
	return ours != 0 && ours == rootMount(theirs)
}

func formatOfAll(files []evidence.WeightFile) string {
	format := ""
	for _, f := range files {
		switch of := formatOf(f.Path); {
		case format == "":
			format = of
		case format != of:
			return "mixed"
		}
	}
	return format
}

// fillSizes asks for the sizes of the weight files of a process and drops what
// turns out too small to be any. A directory that does not answer leaves its
// sizes unknown.
func (r *Reader) fillSizes(ctx context.Context, p *evidence.Process, places map[string][]string, known map[string]uint64, more []string) {
	kept := p.Files[:0]
	for _, file := range p.Files {
		key := p.MntNS + " " + file.Path
		size, ok := known[key]
		if !ok {
			var err error
			if size, err = r.files.size(ctx, file.Path, places[file.Path]); err != nil {
				p.Unread = appendUnread(p.Unread, sizeUnread(file.Path, p.PID, err))
				kept = append(kept, file)
				continue
			}
			known[key] = size
		}
		if holdsWeights(file.Path, &size, more) {
			file.SizeBytes = &size
			kept = append(kept, file)
		} else {
			r.setSmall(file.Path)
		}
	}
	p.Files = kept
}

func sizeUnread(file string, pid int, err error) evidence.Unread {
	u := evidence.Unread{What: "size of " + file}
	u.Status, u.Why = probes.Classify(err)
	var stuck *probes.StuckError
	if errors.As(err, &stuck) {
		u.Status, u.Why = evidence.Timeout, stuck.Error()
		u.Hint = "timeout 5 stat -f /proc/" + strconv.Itoa(pid) + "/root" + path.Dir(file)
	}
	return u
}

// appendUnread adds u unless the same is there already.
func appendUnread(all []evidence.Unread, u evidence.Unread) []evidence.Unread {
	for _, have := range all {
		if have == u {
			return all
		}
	}
	return append(all, u)
}
