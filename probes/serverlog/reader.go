package serverlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// Limits of single steps. A file that cannot be opened in openLimit lies on a
// mount that does not answer; readLimit is for callers that set no deadline.
const (
	setupLimit = 5 * time.Second
	readLimit  = 2 * time.Minute
)

// A variable for the tests.
var openLimit = 3 * time.Second

// Reader reads logs in a child process. Its methods may not be called at the
// same time from several goroutines, but for Close.
type Reader struct {
	setup  setup
	child  *probes.Child
	status evidence.ProbeRun // of the following, see FrameRun
}

// Start starts the child and hands it what to look for. It looks at growing
// files every poll, 0 for often enough for frames a quarter of a second apart;
// whoever watches for an hour can save the machine most of that. An error names
// the signature or format that is wrong, or says why there is no child.
func Start(signatures []evidence.Signature, formats []evidence.LineFormat, poll time.Duration) (*Reader, error) {
	r := &Reader{setup: setup{Formats: formats, Poll: poll}}
	for _, s := range signatures {
		s.Examples, s.Near = nil, nil
		r.setup.Signatures = append(r.setup.Signatures, s)
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Reader) start() error {
	child, err := probes.StartChild("log")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), setupLimit)
	defer cancel()
	if err := child.Call(ctx, question{Setup: &r.setup}, &struct{}{}); err != nil {
		child.Close()
		return err
	}
	r.child = child
	return nil
}

// Close ends the child.
func (r *Reader) Close() {
	if r.child != nil {
		r.child.Close()
	}
}

// scanNotes collects how a scan went.
type scanNotes struct {
	run      evidence.ProbeRun
	problems []string
	worst    evidence.Status
}

// Scan reads every candidate from its first to its last byte. A candidate that
// cannot be read is told in the run, and does not keep the others from being
// read; one that does not answer is left behind together with the child. A
// second call reads only what was appended since the first, and tells
// everything again. Past the deadline of ctx the logs hold what was read so
// far, and the run is partial.
func (r *Reader) Scan(ctx context.Context, candidates []Candidate) ([]evidence.Log, evidence.ProbeRun) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	n := scanNotes{worst: evidence.OK}
	var logs []evidence.Log
	done := map[int]bool{}
	var bytes, lines int64
	for _, c := range candidates {
		log := r.scanOne(ctx, c, done, &n)
		if log != nil {
			logs = append(logs, *log)
			bytes += log.SizeBytes
			lines += log.Lines
		}
	}
	n.run.Name, n.run.TookMS = evidence.ProbeLog, probes.Milliseconds(time.Since(start))
	n.finish(len(candidates), len(logs))
	if len(logs) > 0 {
		n.problems = append([]string{fmt.Sprintf("read %s lines, %s bytes in %d of %d files", grouped(lines), grouped(bytes), len(logs), len(candidates))}, n.problems...)
	}
	n.run.Detail = strings.Join(n.problems, "; ")
	r.status = evidence.ProbeRun{Name: evidence.ProbeLog, Status: evidence.OK}
	return logs, n.run
}

// finish decides the status of the run.
func (n *scanNotes) finish(candidates, read int) {
	switch {
	case candidates == 0:
		n.run.Status = evidence.Skipped
		n.problems = append(n.problems, "no log file was found")
	case n.worst == evidence.OK:
		n.run.Status = evidence.OK
	case read > 0:
		n.run.Status = evidence.Partial
	default:
		n.run.Status = n.worst
	}
}

// problem notes what went wrong with a candidate.
func (n *scanNotes) problem(c Candidate, status evidence.Status, why string) {
	n.problems = append(n.problems, c.Path+" ("+c.Source+"): "+why)
	n.worst = status
	if status == evidence.Denied && n.run.Hint == "" {
		n.run.Hint = "sudo whyhang --log " + probes.Quoted(c.Path) + " PID"
		if c.PID != 0 {
			n.run.Hint = "sudo whyhang " + strconv.Itoa(c.PID)
		}
	}
}

