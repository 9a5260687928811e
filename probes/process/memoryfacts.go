package process

import (
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/redact"
)

// memoryFacts are the facts whose files touch the memory of a process:
// cmdline, environ and maps wait for its mmap_lock, which a process stuck in
// storage may hold. They are read with a deadline.
type memoryFacts struct {
	argv      []string
	env       map[string]string
	libraries []string
	libc      *mapping
	musl      bool
	files     []evidence.OpenFile
	// places are where the files can be looked at, by their path.
	places    map[string][]string
	libcPlace []string
	unread    []evidence.Unread
}

// Bounds on what one process can put into a snapshot.
const (
	maxArguments = 2048
	maxArgument  = 32 << 10
	maxVariables = 512
	maxFiles     = 4096
)

func (r *Reader) memoryFacts(pid, via int, o TreeOptions) memoryFacts {
	var m memoryFacts
	note := func(file string, err error) {
		if u, ok := r.unread(pid, file, err); ok {
			m.unread = append(m.unread, u)
		}
	}
	proc, err := r.proc(pid, via)
	if err != nil {
		return m
	}
	argv, err := proc.CmdLine()
	note("cmdline", err)
	m.argv = redact.Argv(bounded(argv))
	env, err := proc.Environ()
	note("environ", err)
	if err == nil {
		m.env = pickEnv(env, o.Env)
	}
	maps, err := readMaps(r.base(pid, via) + "/maps")
	note("maps", err)
	m.libraries = libraries(maps)
	if m.libc, m.musl = libcFile(maps); m.libc != nil {
		m.libcPlace = r.places(pid, via, m.libc)
	}
	found := newWeightFiles(o.WeightExt)
	for i := range maps {
		found.mapped(&maps[i], func() []string { return r.places(pid, via, &maps[i]) })
	}
	note("fd", found.addDescriptors(r.base(pid, via), proc))
	m.files, m.places = found.list(), found.places
	if found.anyMapped() && r.residentBytes(pid, via) < maxResidentAtDiscovery {
		if resident, err := readResident(r.base(pid, via)+"/smaps", found.has); err == nil {
			setResident(m.files, resident)
		}
	}
	return m
}

func setResident(files []evidence.OpenFile, resident map[string]uint64) {
	for i := range files {
		if n, ok := resident[files[i].Path]; ok && files[i].Mapped {
			files[i].ResidentBytes = &n
		}
	}
}

// bounded cuts a command line down to what a snapshot should hold.
func bounded(argv []string) []string {
	if len(argv) > maxArguments {
		argv = argv[:maxArguments]
	}
	for i, a := range argv {
		if len(a) > maxArgument {
			argv[i] = a[:maxArgument]
		}
	}
	return argv
}

// pickEnv keeps the variables that are asked for, redacted. A name that ends
// in * asks for all that begin alike.
func pickEnv(environ, names []string) map[string]string {
	picked := map[string]string{}
	for _, variable := range environ {
		name, value, ok := strings.Cut(variable, "=")
		if !ok || len(picked) >= maxVariables || !wanted(name, names) {
			continue
		}
		if len(value) > maxArgument {
			value = value[:maxArgument]
		}
		picked[name] = redact.Env(name, value)
	}
	return picked
}

func wanted(name string, names []string) bool {
	for _, n := range names {
		prefix, open := strings.CutSuffix(n, "*")
		if n == name || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
