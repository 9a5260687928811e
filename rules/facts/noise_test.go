package facts

import (
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// looksAt are frames half a second apart in which a process has this much
// private memory, in MiB.
func looksAt(mib ...uint64) *evidence.Snapshot {
	s := &evidence.Snapshot{Processes: []evidence.Process{{PID: 7, Name: "x"}}}
	for n, m := range mib {
		anon, faults := m<<20, uint64(1000*n)
		s.Frames = append(s.Frames, evidence.Frame{SinceMS: 500 * float64(n),
			Processes: []evidence.ProcessFrame{{PID: 7, State: "S", RSSAnonBytes: &anon, MinorFaults: faults}}})
	}
	return s
}

// Memory that comes and goes leads nowhere; memory that grows does, by steps, at
// the end of the window, and with a buffer that comes and goes on top.
func TestMemoryThatSways(t *testing.T) {
	for _, tc := range []struct {
		name  string
		mib   []uint64
		leads bool
	}{
		{"sways", []uint64{10, 40, 10, 60, 10, 35, 50, 10, 30}, false},
		{"between two levels", []uint64{10, 74, 10, 74, 10, 74}, false},
		{"grows", []uint64{10, 12, 14, 16, 18, 20, 22}, true},
		{"grew early", []uint64{10, 60, 60, 60, 60, 60, 60}, true},
		{"grows late", []uint64{10, 10, 10, 10, 10, 10, 60}, true},
		{"grows under a buffer", []uint64{10, 70, 20, 80, 30, 90, 40, 100}, true},
		{"two looks", []uint64{10, 60}, true},
	} {
		m := Between(looksAt(tc.mib...), 0, len(tc.mib)-1)
		if leads := Furthest(&m) != nil; leads != tc.leads {
			t.Errorf("%s: leads somewhere %v, moves %+v", tc.name, leads, m.Moves)
		}
	}
}

// A look at a file once a second is no progress where nothing is kept of it;
// what comes from slow storage is.
func TestReadingThatLeadsNowhere(t *testing.T) {
	frames := func(perS uint64, waits bool) *evidence.Snapshot {
		s := &evidence.Snapshot{Processes: []evidence.Process{{PID: 7, Name: "x"}}}
		for n := range uint64(9) {
			read := n * perS / 2
			f := evidence.Frame{SinceMS: 500 * float64(n), StorageLooked: true,
				Processes: []evidence.ProcessFrame{{PID: 7, State: "S", ReadCharBytes: &read}}}
			if waits && n%3 == 0 {
				f.Storage = []evidence.StorageWait{{PID: 7, TID: 7}}
			}
			s.Frames = append(s.Frames, f)
		}
		return s
	}
	for _, tc := range []struct {
		name  string
		s     *evidence.Snapshot
		leads bool
	}{
		{"polls", frames(300<<10, false), false},
		{"reads fast", frames(30<<20, false), true},
		{"reads from slow storage", frames(300<<10, true), true},
	} {
		m := Between(tc.s, 0, len(tc.s.Frames)-1)
		if leads := Furthest(&m) != nil; leads != tc.leads {
			t.Errorf("%s: leads somewhere %v", tc.name, leads)
		}
		// Whoever did not look at threads does not know where it waited.
		for n := range tc.s.Frames {
			tc.s.Frames[n].StorageLooked, tc.s.Frames[n].Storage = false, nil
		}
		if m = Between(tc.s, 0, len(tc.s.Frames)-1); Furthest(&m) == nil {
			t.Errorf("%s: nobody looked where it waits, and it counts as nothing", tc.name)
		}
	}
}

// Who is beside the server, and who is not.
func TestBesideServer(t *testing.T) {
	s := &evidence.Snapshot{Processes: []evidence.Process{
		{PID: 1, Name: "bash", Exe: "/bin/bash", Argv: []string{"bash", "start.sh"}},
		{PID: 2, PPID: 1, Name: "vllm", Exe: "/usr/bin/python3", Argv: []string{"python3", "/usr/bin/vllm", "serve", "m"}},
		{PID: 3, PPID: 1, Name: "curl", Exe: "/usr/bin/curl"},
		{PID: 4, PPID: 1, Name: "python3", Exe: "/usr/bin/python3", Argv: []string{"python3", "rank.py"}},
		{PID: 5, PPID: 2, Name: "cicc", Exe: "/usr/bin/cicc"},
		{PID: 6, PPID: 2, Name: "loader", Exe: "/usr/bin/loader"},
		{PID: 7, PPID: 1, Name: "cat", Exe: "/bin/cat", Files: []evidence.OpenFile{{Path: "/m/a.safetensors"}}},
	}}
	beside := besideServer(s)
	for pid := 1; pid <= 7; pid++ {
		if want := pid == 1 || pid == 3; beside[pid] != want {
			t.Errorf("%d (%s): beside %v", pid, s.Processes[pid-1].Name, beside[pid])
		}
	}
	s.Processes[1].Exe = ""
	if len(besideServer(s)) > 0 {
		t.Error("nobody may be said to be beside where programs cannot be read")
	}
}
