package process

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// answer is what came of one process in each: Done is false when it did not
// come in time, and Value is then empty.
type answer[T any] struct {
	Value T
	Done  bool
	// Why says why not.
	Why string
}

// maxAtOnce is how many processes are looked at at the same time.
const maxAtOnce = 64

// each runs look for the numbers 0 to n-1, each in a goroutine of its own, and
// waits for each at most limit: reading files that touch a process's memory
// can wait for its mmap_lock or its execve, and one stuck process must not
// cost the others. A look that is late is left behind and its result dropped,
// so it may not write to anything shared.
func each[T any](ctx context.Context, n int, limit time.Duration, look func(i int) T) []answer[T] {
	answers := make([]answer[T], n)
	// Many at a time, so that ranks that are stuck all alike take one limit and
	// not one each.
	slots := make(chan struct{}, maxAtOnce)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			answers[i] = within(ctx, limit, func() T { return look(i) })
		})
	}
	all.Wait()
	return answers
}

// within runs one look with a limit.
func within[T any](ctx context.Context, limit time.Duration, look func() T) answer[T] {
	if ctx.Err() != nil {
		return answer[T]{Why: "interrupted"}
	}
	done := make(chan answer[T], 1)
	go func() {
		var a answer[T]
		defer func() {
			if p := recover(); p != nil {
				a = answer[T]{Why: fmt.Sprintf("whyhang failed here: %v", p)}
			}
			done <- a
		}()
		a = answer[T]{Value: look(), Done: true}
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case a := <-done:
		return a
	case <-late.C:
		return answer[T]{Why: fmt.Sprintf("no answer within %s", limit)}
	case <-ctx.Done():
		return answer[T]{Why: "interrupted"}
	}
}
