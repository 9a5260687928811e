package serverlog

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// link is a descriptor in a made-up /proc. Its target does not exist: finding
// may not touch it.
type link struct {
	pid, fd        int
	target, fdinfo string
}

func fakeProc(t *testing.T, links []link) string {
	t.Helper()
	proc := t.TempDir()
	for _, l := range links {
		dir := filepath.Join(proc, strconv.Itoa(l.pid))
		for _, sub := range []string{"fd", "fdinfo"} {
			if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(l.target, filepath.Join(dir, "fd", strconv.Itoa(l.fd))); err != nil {
			t.Fatal(err)
		}
		if l.fdinfo != "" {
			if err := os.WriteFile(filepath.Join(dir, "fdinfo", strconv.Itoa(l.fd)), []byte(l.fdinfo), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return proc
}

const (
	writeOnly = "pos:\t4096\nflags:\t0102001\nmnt_id:\t29\nino:\t" // O_WRONLY|O_APPEND|O_LARGEFILE
	readOnly  = "pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t"
)

func TestFind(t *testing.T) {
	tests := []struct {
		name   string
		links  []link
		found  []string // source and path
		unread []string // reason
	}{
		{"streams of a tree on one file", []link{
			{10, 1, "/nfs/server.log", writeOnly + "7"}, {10, 2, "/nfs/server.log", writeOnly + "7"}, {11, 1, "/nfs/server.log", writeOnly + "7"},
		}, []string{"fd 1 of 10 /nfs/server.log"}, nil},
		{"streams first, then other logs", []link{
			{10, 1, "/dev/null", ""}, {10, 2, "/tmp/err", writeOnly + "7"}, {10, 5, "/tmp/app.log", writeOnly + "8"}, {11, 2, "/tmp/child", writeOnly + "9"},
		}, []string{"fd 2 of 10 /tmp/err", "fd 2 of 11 /tmp/child", "fd 5 of 10 /tmp/app.log"}, []string{"standard output is thrown away (/dev/null)"}},
		{"the same inode under two names", []link{{10, 1, "/tmp/a", writeOnly + "7"}, {10, 2, "/tmp/b", writeOnly + "7"}}, []string{"fd 1 of 10 /tmp/a"}, nil},
		{"an old kernel names no inode", []link{{10, 1, "/tmp/a", "flags:\t01\n"}, {10, 2, "/tmp/a", "flags:\t01\n"}}, []string{"fd 1 of 10 /tmp/a"}, nil},
		{"removed", []link{{10, 2, "/tmp/server.out (deleted)", writeOnly + "7"}}, []string{"fd 2 of 10 /tmp/server.out"}, nil},
		{"read, not written", []link{{10, 0, "/tmp/in.txt", readOnly + "5"}, {10, 1, "/tmp/in.log", readOnly + "6"}, {10, 7, "/m/vocab.txt", readOnly + "7"}}, nil, nil},
		{"not a log's name", []link{{10, 7, "/m/model.safetensors", writeOnly + "7"}, {10, 8, "anon_inode:[eventpoll]", ""}, {10, 9, "/dev/nvidia0", ""}}, nil, nil},
		{"pipe, socket, terminal, told once", []link{
			{10, 1, "pipe:[4711]", ""}, {10, 2, "pipe:[4711]", ""}, {11, 1, "socket:[12]", ""}, {11, 2, "/dev/pts/3", ""}, {12, 1, "pipe:[4711]", ""},
		}, nil, []string{
			"standard output goes to a pipe (pipe:[4711]); whoever reads it keeps the log",
			"standard output goes to a socket (socket:[12]); whoever reads it keeps the log",
			"standard error goes to a terminal (/dev/pts/3); what was written there cannot be read back",
		}},
		{"hostile name", []link{{10, 1, "/tmp/\x1b[31mred\n\u202e.log", writeOnly + "7"}}, []string{"fd 1 of 10 /tmp/red.log"}, nil},
		{"in shared memory", []link{{10, 1, "/dev/shm/server.log", writeOnly + "7"}}, []string{"fd 1 of 10 /dev/shm/server.log"}, nil},
		{"garbage in fdinfo", []link{{10, 1, "/tmp/a", "flags: x\nino\n:\n"}}, []string{"fd 1 of 10 /tmp/a"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			proc := fakeProc(t, tt.links)
			candidates, unread := Find(proc, []evidence.Process{{PID: 10}, {PID: 11}, {PID: 12}})
			var found, reasons []string
			for _, c := range candidates {
				found = append(found, c.Source+" "+c.Path)
				if filepath.Dir(filepath.Dir(c.Open)) != filepath.Join(proc, strconv.Itoa(c.PID)) {
					t.Errorf("opened by %s", c.Open)
				}
			}
			for _, u := range unread {
				reasons = append(reasons, u.Why)
				if u.Hint != "whyhang --log FILE 10" { // the server, whichever child has the stream
					t.Errorf("hint of %+v", u)
				}
			}
			if diff := cmp.Diff(tt.found, found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.unread, reasons); diff != "" {
				t.Errorf("unread (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindIsBounded(t *testing.T) {
	var links []link
	for fd := range 40 {
		links = append(links, link{10, fd + 3, "/tmp/" + strconv.Itoa(fd) + ".log", writeOnly + strconv.Itoa(fd)})
	}
	candidates, unread := Find(fakeProc(t, links), []evidence.Process{{PID: 10}})
	if len(candidates) != maxCandidates || len(unread) != 1 {
		t.Errorf("%d candidates, %+v", len(candidates), unread)
	}
}

func TestFindDenied(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	// PID 1 is root's.
	if _, err := os.ReadDir("/proc/1/fd"); err == nil {
		t.Skip("process 1 is ours")
	}
	candidates, unread := Find("/proc", []evidence.Process{{PID: 1}})
	if len(candidates) != 0 || len(unread) != 1 || unread[0].Status != evidence.Denied || unread[0].Hint != "sudo whyhang 1" {
		t.Errorf("%+v, %+v", candidates, unread)
	}
	if run := NotFound(unread); run.Status != evidence.Denied || run.Hint != "sudo whyhang 1" {
		t.Errorf("%+v", run)
	}
}

func FuzzFdinfo(f *testing.F) {
	f.Add([]byte(writeOnly + "7"))
	f.Add([]byte("flags:\nino:\nmnt_id"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := descriptor{fd: 1, target: "/tmp/a"}
		d.parseFdinfo(b)
		if len(d.inode) > len(b) || len(d.mount) > len(b) {
			t.Fatalf("%+v of %q", d, b)
		}
	})
}
