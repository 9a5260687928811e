package process

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One that hangs and one that fails do not cost the others.
func TestEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		start := time.Now()
		got := each(context.Background(), 20, time.Second, func(i int) int {
			switch i {
			case 3:
				<-hang
			case 4:
				panic("bad text")
			}
			return i * i
		})
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %s", took)
		}
		for i, a := range got {
			switch {
			case i == 3:
				if a.Done || a.Why != "no answer within 1s" {
					t.Errorf("hanging: %+v", a)
				}
			case i == 4:
				if a.Done || !strings.Contains(a.Why, "bad text") {
					t.Errorf("failing: %+v", a)
				}
			case !a.Done || a.Value != i*i:
				t.Errorf("%d: %+v", i, a)
			}
		}
	})
}

func TestEachInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		hang := make(chan struct{})
		defer close(hang)
		start := time.Now()
		for _, a := range each(ctx, 20, time.Hour, func(int) int { <-hang; return 1 }) {
			if a.Done || a.Why != "interrupted" {
				t.Errorf("%+v", a)
			}
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// A look that hangs is not joined by another.
func TestEnter(t *testing.T) {
	r := &Reader{inside: map[string]bool{}}
	leave, ok := r.enter("files", 1)
	if !ok {
		t.Fatal("the first is refused")
	}
	if _, ok := r.enter("files", 1); ok {
		t.Error("a second got in")
	}
	for _, other := range []struct {
		what string
		pid  int
	}{{"files", 2}, {"memory", 1}} {
		if _, ok := r.enter(other.what, other.pid); !ok {
			t.Errorf("%+v is refused", other)
		}
	}
	leave()
	if _, ok := r.enter("files", 1); !ok {
		t.Error("refused after the first has left")
	}
}
