package diagnose

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// lockedBuffer is written to by a process and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answering starts testdata/scenarios/answers.py; requests are what it got.
func answering(t *testing.T, args ...string) (s *scenario.Process, requests *lockedBuffer) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	program, err := filepath.Abs("../testdata/scenarios/answers.py")
	if err != nil {
		t.Fatal(err)
	}
	requests = &lockedBuffer{}
	cmd := exec.Command("python3", append([]string{program}, args...)...)
	cmd.Stderr = requests
	return scenario.StartCmd(t, nil, cmd), requests
}

// certificate writes a certificate and its key, as files for the server.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pair := s.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// asksOnly waits for the check, and has nothing else that takes time.
func asksOnly(pid int) Options {
	o := quick(pid)
	o.Window = 3 * time.Second
	return o
}

// The door of a server, whatever it is made of; the proxies of the environment
// lead nowhere and are not used.
func TestDoors(t *testing.T) {
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	t.Setenv("no_proxy", "")
	cert, key := certificate(t)
	dir := t.TempDir()
	for _, tc := range []struct {
		name string
		args []string
		url  string // its beginning
	}{
		{"IPv4", nil, "http://127.0.0.1:"},
		{"IPv6", []string{"--host", "::1"}, "http://[::1]:"},
		{"all addresses", []string{"--host", "0.0.0.0"}, "http://127.0.0.1:"},
		{"TLS", []string{"--tls", cert, key, "--metrics"}, "https://127.0.0.1:"},
		{"unix socket", []string{"--uds", filepath.Join(dir, "s")}, "unix:" + filepath.Join(dir, "s")},
		{"relative unix socket", []string{"--uds", "../../" + filepath.Base(filepath.Dir(dir)) + "-x.sock"}, "unix:"},
		{"abstract unix socket", []string{"--uds", "@" + filepath.Base(dir)}, "unix:@"},
		{"unix socket over TLS", []string{"--uds", filepath.Join(dir, "t"), "--tls", cert, key}, "unix:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, requests := answering(t, tc.args...)
			j := diagnosed(t, asksOnly(s.PID))
			expect(t, j, rule.Ready, rule.Idle)
			if j.Strength != rule.Proved || !strings.HasPrefix(j.Case.Check.URL, tc.url) {
				t.Errorf("%s at %s", j.Strength, j.Case.Check.URL)
			}
			if strings.Contains(strings.Join(tc.args, " "), "--metrics") != (len(j.Case.Snapshot.Counters) > 1) {
				t.Errorf("counters %+v", j.Case.Snapshot.Counters)
			}
			if !strings.Contains(requests.String(), "POST /v1/chat/completions") {
				t.Errorf("it got %q", requests)
			}
		})
	}
}

// A server's own key is used and shown nowhere, even if the server shows it.
func TestOwnKey(t *testing.T) {
	const key = "tiny-7"
	s, requests := answering(t, "--api-key", key)
	j := diagnosed(t, asksOnly(s.PID))
	expect(t, j, rule.Ready, rule.Idle)
	if j.Case.Check.KeyFrom != "its command line (--api-key)" || !strings.Contains(requests.String(), " key\n") || strings.Contains(requests.String(), "no key") {
		t.Errorf("key from %q, requests %q", j.Case.Check.KeyFrom, requests)
	}
	silent(t, j, key)

	// A wrong key of the operator's is not replaced by the right one.
	o := asksOnly(s.PID)
	o.APIKey = "wrong"
	j = diagnosed(t, o)
	if j.Verdict != rule.Unknown || j.Case.Check.Verdict != evidence.CheckUnauthorised || j.Case.Check.KeyFrom != "" {
		t.Errorf("%s, %s: %s", j.Verdict, j.Case.Check.Verdict, j.Sentence)
	}
	silent(t, j, key)
}

