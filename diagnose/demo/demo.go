package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/whyhang/whyhang/rules/rule"
)

// argument is the hidden first argument that makes whyhang be a demo process.
const argument = "__demo"

// dirVariable names the directory of a demo's files, which both sides remove:
// either may be killed.
const (
	dirVariable = "WHYHANG_DEMO_DIR"
	dirPrefix   = "whyhang-demo-"
)

// The process says on a descriptor of its own that it is in position, as its
// standard output is its log.
const (
	positionFD = 3
	inPosition = "in position"
)

// Demo is one built-in process.
type Demo struct {
	Name  string
	Title string
	// Verdict and Cause are what the diagnosis must come to.
	Verdict rule.Verdict
	Cause   rule.Cause
	// run gets into position, calls ready, and stays there.
	run func(ready func()) error
}

// All are the demos, in the order in which they are shown.
var All = []Demo{
	{"deadlock", "two threads hold one lock each and want the other's; 129 more wait for work", rule.Deadlocked, rule.LockCycle, deadlock},
	{"loading", "a process touches a 2 GiB weight file at 50 MiB/s and logs nothing", rule.Loading, rule.WeightsRead, loading},
	{"ready", "a small chat server that answers", rule.Ready, rule.Idle, serve},
}

// ByName is the demo with that name, nil if there is none.
func ByName(name string) *Demo {
	for i := range All {
		if All[i].Name == name {
			return &All[i]
		}
	}
	return nil
}

// ChildMain makes the process the demo process it was started as by Start, and
// does not return; otherwise it does nothing. It belongs first into main.
func ChildMain() {
	if len(os.Args) != 3 || os.Args[1] != argument {
		return
	}
	d := ByName(os.Args[2])
	if d == nil {
		os.Exit(2)
	}
	go func() {
		// The parent holds the other end: when it goes, however it goes, so do
		// we, deadlocked threads and all.
		_, _ = io.Copy(io.Discard, os.Stdin)
		if dir := os.Getenv(dirVariable); strings.HasPrefix(filepath.Base(dir), dirPrefix) {
			os.RemoveAll(dir)
		}
		os.Exit(0)
	}()
	position := os.NewFile(positionFD, "position")
	if err := d.run(func() { fmt.Fprintln(position, inPosition) }); err != nil {
		fmt.Fprintln(position, err)
		os.Exit(1)
	}
	select {}
}

// Process is a demo process that runs.
type Process struct {
	PID int
	cmd *exec.Cmd
	in  io.Closer
	dir string
}

// Start starts a demo process, its output in a log file like a server's, and
// waits until it is in position.
func (d *Demo) Start() (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return nil, err
	}
	p := &Process{dir: dir}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self, argument, d.Name)
	cmd.Env = append(os.Environ(), dirVariable+"="+dir)
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = log, log
	p.cmd = cmd
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.ExtraFiles = []*os.File{childOut}
	if p.in, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	childOut.Close()
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	p.PID = cmd.Process.Pid
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- strings.TrimSpace(line)
	}()
	select {
	case line := <-said:
		if line == inPosition {
			return p, nil
		}
		p.Stop()
		return nil, errors.New(line)
	case <-time.After(20 * time.Second):
		p.Stop()
		return nil, errors.New("the demo process did not get into position")
	}
}

// Stop ends the process and removes its files.
func (p *Process) Stop() {
	p.in.Close()
	timer := time.AfterFunc(2*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
	os.RemoveAll(p.dir)
}
