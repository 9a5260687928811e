package process

import (
	"context"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// A look that does not want every waker names those of a wait that may be a
// deadlock, and leaves out those of one that is plainly none.
func TestLookOnlyAmongSleepers(t *testing.T) {
	r := reader(t)
	for mode, stuck := range map[string]bool{"cross": true, "self": true, "threads": false, "cross-slow": false} {
		s := scenario.Start(t, "pipe_ends", mode)
		procs := treeOf(t, r, s.PID)
		_, _, look, _ := r.Pass(context.Background(), procs, LookOptions{})
		named, leftOut := 0, 0
		for _, w := range look.Waits {
			b := w.Blocked
			if b == nil || b.Kind != evidence.BlockPipeRead || !strings.HasPrefix(b.Object, "pipe:") {
				continue
			}
			switch {
			case len(b.Wakers) > 0:
				named++
			case strings.Contains(b.Unseen, "was not looked for") && !b.Likely:
				leftOut++
			default:
				t.Errorf("%s: %+v", mode, b)
			}
		}
		if stuck && named == 0 || !stuck && (named > 0 || leftOut == 0) {
			t.Errorf("%s: %d waits with wakers, %d without", mode, named, leftOut)
		}
		s.End()
	}
}
