package kernel

import (
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestParseKill(t *testing.T) {
	for _, tc := range []struct {
		text  string
		pid   int
		name  string
		limit bool
		anon  uint64
	}{
		{"Memory cgroup out of memory: Killed process 27552 (oom_helper) total-vm:207956kB, anon-rss:63488kB, file-rss:1024kB, shmem-rss:0kB, UID:0 pgtables:160kB oom_score_adj:0", 27552, "oom_helper", true, 63488 << 10},
		{"Out of memory: Killed process 7 (VLLM::Worker_TP) total-vm:1kB, anon-rss:2kB, file-rss:0kB", 7, "VLLM::Worker_TP", false, 2 << 10},
		{"Out of memory (oom_kill_allocating_task): Killed process 8 (a) b (c)) total-vm:1kB", 8, "a) b (c)", false, 0},
		{"Memory cgroup out of memory: Killed process 9 (x)", 9, "x", true, 0},
		{"Killed process 9 (x) total-vm:1kB", 0, "", false, 0},
		{"systemd: Killed process 9 (x)", 0, "", false, 0},
		{"Out of memory: Killed process -1 (x)", 0, "", false, 0},
		{"Out of memory: Killed process 99999999999999999999 (x)", 0, "", false, 0},
		{"Out of memory: Killed process 9 x", 0, "", false, 0},
		{"oom_reaper: reaped process 27552 (oom_helper), now anon-rss:0kB", 0, "", false, 0},
	} {
		k, ok := parseKill(tc.text)
		if ok != (tc.pid != 0) || k.PID != tc.pid || k.Name != tc.name || k.Limit != tc.limit {
			t.Errorf("%q: %+v, %v", tc.text, k, ok)
		}
		if (k.AnonBytes != nil) != (tc.anon != 0) || k.AnonBytes != nil && *k.AnonBytes != tc.anon {
			t.Errorf("%q: anon %v", tc.text, k.AnonBytes)
		}
	}
}

func TestParseKillGroup(t *testing.T) {
	const line = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/serving,task_memcg=/serving/a,task=py,pid=1,thon,pid=42,uid=0"
	pid, group, ok := parseKillGroup(line)
	if !ok || pid != 42 || group != "/serving/a" {
		t.Errorf("%d %q %v", pid, group, ok)
	}
	for _, not := range []string{"", "oom-kill:", "oom-kill:task_memcg=/x", "x" + line, "oom-kill:constraint=NONE,task_memcg=/x,task=y,pid=,uid=0"} {
		if _, _, ok := parseKillGroup(not); ok {
			t.Errorf("%q is one", not)
		}
	}
}

// The log of a machine up for 1000 s, with a tree that started at 500 s.
func TestKillCollector(t *testing.T) {
	collect := func(records ...string) *evidence.KernelLog {
		c := newKillCollector(500 * time.Second)
		c.asleep = 0
		for _, r := range records {
			c.take([]byte(r))
		}
		return c.log
	}
	const kill = ";Out of memory: Killed process 42 (x) total-vm:1kB\n SUBSYSTEM=a\n"
	for _, tc := range []struct {
		name     string
		log      *evidence.KernelLog
		kills    int
		complete bool
	}{
		{"from boot on", collect("5,0,0,-;Linux version", "3,9,600000000,-"+kill), 1, true},
		{"before the tree", collect("5,0,0,-;Linux version", "3,9,400000000,-"+kill), 0, true},
		{"within the slack", collect("5,0,0,-;Linux version", "3,9,497000000,-"+kill), 1, true},
		{"overwritten, but not since the start", collect("5,700,450000000,-;x", "3,9,600000000,c"+kill), 1, true},
		{"overwritten since the start", collect("5,900,550000000,-;x", "3,9,600000000,-"+kill), 1, false},
		{"written by a program", collect("5,0,0,-;Linux version", "11,9,600000000,-"+kill), 0, true},
		{"garbage", collect("5,0,0,-;Linux version", "", ";", "a,b,c;d", "3,9;x"), 0, true},
		{"nothing at all", collect(), 0, false},
	} {
		if len(tc.log.Kills) != tc.kills || tc.log.Complete != tc.complete {
			t.Errorf("%s: %+v", tc.name, tc.log)
		}
	}
	log := collect("5,0,0,-;Linux version", "6,8,600000000,-;oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/s,task=x,pid=42,uid=0", "3,9,600000000,-"+kill)
	if log.Kills[0].Cgroup != "/s" || strings.Contains(log.Kills[0].Text, "SUBSYSTEM") {
		t.Errorf("%+v", log.Kills[0])
	}
}

// Kills of others do not leave the probe.
func TestOfTree(t *testing.T) {
	log := &evidence.KernelLog{Complete: true, SamePIDs: true, Kills: []evidence.OOMKill{
		{PID: 42, Name: "ours"}, {PID: 7, Name: "gone", Cgroup: "/serving"}, {PID: 8, Name: "foreign"}, {PID: 9, Name: "foreign", Cgroup: "/"},
		{PID: 10, Name: "foreign", Cgroup: "/jobs"}, {PID: 11, Name: "foreign", Cgroup: "/serving2"}}}
	groups := []evidence.Cgroup{{Version: 1, Controllers: []string{"memory"}, Path: "/serving"}, {Version: 1, Controllers: []string{"memory"}, Path: "/"}, {Version: 1, Controllers: []string{"freezer"}, Path: "/jobs"}}
	kept := OfTree(log, []evidence.Process{{PID: 42}}, groups)
	if !kept.Complete || !kept.SamePIDs || len(kept.Kills) != 2 || kept.Kills[0].PID != 42 || kept.Kills[1].PID != 7 || len(log.Kills) != 6 {
		t.Errorf("%+v", kept)
	}
	if OfTree(nil, nil, nil) != nil {
		t.Error("a log from none")
	}
}

func TestFreezer(t *testing.T) {
	for _, tc := range []struct {
		events, freeze string
		want           evidence.Freezer
	}{
		{"populated 1\nfrozen 1\n", "1\n", evidence.Frozen}, {"populated 1\nfrozen 1\n", "0\n", evidence.Frozen},
		{"populated 1\nfrozen 0\n", "1\n", evidence.Freezing}, {"populated 1\nfrozen 0\n", "0\n", evidence.Thawed},
		{"", "", ""}, {"frozen x\n", "1\n", ""},
	} {
		if got, _ := freezerEvents([]byte(tc.events), []byte(tc.freeze)); got != tc.want {
			t.Errorf("%q %q: %q, want %q", tc.events, tc.freeze, got, tc.want)
		}
	}
	for text, want := range map[string]evidence.Freezer{"THAWED\n": evidence.Thawed, "FREEZING\n": evidence.Freezing, "FROZEN\n": evidence.Frozen, "": "", "frozen\n": ""} {
		if got := freezerState([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte("3,1234,5678901,-;Memory cgroup out of memory: Killed process 42 (a b) total-vm:1kB, anon-rss:2kB\n K=v"))
	f.Add([]byte("6,8,600000000,-;oom-kill:constraint=NONE,task_memcg=/s,task=x,pid=42,uid=0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		if strings.ContainsFunc(r.text, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%q", r.text)
		}
		if k, ok := parseKill(r.text); ok && (k.PID <= 0 || len(k.Name) > 64 || len(k.Text) > maxKernelLine) {
			t.Errorf("%+v", k)
		}
		if pid, group, ok := parseKillGroup(r.text); ok && (pid < 0 || len(group) > 1024) {
			t.Errorf("%d %q", pid, group)
		}
	})
}

func FuzzGroupFiles(f *testing.F) {
	f.Add([]byte("nr_periods 21\nnr_throttled 20\nthrottled_time 1893000000\n"))
	f.Add([]byte("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"))
	f.Add([]byte("some avg10=0.00 avg60=0.32 avg300=0.45 total=3552082201\nfull avg10=0.00 total=0\n"))
	f.Add([]byte("max 100000\n"))
	f.Add([]byte("MemAvailable:   23609303 kB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var g evidence.CgroupFrame
		var k evidence.KernelFrame
		cpuStat(b, &g)
		memInfo(b, &k)
		vmStat(b, &k)
		quota, _ := cpuMax(b)
		if quota != nil && len(b) == 0 {
			t.Error("a quota from nothing")
		}
		if l := memoryLimit(b); l != nil && *l >= noMemoryLimit {
			t.Errorf("limit %d", *l)
		}
		if s := parseStall(b); s != nil && !strings.Contains(string(b), "total=") {
			t.Errorf("%+v", s)
		}
		oomKills(b)
		freezerState(b)
		freezerEvents(b, b)
	})
}

func FuzzBelow(f *testing.F) {
	f.Add("/", "/a/../b")
	f.Add("/docker/x", "/docker/x/y")
	f.Fuzz(func(t *testing.T, root, group string) {
		m := cgroupMount{root: root}
		if rest, err := m.below(group); err == nil && (strings.HasPrefix(rest, "/") || strings.Contains("/"+rest+"/", "/../")) {
			t.Errorf("%q below %q: %q", group, root, rest)
		}
	})
}