// silent holds that nothing in the snapshot has the secret.
func silent(t *testing.T, j *rules.Judgement, secret string) {
	t.Helper()
	b, err := json.Marshal(j.Case.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if at := bytes.Index(b, []byte(secret)); at >= 0 {
		t.Errorf("the key is in the snapshot: %s", b[max(0, at-200):at+20])
	}
	if strings.Contains(j.Sentence, secret) {
		t.Errorf("the key is in the sentence: %s", j.Sentence)
	}
}

// Two servers on one port: one is stuck, the other answers. Whoever is asked for
// is judged by its own answers.
func TestSharedPort(t *testing.T) {
	healthy, _ := answering(t, "--reuseport")
	stuck, requests := answering(t, "--reuseport", "--port", healthy.Ready, "--stuck", "engine")
	j := diagnosed(t, asksOnly(healthy.PID))
	expect(t, j, rule.Ready, rule.Idle)
	warned := false
	for _, w := range j.Warnings {
		warned = warned || w.Code == "port-shared" && w.Misleads
	}
	if !warned || strings.Contains(requests.String(), "POST") {
		t.Errorf("warnings %+v; the other server got %q", j.Warnings, requests)
	}
	j = diagnosed(t, asksOnly(stuck.PID))
	expect(t, j, rule.Unresponsive, rule.NoAnswer)
}

// One part of the server is stuck for good: where the question got to is said.
func TestStuckServers(t *testing.T) {
	for _, tc := range []struct {
		stuck string
		cause rule.Cause
		says  string
	}{
		{"accept", rule.AcceptStuck, "accepts nobody"},
		{"engine", rule.NoAnswer, "headers"},
		{"stream", rule.NoAnswer, "after 1 chunk"},
	} {
		t.Run("Python "+tc.stuck, func(t *testing.T) {
			t.Parallel()
			s, _ := answering(t, "--stuck", tc.stuck)
			j := diagnosed(t, asksOnly(s.PID))
			expect(t, j, rule.Unresponsive, tc.cause)
			if !strings.Contains(j.Sentence, tc.says) {
				t.Errorf("it stopped elsewhere: %s", j.Sentence)
			}
		})
		t.Run("C "+tc.stuck, func(t *testing.T) {
			t.Parallel()
			j := diagnosed(t, asksOnly(scenario.Start(t, "answers", tc.stuck).PID))
			expect(t, j, rule.Unresponsive, tc.cause)
			if !strings.Contains(j.Sentence, tc.says) {
				t.Errorf("it stopped elsewhere: %s", j.Sentence)
			}
		})
	}
	t.Run("C healthy", func(t *testing.T) {
		t.Parallel()
		expect(t, diagnosed(t, asksOnly(scenario.Start(t, "answers").PID)), rule.Ready, rule.Idle)
	})
	t.Run("Python prefill", func(t *testing.T) {
		t.Parallel()
		s, _ := answering(t, "--stuck", "prefill")
		expect(t, diagnosed(t, asksOnly(s.PID)), rule.Unknown, rule.Conflicting)
	})
}

// Requests of others run in an engine that is stuck; its front end serves its
// counters all the same.
func TestEngineStuck(t *testing.T) {
	s, _ := answering(t, "--metrics", "--stuck", "engine")
	body := `{"model":"small","messages":[]}`
	for range 2 {
		go func() {
			response, err := http.Post("http://127.0.0.1:"+s.Ready+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err == nil {
				response.Body.Close()
			}
		}()
	}
	j := diagnosed(t, asksOnly(s.PID))
	expect(t, j, rule.Unresponsive, rule.EngineStuck)
	o := asksOnly(s.PID)
	o.NoCheck = true
	j = diagnosed(t, o)
	expect(t, j, rule.Unresponsive, rule.EngineStuck)
	if j.Strength != rule.Likely || j.Case.Check != nil {
		t.Errorf("not asked: %s", j.Strength)
	}
}

// A server that turns requests away is busy where its counters show that it works
// for others, and nobody knows where they do not move.
func TestTurnedAway(t *testing.T) {
	for _, tc := range []struct {
		name    string
		args    []string
		verdict rule.Verdict
		cause   rule.Cause
	}{
		{"works", []string{"--metrics"}, rule.Ready, rule.Busy},
		{"stuck", []string{"--metrics", "--stuck", "engine"}, rule.Unresponsive, rule.EngineStuck},
		{"no counters", nil, rule.Unknown, rule.Conflicting},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, _ := answering(t, append(tc.args, "--most", "1")...)
			go func() {
				body := `{"model":"small","messages":[],"max_tokens":5000}`
				if response, err := http.Post("http://127.0.0.1:"+s.Ready+"/v1/chat/completions", "application/json", strings.NewReader(body)); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
			}()
			time.Sleep(500 * time.Millisecond)
			j := diagnosed(t, asksOnly(s.PID))
			expect(t, j, tc.verdict, tc.cause)
			if c := j.Case.Check; c == nil || c.Verdict != evidence.CheckBusy {
				t.Errorf("%s; check %+v", j.Sentence, c)
			}
			o := asksOnly(s.PID)
			o.NoCheck = true
			j = diagnosed(t, o)
			if j.Verdict != tc.verdict || j.Case.Check != nil {
				t.Errorf("not asked: %s (%s): %s", j.Verdict, j.Cause, j.Sentence)
			}
		})
	}
}