// scanOne reads one candidate; nil if it gave nothing. done are the numbers of
// logs that were read in this scan.
func (r *Reader) scanOne(ctx context.Context, c Candidate, done map[int]bool, n *scanNotes) *evidence.Log {
	if err := r.alive(); err != nil {
		n.problem(c, evidence.Failed, err.Error())
		return nil
	}
	var o opened
	openCtx, cancel := context.WithTimeout(ctx, openLimit)
	err := r.child.Call(openCtx, question{Open: &c}, &o)
	cancel()
	if err != nil {
		r.lost(c, err, n)
		return nil
	}
	if o.Refused != nil {
		n.problem(c, o.Refused.Status, o.Refused.Why)
		return nil
	}
	if done[o.Log] {
		return nil // another name of the same file
	}
	done[o.Log] = true
	var s scanned
	if err := r.child.Call(ctx, question{Scan: &scan{Log: o.Log, Allowed: allowed(ctx)}}, &s); err != nil {
		r.lost(c, err, n)
		return nil
	}
	n.problems = append(n.problems, s.Notes...)
	if s.Refused != nil {
		n.problem(c, s.Refused.Status, s.Refused.Why)
		return nil
	}
	if !s.Done {
		n.problem(c, evidence.Partial, fmt.Sprintf("time was up after %s of %s bytes", grouped(s.Log.SizeBytes), grouped(s.Size)))
	}
	return &s.Log
}

// allowed is the time the child may read: a little less than the parent waits,
// so that it is not left behind for being slow.
func allowed(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(deadline)
	return max(time.Millisecond, left-max(left/10, 50*time.Millisecond))
}

// alive starts another child if the last one was lost.
func (r *Reader) alive() error {
	if r.child != nil {
		return nil
	}
	return r.start()
}

// lost notes that the child did not answer or has ended. The next question
// goes to a new one, which knows no logs.
func (r *Reader) lost(c Candidate, err error, n *scanNotes) {
	status, why := r.drop(err)
	n.problem(c, status, why)
}

func (r *Reader) drop(err error) (evidence.Status, string) {
	r.child.Close()
	r.child = nil
	var stuck *probes.StuckError
	if errors.As(err, &stuck) {
		why := stuck.Error()
		if stuck.Child.Wchan != "" {
			why += ", the kernel waits in " + stuck.Child.Wchan
		}
		return evidence.Timeout, why
	}
	return evidence.Failed, err.Error()
}

// Frame says how the logs of the last Scan have moved since the frame before,
// the first since the scan. It is nil when that is not known; FrameRun says
// why.
func (r *Reader) Frame(ctx context.Context) []evidence.LogFrame {
	if r.child == nil {
		return nil
	}
	var f framed
	if err := r.child.Call(ctx, question{Frame: true}, &f); err != nil {
		r.status.Status, r.status.Detail = r.drop(err)
		return nil
	}
	if len(f.Notes) > 0 {
		r.status.Status, r.status.Detail = evidence.Partial, strings.Join(f.Notes, "; ")
	}
	return f.Frames
}

// FrameRun is how the following went since the last Scan.
func (r *Reader) FrameRun() evidence.ProbeRun { return r.status }

// NotFound is the run for a server of which Find gave no candidate: what was
// seen instead, and what the operator can do.
func NotFound(unread []evidence.Unread) evidence.ProbeRun {
	run := evidence.ProbeRun{Name: evidence.ProbeLog, Status: evidence.Unsupported, Detail: "no log file is open in the tree"}
	for _, u := range unread {
		run.Detail += "; " + u.What + ": " + u.Why
		if run.Hint == "" || u.Status == evidence.Denied {
			run.Hint = u.Hint
		}
		if u.Status == evidence.Denied {
			run.Status = evidence.Denied
		}
	}
	run.Detail = cutText(run.Detail, 2*maxText)
	return run
}

// grouped is a number with commas.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
