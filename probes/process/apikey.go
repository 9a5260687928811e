package process

import (
	"context"
	"strings"
)

// KeyNames say how a server is told the key that requests have to bear.
type KeyNames struct {
	// Options are the spellings on its command line, Variable is what sets the key
	// in its environment; "" for none.
	Options  []string
	Variable string
	// List: commas separate several keys.
	List bool
}

// APIKey is the key that a process was told to ask for, and where that stands;
// "" for none, or if it cannot be read in time. It is the one secret of a target
// that whyhang reads: to put its question, and it must not get into any evidence.
func (r *Reader) APIKey(ctx context.Context, pid int, names KeyNames) (key, from string) {
	type found struct{ key, from string }
	got := each(ctx, 1, describeLimit, func(int) found {
		proc, err := r.proc(pid, 0)
		if err != nil {
			return found{}
		}
		// Both files wait for the process's mmap_lock, as in memoryFacts.
		argv, _ := proc.CmdLine()
		if key, option := keyOfArgv(argv, names.Options); key != "" {
			return found{key, "its command line (" + option + ")"}
		}
		env, _ := proc.Environ()
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, names.Variable+"="); ok && names.Variable != "" {
				return found{value, "its environment (" + names.Variable + ")"}
			}
		}
		return found{}
	})
	f := got[0].Value
	if !got[0].Done {
		return "", ""
	}
	if f.key = strings.TrimSpace(f.key); names.List {
		f.key, _, _ = strings.Cut(f.key, ",")
	}
	// What a header cannot hold is no key.
	if f.key == "" || strings.ContainsFunc(f.key, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", ""
	}
	return f.key, f.from
}

// keyOfArgv is the value of the last of these options, as parsers take it: "--o
// value" or "--o=value", with underscores for dashes.
func keyOfArgv(argv, options []string) (key, option string) {
	for i, arg := range argv {
		name, value, joined := strings.Cut(arg, "=")
		for _, o := range options {
			switch {
			case strings.ReplaceAll(name, "_", "-") != o:
			case joined:
				key, option = value, o
			case i+1 < len(argv) && !strings.HasPrefix(argv[i+1], "--"):
				key, option = argv[i+1], o
			}
		}
	}
	return key, option
}
