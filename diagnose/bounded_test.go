package diagnose

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// A number in any part of a snapshot that no probe can have measured is pulled back.
func TestBounded(t *testing.T) {
	huge, kept := 1e300, 12.5
	s := evidence.Snapshot{
		Frames:   []evidence.Frame{{SinceMS: -1e308}, {SinceMS: kept}},
		Counters: []evidence.CounterLook{{Running: &huge}, {Running: &kept}},
	}
	bounded(reflect.ValueOf(&s))
	if s.Frames[0].SinceMS != -largest || *s.Counters[0].Running != largest || s.Frames[1].SinceMS != kept || *s.Counters[1].Running != kept {
		t.Errorf("%+v", s)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}
