package probes

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Asker puts questions to a child, one at a time, for those that may hang on a
// file system. The child is started with the first question. One that does not
// answer is left behind and another one started, until too many were.
type Asker struct {
	// Name is the child's name, as for StartChild; MaxLeft how many may be left
	// behind.
	Name    string
	MaxLeft int

	mu     sync.Mutex
	child  *Child
	left   []evidence.StuckChild
	closed bool
}

// Ask puts one question and waits at most limit for the answer. The error is a
// *StuckError past the limit and a *CrashError if the child ended.
func (a *Asker) Ask(ctx context.Context, limit time.Duration, question, answer any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return os.ErrClosed
	}
	if a.child == nil {
		if len(a.left) >= a.MaxLeft {
			return errors.New("too many file systems do not answer")
		}
		child, err := StartChild(a.Name)
		if err != nil {
			return err
		}
		a.child = child
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := a.child.Call(ctx, question, answer)
	if stuck, ok := errors.AsType[*StuckError](err); ok {
		a.left = append(a.left, stuck.Child)
		a.child = nil
	} else if _, ok := errors.AsType[*CrashError](err); ok {
		a.child.Close()
		a.child = nil
	}
	return err
}

// Close ends the child. Questions after it fail.
func (a *Asker) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.child != nil {
		a.child.Close()
		a.child = nil
	}
}

// Left are the children that were left behind, and what they hung on.
func (a *Asker) Left() []evidence.StuckChild {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]evidence.StuckChild(nil), a.left...)
}
