package scenario

import (
	"os/exec"
	"runtime"
	"sync"
)

// starts are the commands that wait to be started. A process with Pdeathsig
// dies with the thread that started it (prctl(2), PR_SET_PDEATHSIG), and
// threads of Go end, when a goroutine gives one up: so one thread that never
// ends starts them all.
var starts = sync.OnceValue(func() chan func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range c {
			start()
		}
	}()
	return c
})

func startSteady(cmd *exec.Cmd) error {
	failed := make(chan error)
	starts() <- func() { failed <- cmd.Start() }
	return <-failed
}