// The name of the model is wrong: the server's own list is offered.
func TestWrongModel(t *testing.T) {
	s, _ := answering(t)
	o := asksOnly(s.PID)
	o.Model = "large"
	j := diagnosed(t, o)
	if j.Verdict != rule.Unknown || !strings.Contains(j.Sentence, `it does not know the model "large"; it offers "small"`) {
		t.Errorf("%s: %s", j.Verdict, j.Sentence)
	}
}

// Clients wait at the door of a server that may not be asked.
func TestAcceptStuckPassive(t *testing.T) {
	s, _ := answering(t, "--stuck", "accept")
	for range 3 {
		c, err := net.Dial("tcp", "127.0.0.1:"+s.Ready)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	o := quick(s.PID)
	o.Passive = true
	j := diagnosed(t, o)
	expect(t, j, rule.Unresponsive, rule.AcceptStuck)
	if j.Strength != rule.Likely || !strings.Contains(j.Sentence, "3 connections have waited") {
		t.Errorf("%s: %s", j.Strength, j.Sentence)
	}
}

// Whatever state the server is in, --passive sends it nothing: neither it nor the
// kernel saw a connection.
func TestPassiveSendsNothing(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("no strace")
	}
	for _, args := range [][]string{nil, {"--uds", filepath.Join(t.TempDir(), "s")}} {
		s, requests := answering(t, args...)
		trace := filepath.Join(t.TempDir(), "trace")
		cmd := exec.Command("strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", trace,
			os.Args[0], "-test.run", "^TestPassiveRun$", "-test.count=1")
		cmd.Env = append(os.Environ(), passivePID+"="+strconv.Itoa(s.PID))
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("unknown not-asked")) {
			t.Fatalf("%v: %s", err, out)
		}
		b, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("AF_INET")) || bytes.Contains(b, []byte("AF_UNIX")) || bytes.Contains(b, []byte("send")) {
			t.Errorf("whyhang connected or sent:\n%s", b)
		}
		if requests.String() != "" {
			t.Errorf("it got %q", requests)
		}
	}
}

// passivePID makes this test binary look at a process with --passive.
const passivePID = "WHYHANG_TEST_PASSIVE_PID"

func TestPassiveRun(t *testing.T) {
	pid, err := strconv.Atoi(os.Getenv(passivePID))
	if err != nil {
		t.Skip("only for TestPassiveSendsNothing")
	}
	o := asksOnly(pid)
	o.Passive = true
	j, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(j.Verdict, j.Cause)
}
