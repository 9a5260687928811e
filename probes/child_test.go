package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestMain(m *testing.M) {
	ChildMain(map[string]func() Handler{"test": testChild})
	os.Exit(m.Run())
}

// testChild is a child with all the bad habits a library can have.
func testChild() Handler {
	asked := 0
	return func(_ context.Context, q json.RawMessage, stage func(string)) (any, error) {
		asked++
		var what string
		if err := json.Unmarshal(q, &what); err != nil {
			return nil, err
		}
		switch what {
		case "count":
			return asked, nil
		case "fail":
			return nil, errors.New("as asked")
		case "chatter": // a library that prints to standard output
			fmt.Println(`{"answer": 99}`)
			return asked, nil
		case "hang":
			stage("pause")
			_ = syscall.Pause()
		case "crash":
			stage("crash")
			fmt.Fprintln(os.Stderr, "last words\nand a long stack")
			os.Exit(127)
		case "flood":
			return strings.Repeat("x", maxAnswer+1), nil
		}
		return what, nil
	}
}

func startTest(t *testing.T) *Child {
	t.Helper()
	c, err := StartChild("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestChildAnswers(t *testing.T) {
	c := startTest(t)
	var n int
	for want, q := range []string{"count", "chatter", "count"} {
		if err := c.Call(within(t, 10*time.Second), q, &n); err != nil || n != want+1 {
			t.Fatalf("%s: %d, %v", q, n, err)
		}
	}
	if err := c.Call(within(t, 10*time.Second), "fail", &n); err == nil || err.Error() != "as asked" {
		t.Errorf("%v", err)
	}
	if err := c.Call(within(t, 10*time.Second), "count", &n); err != nil || n != 5 {
		t.Errorf("an error must not end the child: %d, %v", n, err)
	}
}

func TestChildHangs(t *testing.T) {
	c := startTest(t)
	var n int
	if err := c.Call(within(t, 10*time.Second), "count", &n); err != nil {
		t.Fatal(err)
	}
	err := c.Call(within(t, 200*time.Millisecond), "hang", &n)
	stuck, ok := errors.AsType[*StuckError](err)
	if !ok {
		t.Fatalf("%v", err)
	}
	if stuck.Child.Stage != "pause" || stuck.Child.PID == 0 || stuck.Child.State != "S" || !strings.Contains(stuck.Child.Wchan, "pause") {
		t.Errorf("%+v", stuck.Child)
	}
	if err := c.Call(within(t, time.Second), "count", &n); err == nil {
		t.Error("a child that was left behind answered")
	}
	c.Close()
	for range 500 {
		if syscall.Kill(stuck.Child.PID, 0) != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the child lives on")
}

func TestChildCrashes(t *testing.T) {
	c := startTest(t)
	err := c.Call(within(t, 10*time.Second), "crash", new(int))
	crash, ok := errors.AsType[*CrashError](err)
	if !ok || crash.Status != "exit status 127" || crash.Stage != "crash" || crash.Stderr != "last words" {
		t.Errorf("%v", err)
	}
}

// A child gone wild must not fill the parent's memory.
func TestChildFloods(t *testing.T) {
	c := startTest(t)
	var s string
	err := c.Call(within(t, 20*time.Second), "flood", &s)
	if crash, ok := errors.AsType[*CrashError](err); !ok || crash.Status != "signal: killed" {
		t.Errorf("%d bytes came through: %v", len(s), err)
	}
}

func TestChildUnknown(t *testing.T) {
	c, err := StartChild("nobody")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Call(within(t, 10*time.Second), "count", new(int)); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("%v", err)
	}
}

func TestChildrenStartNoChildren(t *testing.T) {
	t.Setenv(childMark, "1")
	if _, err := StartChild("test"); err == nil {
		t.Error("a child started a child")
	}
}

func TestRun(t *testing.T) {
	ctx := context.Background()
	v, run := Run(ctx, evidence.ProbeLog, time.Second, func(context.Context) Result[int] {
		return Result[int]{7, evidence.ProbeRun{Status: evidence.OK}}
	})
	if v != 7 || run.Status != evidence.OK || run.Name != evidence.ProbeLog {
		t.Errorf("%d %+v", v, run)
	}
	forever := make(chan struct{})
	_, run = Run(ctx, evidence.ProbeGPU, 20*time.Millisecond, func(context.Context) Result[int] {
		<-forever
		return Result[int]{}
	})
	if run.Status != evidence.Timeout || !strings.Contains(run.Detail, "20ms") {
		t.Errorf("%+v", run)
	}
	_, run = Run(ctx, evidence.ProbeGPU, time.Second, func(context.Context) Result[int] { panic("boom") })
	if run.Status != evidence.Failed || !strings.Contains(run.Detail, "boom") {
		t.Errorf("%+v", run)
	}
}

func TestClassify(t *testing.T) {
	for _, test := range []struct {
		err  error
		want evidence.Status
	}{
		{nil, evidence.OK},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, evidence.Denied},
		{syscall.EPERM, evidence.Denied},
		{syscall.EOPNOTSUPP, evidence.Unsupported},
		{syscall.ESRCH, evidence.Failed},
		{context.DeadlineExceeded, evidence.Timeout},
	} {
		if got, _ := Classify(test.err); got != test.want {
			t.Errorf("%v: %s, want %s", test.err, got, test.want)
		}
	}
}
