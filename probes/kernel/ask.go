package kernel

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/whyhang/whyhang/probes"
)

// asker puts questions to the child, one at a time. A child that does not
// answer is left behind and another started, a few times.
type asker struct {
	mu     sync.Mutex
	child  *probes.Child
	left   int
	closed bool
}

// maxLeft bounds how many children may be left behind in one run.
const maxLeft = 3

func (k *asker) ask(ctx context.Context, limit time.Duration, q question) (answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var a answer
	switch {
	case k.closed:
		return a, os.ErrClosed
	case k.left >= maxLeft:
		return a, errors.New("too many file systems do not answer")
	case k.child == nil:
		child, err := probes.StartChild(ChildName)
		if err != nil {
			return a, err
		}
		k.child = child
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := k.child.Call(ctx, q, &a)
	var stuck *probes.StuckError
	var crash *probes.CrashError
	switch {
	case errors.As(err, &stuck):
		k.left++
		k.child = nil
	case errors.As(err, &crash):
		k.child.Close()
		k.child = nil
	case err == nil && a.Errno != 0:
		err = syscall.Errno(a.Errno)
	}
	return a, err
}

func (k *asker) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.child != nil {
		k.child.Close()
		k.child = nil
	}
}
