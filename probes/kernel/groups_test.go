package kernel

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// fixture writes a /proc and a /sys of literal kernel text. Files are by path,
// those of /proc relative to it.
func fixture(t *testing.T, mountinfo string, files map[string]string) *Reader {
	t.Helper()
	root := t.TempDir()
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(root+"/proc/self/mountinfo", mountinfo)
	for name, text := range files {
		if strings.HasPrefix(name, "/") {
			write(root+name, text)
		} else {
			write(root+"/proc/"+name, text)
		}
	}
	r, err := NewReader(Options{Proc: root + "/proc", Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func frameOf(t *testing.T, r *Reader, pids ...int) (*evidence.KernelFrame, []evidence.Cgroup, []evidence.Unread, evidence.ProbeRun) {
	t.Helper()
	var procs []evidence.Process
	for _, pid := range pids {
		procs = append(procs, evidence.Process{PID: pid})
	}
	return r.Frame(context.Background(), procs)
}

const (
	v2Mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
	hybrid  = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n" +
		"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n" +
		"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
)

func p[T any](v T) *T { return &v }

func TestUnifiedHierarchy(t *testing.T) {
	r := fixture(t, v2Mount, map[string]string{
		"42/cgroup": "0::/kubepods.slice/pod7/worker\n", "43/cgroup": "0::/kubepods.slice/pod7/worker\n",
		"pressure/cpu":    "some avg10=1.53 avg60=0.87 avg300=0.59 total=3697426112\n", // before Linux 5.13
		"pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
		"meminfo":         "MemTotal:       49367312 kB\nMemFree:        21000000 kB\nMemAvailable:   23609303 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\nHugePages_Total:       0\n",
		"vmstat":          "nr_free_pages 5300\npswpin 17\npswpout 3\noom_kill 2\n",

		"/sys/fs/cgroup/kubepods.slice/pod7/worker/cgroup.procs":    "42\n43\n99\n0\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/worker/cgroup.events":   "populated 1\nfrozen 1\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/worker/cgroup.freeze":   "0\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/worker/cpu.max":         "max 100000\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/worker/memory.max":      "67108864\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/worker/memory.current":  "60000000\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/worker/memory.events":   "low 0\nhigh 0\nmax 512\noom 3\noom_kill 2\noom_group_kill 0\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/worker/memory.pressure": "some avg10=9.00 avg60=0.00 avg300=0.00 total=900\nfull avg10=8.00 avg60=0.00 avg300=0.00 total=800\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/cgroup.events":          "populated 1\nfrozen 1\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/cgroup.freeze":          "1\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/cpu.max":                "5000 100000\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/cpu.stat":               "usage_usec 5000\nuser_usec 4000\nsystem_usec 1000\nnr_periods 30\nnr_throttled 29\nthrottled_usec 2755000\nnr_bursts 0\nburst_usec 0\n",
		"/sys/fs/cgroup/kubepods.slice/pod7/memory.max":             "max\n",
	})
	frame, groups, unread, run := frameOf(t, r, 42, 43)
	if run.Status != evidence.OK || len(unread) > 0 {
		t.Errorf("%+v %+v", run, unread)
	}
	var paths []string
	for _, g := range groups {
		paths = append(paths, g.Path)
		if len(g.PIDs) != 2 || g.Version != 2 {
			t.Errorf("%+v", g)
		}
	}
	if d := cmp.Diff([]string{"/kubepods.slice/pod7/worker", "/kubepods.slice/pod7", "/kubepods.slice", "/"}, paths); d != "" {
		t.Error(d)
	}
	if f := groups[0].Foreign; f == nil || *f != 2 {
		t.Errorf("foreign %v", f)
	}
	want := &evidence.KernelFrame{
		Cgroups: []evidence.CgroupFrame{
			{Cgroup: 0, Freezer: evidence.Frozen, FreezeSelf: p(false), PeriodUS: p(uint64(100000)), MemoryLimitBytes: p(uint64(67108864)), MemoryBytes: p(uint64(60000000)), OOMKills: p(uint64(2)),
				Pressure: &evidence.Pressure{Memory: &evidence.Stall{SomeUS: 900, FullUS: p(uint64(800))}}},
			{Cgroup: 1, Freezer: evidence.Frozen, FreezeSelf: p(true), QuotaUS: p(uint64(5000)), PeriodUS: p(uint64(100000)), Periods: p(uint64(30)), Throttled: p(uint64(29)), ThrottledUS: p(uint64(2755000))},
		},
		Pressure:          &evidence.Pressure{CPU: &evidence.Stall{SomeUS: 3697426112}, Memory: &evidence.Stall{SomeUS: 12, FullUS: p(uint64(7))}},
		MemAvailableBytes: p(uint64(23609303 << 10)), SwapTotalBytes: p(uint64(0)), SwapFreeBytes: p(uint64(0)), OOMKills: p(uint64(2)), SwapInPages: p(uint64(17)),
	}
	if d := cmp.Diff(want, frame); d != "" {
		t.Error(d)
	}
}

func TestHybridHierarchies(t *testing.T) {
	r := fixture(t, hybrid, map[string]string{
		"42/cgroup": "9:name=systemd:/user\n8:pids:/\n6:freezer:/jobs/a\n4:memory:/serving\n2:cpu,cpuacct:/quota\n0::/\n",
		"/sys/fs/cgroup/freezer/jobs/a/freezer.state":               "FROZEN\n",
		"/sys/fs/cgroup/freezer/jobs/a/freezer.self_freezing":       "0\n",
		"/sys/fs/cgroup/freezer/jobs/a/freezer.parent_freezing":     "1\n",
		"/sys/fs/cgroup/freezer/jobs/freezer.state":                 "FROZEN\n",
		"/sys/fs/cgroup/freezer/jobs/freezer.self_freezing":         "1\n",
		"/sys/fs/cgroup/memory/serving/memory.limit_in_bytes":       "67108864\n",
		"/sys/fs/cgroup/memory/serving/memory.usage_in_bytes":       "1000\n",
		"/sys/fs/cgroup/memory/serving/memory.memsw.usage_in_bytes": "1500\n",
		"/sys/fs/cgroup/memory/serving/memory.oom_control":          "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes":               "9223372036854771712\n",
		"/sys/fs/cgroup/cpu,cpuacct/quota/cpu.cfs_quota_us":         "5000\n",
		"/sys/fs/cgroup/cpu,cpuacct/quota/cpu.cfs_period_us":        "100000\n",
		"/sys/fs/cgroup/cpu,cpuacct/quota/cpu.stat":                 "nr_periods 21\nnr_throttled 20\nthrottled_time 1893000000\n",
		"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":               "-1\n",
		"/sys/fs/cgroup/unified/cgroup.procs":                       "42\n",
	})
	frame, groups, unread, _ := frameOf(t, r, 42)
	if len(unread) > 0 {
		t.Errorf("%+v", unread)
	}
	got := map[string]evidence.CgroupFrame{}
	for _, f := range frame.Cgroups {
		g := groups[f.Cgroup]
		f.Cgroup = 0
		got[g.Dir] = f
	}
	want := map[string]evidence.CgroupFrame{
		"/sys/fs/cgroup/freezer/jobs/a":    {Freezer: evidence.Frozen, FreezeSelf: p(false)},
		"/sys/fs/cgroup/freezer/jobs":      {Freezer: evidence.Frozen, FreezeSelf: p(true)},
		"/sys/fs/cgroup/memory/serving":    {MemoryLimitBytes: p(uint64(67108864)), MemoryBytes: p(uint64(1000)), SwapBytes: p(uint64(500)), OOMKills: p(uint64(1))},
		"/sys/fs/cgroup/memory":            {},
		"/sys/fs/cgroup/cpu,cpuacct/quota": {QuotaUS: p(uint64(5000)), PeriodUS: p(uint64(100000)), Periods: p(uint64(21)), Throttled: p(uint64(20)), ThrottledUS: p(uint64(1893000))},
		"/sys/fs/cgroup/cpu,cpuacct":       {},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// The process ends and version 1 shows it in the root: it stays where it was.
	if err := os.WriteFile(r.path(42, "cgroup"), []byte("4:memory:/\n0::/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, groups, _, _ = frameOf(t, r, 42)
	for _, g := range groups {
		if g.Path == "/serving" && len(g.PIDs) != 1 {
			t.Errorf("%+v", g)
		}
	}
}

// What a mount shows of a group: by its root, and by cgroup namespaces, in which
// groups outside begin with "/..".
func TestBelow(t *testing.T) {
	for _, tc := range []struct{ root, group, want string }{
		{"/", "/", ""}, {"/", "/a/b", "a/b"}, {"/", "/../other", "outside"}, {"/", "/..", "outside"}, {"/", "/..a", "..a"},
		{"/docker/4f1c", "/docker/4f1c", ""}, {"/docker/4f1c", "/docker/4f1c/x", "x"}, {"/docker/4f1c", "/docker/4f1cc", "outside"},
		{"/docker/4f1c", "/", "outside"}, {"/..", "/../b", "b"}, {"/..", "/../../b", "outside"}, {"/..", "/a", "outside"}, {"/", "a", "outside"}, {"/", "/a\x00b", "outside"},
	} {
		m := cgroupMount{root: tc.root}
		got, err := m.below(tc.group)
		if err != nil {
			got = "outside"
		}
		if got != tc.want {
			t.Errorf("%q below %q: %q, want %q", tc.group, tc.root, got, tc.want)
		}
	}
}

// What cannot be read is said, with the reason, and nothing is invented.
func TestNotVisible(t *testing.T) {
	r := fixture(t, v2Mount, map[string]string{"42/cgroup": "4:memory:/docker/x\n0::/../other\n"})
	frame, groups, unread, run := frameOf(t, r, 42, 4242)
	if len(groups) != 0 || len(frame.Cgroups) != 0 || frame.Pressure != nil || frame.OOMKills != nil {
		t.Errorf("%+v %+v", frame, groups)
	}
	if len(unread) != 2 || run.Status != evidence.Unsupported || run.Hint == "" {
		t.Errorf("%+v %+v", run, unread)
	}
	// A second look says it no second time.
	if _, _, again, _ := frameOf(t, r, 42); len(again) != 2 {
		t.Errorf("%+v", again)
	}
}
