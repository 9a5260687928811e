package probes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxAnswer limits one answer of a child, so that a child gone wild cannot
// fill the memory of the parent.
const maxAnswer = 64 << 20

// Child is a child process of ourselves that answers questions, one JSON line
// each way. It may hang, crash or be unkillable without harm to the parent.
type Child struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	messages chan message
	exited   chan struct{}
	stderr   *headBuffer

	mu      sync.Mutex // one question at a time
	stage   string
	dropped bool
}

// message is one line from a child: an answer, or a word on what comes next.
type message struct {
	Stage  string          `json:"stage,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// StuckError says that a child did not answer in time and was left behind.
type StuckError struct {
	Child evidence.StuckChild
	After time.Duration
}

func (e *StuckError) Error() string {
	s := fmt.Sprintf("no answer within %s", e.After.Round(time.Millisecond))
	if e.Child.Stage != "" {
		s += " from " + e.Child.Stage
	}
	return s
}

// CrashError says that a child ended before it answered.
type CrashError struct {
	Stage  string
	Status string // as in "exit status 127", "signal: segmentation fault"
	Stderr string // its last words, one line
}

func (e *CrashError) Error() string {
	s := "ended with " + e.Status
	if e.Stage != "" {
		s += " in " + e.Stage
	}
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	return s
}

// StartChild starts this executable again as the child called name; see
// ChildMain. The child lives until Close, until it is left behind by Call, or
// until the parent ends, whichever is first.
func StartChild(name string) (*Child, error) {
	if os.Getenv(childMark) != "" {
		// A test binary without ChildMain in its TestMain would run its tests
		// again in the child, and those start children.
		return nil, errors.New("a child of whyhang starts no children: does TestMain call probes.ChildMain?")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own executable: %w", err)
	}
	c := &Child{messages: make(chan message), exited: make(chan struct{}), stderr: &headBuffer{}}
	c.cmd = exec.Command(self, childArgument, name)
	// Test binaries choose what to be by argv[0].
	c.cmd.Args[0] = os.Args[0]
	c.cmd.Stderr = c.stderr
	c.cmd.Env = append(os.Environ(), childMark+"=1")
	c.cmd.WaitDelay = time.Second
	// Out of the terminal's process group: Ctrl-C is the parent's to handle.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, answersOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// Answers go over a descriptor of their own, as a library loaded by the
	// child may print to its standard output.
	c.cmd.ExtraFiles = []*os.File{answersOut}
	err = c.cmd.Start()
	answersOut.Close()
	if err != nil {
		answers.Close()
		return nil, err
	}
	go c.receive(answers)
	go func() {
		// Wait blocks for as long as the child is in D state: never wait for
		// it elsewhere.
		_ = c.cmd.Wait()
		close(c.exited)
	}()
	return c, nil
}

// receive reads lines until the child closes its end, then ends the stream.
func (c *Child) receive(r io.ReadCloser) {
	defer close(c.messages)
	defer r.Close()
	// Not a bufio.Scanner: it searches a long line from its start again after
	// every read.
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(lines, maxAnswer)
		if errors.Is(err, bufio.ErrTooLong) {
			_ = c.cmd.Process.Kill()
		}
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			m = message{Error: "unreadable answer: " + err.Error()}
		}
		c.messages <- m
	}
}

// readLine reads a line of at most limit bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > limit {
			return nil, bufio.ErrTooLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Call puts a question and waits for its answer until ctx is done; then the
// child is killed, left behind, and the error is a *StuckError. A child that
// ended is a *CrashError. Call may be used from several goroutines, one
// question is under way at a time.
func (c *Child) Call(ctx context.Context, question, answer any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped {
		return errors.New("left behind earlier")
	}
	start := time.Now()
	b, err := json.Marshal(question)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.in.Write(append(b, '\n'))
		sent <- err
	}()
	for {
		select {
		case <-ctx.Done():
			return c.leave(time.Since(start))
		case <-sent:
			// A failed write means that the child is gone; the stream says so.
			sent = nil
		case m, open := <-c.messages:
			switch {
			case !open:
				return c.crash(ctx)
			case m.Stage != "":
				c.stage = m.Stage
			case m.Error != "":
				return errors.New(m.Error)
			default:
				return json.Unmarshal(m.Answer, answer)
			}
		}
	}
}

// crash waits for the exit status of a child whose stream has ended.
func (c *Child) crash(ctx context.Context) error {
	c.dropped = true
	select {
	case <-c.exited:
		return &CrashError{Stage: c.stage, Status: c.cmd.ProcessState.String(), Stderr: c.stderr.line()}
	case <-ctx.Done():
		return &CrashError{Stage: c.stage, Status: "no status yet", Stderr: c.stderr.line()}
	}
}

// leave kills the child and does not wait for it to die.
func (c *Child) leave(after time.Duration) error {
	c.dropped = true
	pid := c.cmd.Process.Pid
	stuck := evidence.StuckChild{PID: pid, Stage: c.stage}
	// Read where it hangs before the kill changes it.
	stuck.State, stuck.Wchan = whereIs(pid)
	_ = c.cmd.Process.Kill()
	go func() {
		for range c.messages { // let receive end
		}
	}()
	return &StuckError{Child: stuck, After: after}
}

// PID is the child's process ID.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Close lets the child end: its standard input ends, then it is killed.
func (c *Child) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.in.Close()
	if !c.dropped {
		c.dropped = true
		go func() {
			for range c.messages {
			}
		}()
		go func() {
			select {
			case <-c.exited:
			case <-time.After(200 * time.Millisecond):
				_ = c.cmd.Process.Kill()
			}
		}()
	}
}

// whereIs reads where one of our children hangs: the state letter and the wait
// channel of the thread that says most. One in D state does; else one that
// waits for something other than work.
func whereIs(pid int) (state, wchan string) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
	for _, dir := range tasks {
		s, w := "", ""
		if b, err := os.ReadFile(dir + "/stat"); err == nil {
			if i := strings.LastIndexByte(string(b), ')'); i >= 0 && i+2 < len(b) {
				s = string(b[i+2])
			}
		}
		if b, err := os.ReadFile(dir + "/wchan"); err == nil && string(b) != "0" {
			w = string(b)
		}
		if s == "D" {
			return s, w
		}
		if state == "" || waitsForWork(wchan) && !waitsForWork(w) {
			state, wchan = s, w
		}
	}
	return state, wchan
}

// waitsForWork tells a Go runtime's idle threads from one that hangs.
func waitsForWork(wchan string) bool {
	for _, idle := range []string{"futex_", "do_epoll_wait", "ep_poll", "anon_pipe_read", "pipe_read"} {
		if strings.HasPrefix(wchan, idle) {
			return true
		}
	}
	return wchan == ""
}

// headBuffer keeps the first 4 KiB written to it: libraries and the Go runtime
// say the reason first and a stack after it.
type headBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (h *headBuffer) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b = append(h.b, p[:min(len(p), 4096-len(h.b))]...)
	return len(p), nil
}

// line is the first line that says anything.
func (h *headBuffer) line() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range strings.Lines(string(h.b)) {
		if l = strings.TrimSpace(l); l != "" {
			return l
		}
	}
	return ""
}
