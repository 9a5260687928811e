package process

import (
	"encoding/json"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// This file runs in the child.

// Bounds on a hostile model directory.
const (
	maxModelFiles = 8192
	maxIndexBytes = 64 << 20
)

// listWeights lists the weight files of the model at p, a path below root.
func listWeights(root, p string, stage func(string)) (fileAnswer, error) {
	stage(root)
	rootFD, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fileAnswer{}, err
	}
	defer unix.Close(rootFD)
	t := tree{root: rootFD, stage: stage}
	top, isDir, err := t.stat(p)
	if err != nil {
		return fileAnswer{}, err
	}
	a := fileAnswer{Real: top.RealPath}
	if a.Real == "" {
		a.Real = p
	}
	if !isDir {
		a.Weights, err = t.shards(top)
		a.Parts = missing(a.Weights, nil)
		return a, err
	}
	names, err := t.names(p)
	if err != nil {
		return fileAnswer{}, err
	}
	var found []evidence.WeightFile
	for _, name := range names {
		if weightsByName("/"+name, nil) == noWeights {
			continue
		}
		file, isDir, err := t.stat(path.Join(p, name))
		if err != nil || isDir || !holdsWeights("/"+name, &file.SizeBytes, nil) {
			continue // a link to nowhere is no reason to lose the others
		}
		found = append(found, file)
	}
	index := t.index(p, names)
	a.Weights = choose(found, index.files())
	a.Parts = missing(a.Weights, index)
	return a, nil
}

// tree is what lies below a process's root directory.
type tree struct {
	root  int
	stage func(string)
}

// open resolves all of p below the root, links to absolute paths too, as the
// process itself would (openat2(2), Linux 5.6). Where that call is not to be
// had, such links lead astray, to a file that is not there.
func (t tree) open(p string, flags int) (int, error) {
	t.stage(p)
	fd, err := unix.Openat2(t.root, p, &unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err == unix.ENOSYS || err == unix.EPERM {
		return unix.Openat(t.root, "./"+strings.TrimLeft(p, "/"), flags|unix.O_CLOEXEC, 0)
	}
	return fd, err
}

// stat says how large the file at p is and where it really lies.
func (t tree) stat(p string) (file evidence.WeightFile, isDir bool, err error) {
	fd, err := t.open(p, unix.O_PATH)
	if err != nil {
		return file, false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return file, false, err
	}
	file = evidence.WeightFile{Path: p, SizeBytes: uint64(max(st.Size, 0))}
	if real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && real != p {
		file.RealPath = real
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return file, true, nil
	case unix.S_IFREG:
		return file, false, nil
	}
	return file, false, unix.EINVAL
}

func (t tree) names(p string) ([]string, error) {
	fd, err := t.open(p, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), p)
	defer dir.Close()
	names, err := dir.Readdirnames(maxModelFiles)
	if err != nil && err != io.EOF {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// index reads which files a sharded model consists of: the weight_map of
// model.safetensors.index.json or its namesakes. Nil without one.
func (t tree) index(p string, names []string) *modelIndex {
	for _, name := range []string{"model.safetensors.index.json", "pytorch_model.bin.index.json"} {
		if !slices.Contains(names, name) {
			continue
		}
		fd, err := t.open(path.Join(p, name), unix.O_RDONLY|unix.O_NONBLOCK)
		if err != nil {
			continue
		}
		f := os.NewFile(uintptr(fd), name)
		var doc struct {
			Metadata struct {
				// A few exporters write it as a floating point number.
				TotalSize float64 `json:"total_size"`
			} `json:"metadata"`
			WeightMap map[string]string `json:"weight_map"`
		}
		err = json.NewDecoder(io.LimitReader(f, maxIndexBytes)).Decode(&doc)
		f.Close()
		if err != nil || len(doc.WeightMap) == 0 {
			continue
		}
		index := &modelIndex{names: map[string]bool{}}
		for _, file := range doc.WeightMap {
			index.names[file] = true
		}
		if size := doc.Metadata.TotalSize; size > 0 && size < 1<<60 {
			index.bytes = uint64(size)
		}
		return index
	}
	return nil
}

// shardName is a part of a split file: name-00001-of-00005.gguf.
var shardName = regexp.MustCompile(`^(.*)-\d{5}-of-(\d{5}\.[a-z]+)$`)

// shards are all parts of a model that is named by one of its files.
func (t tree) shards(first evidence.WeightFile) ([]evidence.WeightFile, error) {
	part := shardName.FindStringSubmatch(path.Base(first.Path))
	if part == nil {
		return []evidence.WeightFile{first}, nil
	}
	dir := path.Dir(first.Path)
	names, err := t.names(dir)
	if err != nil {
		return []evidence.WeightFile{first}, nil
	}
	var all []evidence.WeightFile
	for _, name := range names {
		if other := shardName.FindStringSubmatch(name); other == nil || other[1] != part[1] || other[2] != part[2] {
			continue
		}
		if file, isDir, err := t.stat(path.Join(dir, name)); err == nil && !isDir {
			all = append(all, file)
		}
	}
	return all, nil
}

// choose picks what an engine would load of a directory that holds the same
// weights several times: safetensors before pickles, and of those the files
// the index names, or else the Hugging Face set before the original one.
func choose(found []evidence.WeightFile, index map[string]bool) []evidence.WeightFile {
	if safe := keep(found, func(name string) bool { return strings.HasSuffix(name, ".safetensors") }); len(safe) > 0 {
		found = safe
	}
	if listed := keep(found, func(name string) bool { return index[name] }); len(listed) > 0 {
		return listed
	}
	if hf := keep(found, func(name string) bool { return !strings.HasPrefix(name, "consolidated") }); len(hf) > 0 {
		return hf
	}
	return found
}

func keep(files []evidence.WeightFile, want func(name string) bool) []evidence.WeightFile {
	var kept []evidence.WeightFile
	for _, f := range files {
		if want(path.Base(f.Path)) {
			kept = append(kept, f)
		}
	}
	return kept
}
