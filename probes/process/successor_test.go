package process

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// A child that a server left behind has its command line and does not take its
// place; a process that was started at the same moment and became one does.
func TestSuccessor(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	const forks = "import os, sys, time\nif os.fork(): time.sleep(1); os._exit(0)\ntime.sleep(float(sys.argv[1]))"
	r, err := NewReader("")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := context.Background()
	server := exec.Command("python3", "-c", forks, "5.5")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(600 * time.Millisecond)
	tree, _ := r.Tree(ctx, server.Process.Pid, TreeOptions{})
	if len(tree) != 2 {
		t.Fatal(tree)
	}
	_ = server.Wait()
	left := tree[1].PID
	if got := r.Successor(ctx, &tree[0], nil); got != left {
		t.Errorf("%d, want the child %d: the case shows nothing", got, left)
	}
	parts := []int{tree[0].PID, left}
	if got := r.Successor(ctx, &tree[0], parts); got != 0 {
		t.Errorf("%d took its place, the child it left is %d", got, left)
	}
	again := exec.Command("python3", "-c", forks, "5.5")
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(600 * time.Millisecond)
	if got := r.Successor(ctx, &tree[0], parts); got != again.Process.Pid {
		t.Errorf("%d, want %d", got, again.Process.Pid)
	}
	_ = again.Wait()
}
