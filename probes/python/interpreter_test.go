package python

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

func versionOf(minor int) Version { return Version{Major: 3, Minor: minor} }

// The made-up memory reads as what it was made to be.
func TestReadImage(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the image of 3.10 has a struct pthread of x86-64")
	}
	for minor := 10; minor <= 15; minor++ {
		m := newImage(t, minor)
		p := Read(m, m.symbols(), versionOf(minor), DefaultLimits)
		if p.Process.Unread != "" || p.Process.Version != versionOf(minor).String() {
			t.Errorf("3.%d: %+v", minor, p.Process)
			continue
		}
		if g := p.Process.GIL; g == nil || !g.Locked || g.SwitchNumber != 7 || g.HolderNSTID != imageTID {
			t.Errorf("3.%d: GIL %+v", minor, g)
		}
		line := 8
		if minor == 10 {
			line = 13
		}
		f := evidence.PythonFrame{File: "/srv/app.py", Function: "serve", Line: line}
		want := evidence.PythonThread{NSTID: imageTID, Frames: []evidence.PythonFrame{f, f}}
		if minor > 10 {
			want.Inside = []string{hexAddr(atLock)}
		}
		if diff := cmp.Diff([]evidence.PythonThread{want}, p.Process.Threads); diff != "" {
			t.Errorf("3.%d threads (-want +got):\n%s", minor, diff)
		}
		if minor >= 14 {
			continue // those wait in the parking lot
		}
		m.word(atSleeper+0x100, atLock) // where its waiter has it
		k := p.Lock(Wait{NSTID: imageTID, Addr: atSemaphore, SP: atSleeper})
		if k == nil || k.Kind != evidence.PythonMutex || k.Object != hexAddr(atLock) {
			t.Errorf("3.%d: waits for %+v", minor, k)
		}
	}
}

// Lists that run in circles end, and so does a reading that finds too much.
func TestReadBounds(t *testing.T) {
	m := newImage(t, 11)
	m.word(atFrame+m.l.framePrevious, atFrame)
	m.word(atThread+m.l.threadNext, atThread)
	m.word(atInterpreter+m.l.interpreterNext, atInterpreter)
	p := Read(m, m.symbols(), versionOf(11), DefaultLimits)
	th := p.Process.Threads
	if len(th) == 0 || len(th) > maxInterpreters || len(th[0].Frames) != DefaultLimits.Frames || !th[0].Truncated {
		t.Errorf("%d threads: %+v", len(th), p.Process)
	}
	for _, few := range []Limits{
		{Reads: 10, Bytes: 1 << 20, Time: time.Second, Threads: 5, Frames: 5},
		{Reads: 1000, Bytes: 1000, Time: time.Second, Threads: 5, Frames: 5},
		{Reads: 1000, Bytes: 1 << 20, Threads: 5, Frames: 5},
	} {
		if p := Read(m, m.symbols(), versionOf(11), few); p.Process.Unread == "" {
			t.Errorf("with %+v all was read: %+v", few, p.Process)
		}
	}
}

// A version that is not known is left unread, and says so.
func TestReadUnknownVersion(t *testing.T) {
	m := newImage(t, 13)
	for name, c := range map[string]struct {
		change  func(m *image, at *Symbols)
		version Version
		want    string
	}{
		"later":     {func(m *image, _ *Symbols) { m.word(imageBase+8, 0x031407f0) }, Version{}, "3.20"},
		"named":     {func(m *image, _ *Symbols) { m.word(imageBase, 0) }, versionOf(9), "3.9"},
		"nameless":  {func(m *image, _ *Symbols) { m.word(imageBase, 0) }, Version{}, "no name"},
		"no code":   {func(_ *image, at *Symbols) { at.CodeType = 0 }, Version{}, "PyCode_Type"},
		"unmapped":  {func(_ *image, at *Symbols) { at.Runtime = 0x10 }, Version{}, "not mapped"},
		"not begun": {func(m *image, _ *Symbols) { m.word(atRuntime+1000, 0) }, Version{}, "no interpreter"},
		"absurd":    {func(m *image, _ *Symbols) { m.word(imageBase+debugHead+8*16, 1<<40) }, Version{}, "cannot be"},
	} {
		t.Run(name, func(t *testing.T) {
			other := *m
			other.bytes = append([]byte(nil), m.bytes...)
			at := other.symbols()
			c.change(&other, &at)
			p := Read(&other, at, c.version, DefaultLimits)
			if !strings.Contains(p.Process.Unread, c.want) || len(p.Process.Threads) != 0 {
				t.Errorf("%+v, want %q", p.Process, c.want)
			}
		})
	}
}

// Whatever stands in memory, a reading ends and is bounded and clean.
func FuzzRead(f *testing.F) {
	for minor := 10; minor <= 15; minor++ {
		f.Add(minor, []byte{}, uint64(atSemaphore))
		f.Add(minor, []byte{0x00, 0x18, 3, 0x28, 0x29, 5}, uint64(atStack+8))
	}
	// The thread's end releases the lock (3.12): 0x2918 is the lock's reference,
	// 0x12b0 the thread's.
	f.Add(12, []byte{0x23, 0x05, 0x5f, 0x56, 0x02, 0x5f}, uint64(atSemaphore))
	f.Fuzz(func(t *testing.T, minor int, changes []byte, wait uint64) {
		if minor < 10 || minor > 15 {
			return
		}
		m := newImage(t, minor)
		// Three bytes are a change: where, and what stands there then.
		for ; len(changes) >= 3; changes = changes[3:] {
			at := (uint64(changes[0]) | uint64(changes[1])<<8) % (imageSize / 8)
			value := uint64(changes[2])
			if value&1 != 0 {
				value = imageBase + value<<7 // some place in the image
			} else if value&2 != 0 {
				value <<= 33
			}
			m.word(imageBase+8*at, value)
		}
		limits := Limits{Reads: 5000, Bytes: 8 << 20, Time: time.Second, Threads: 20, Frames: 30}
		p := Read(m, m.symbols(), versionOf(minor), limits)
		if len(p.Process.Threads) > limits.Threads {
			t.Errorf("%d threads", len(p.Process.Threads))
		}
		for _, th := range p.Process.Threads {
			if len(th.Frames) > limits.Frames || th.NSTID <= 0 || th.NSTID > maxTID {
				t.Errorf("%d frames of thread %d", len(th.Frames), th.NSTID)
			}
			for _, f := range th.Frames {
				if !utf8.ValidString(f.File) || !utf8.ValidString(f.Function) || f.Line < 0 || f.Line > maxLine ||
					utf8.RuneCountInString(f.File) > maxFile || utf8.RuneCountInString(f.Function) > maxName {
					t.Errorf("%+v", f)
				}
			}
		}
		p.Lock(Wait{NSTID: imageTID, Addr: wait, SP: atStack})
		p.Lock(Wait{NSTID: imageTID, Addr: wait, SP: wait - 64, Timed: wait&1 != 0})
	})
}
