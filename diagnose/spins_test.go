package diagnose

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/rules/rule"
)

// The same loop of sched_yield before the door opens and behind an open one: a
// rank that waits for its peers, and one that waits for requests.
func TestYieldLoops(t *testing.T) {
	const connects = "log=[parallel_state.py:1395] world_size=2 rank=0 local_rank=0 distributed_init_method=file:///run/vllm_dist_b2e6 backend=nccl"
	t.Run("in the set-up of communicators", func(t *testing.T) {
		p := newStarting(t).start(t, connects+";yield=300")
		j := diagnosed(t, quick(p.PID))
		expect(t, j, rule.Loading, rule.CommunicatorUp)
		if j.Strength != rule.Likely {
			t.Errorf("strength %s", j.Strength)
		}
	})
	t.Run("in it for longer than it may be silent", func(t *testing.T) {
		s := newStarting(t)
		p := s.start(t, connects+";yield=300")
		log := filepath.Join(s.dir, "log")
		eventually(t, func() bool { b, _ := os.ReadFile(log); return strings.Contains(string(b), "world_size") })
		past := time.Now().Add(-time.Hour)
		if err := os.Chtimes(log, past, past); err != nil {
			t.Fatal(err)
		}
		expect(t, diagnosed(t, quick(p.PID)), rule.Unknown, rule.Conflicting)
	})
	t.Run("behind an open door", func(t *testing.T) {
		s := newStarting(t)
		p := s.start(t, "yielding;serve")
		s.opens(t)
		expect(t, diagnosed(t, quick(p.PID)), rule.Ready, rule.Idle)
		o := quick(p.PID)
		o.Passive = true
		if j := diagnosed(t, o); j.Verdict != rule.Ready {
			t.Errorf("passive: %s (%s): %s", j.Verdict, j.Cause, j.Sentence)
		}
	})
}

// Two servers that serve one request at a time and have one: both are mute, one
// computes and one sleeps.
func TestMuteServers(t *testing.T) {
	for _, tc := range []struct {
		steps   string
		verdict rule.Verdict
		cause   rule.Cause
	}{
		{"prefill=60", rule.Unknown, rule.Conflicting},
		{"stuck=60", rule.Unresponsive, rule.AcceptStuck},
	} {
		t.Run(tc.steps, func(t *testing.T) {
			t.Parallel()
			s := newStarting(t)
			p := s.start(t, tc.steps)
			s.opens(t)
			go func() {
				url := "http://127.0.0.1:" + strconv.Itoa(s.port) + "/v1/chat/completions"
				if r, err := http.Post(url, "application/json", strings.NewReader("{}")); err == nil {
					r.Body.Close()
				}
			}()
			time.Sleep(500 * time.Millisecond)
			expect(t, diagnosed(t, quick(p.PID)), tc.verdict, tc.cause)
		})
	}
}

// opens waits until the server answers.
func (s starting) opens(t *testing.T) {
	t.Helper()
	eventually(t, func() bool {
		r, err := http.Get("http://127.0.0.1:" + strconv.Itoa(s.port) + "/v1/models")
		if err == nil {
			r.Body.Close()
		}
		return err == nil
	})
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for range 200 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("it does not come to that")
}
