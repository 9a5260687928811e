package python

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Up to 3.12 a lock that the end of a thread releases is a join of it; whatever
// does not fit together is a Lock.
func TestJoinByLock(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the image of 3.10 has a struct pthread of x86-64")
	}
	const otherTID, otherStack = 4343, atStack + 0x1000
	join := func(id int) evidence.PythonLock {
		return evidence.PythonLock{Kind: evidence.PythonJoin, Object: hexAddr(atLock), OwnerNSTID: id}
	}
	plain := evidence.PythonLock{Kind: evidence.PythonMutex, Object: hexAddr(atLock)}
	for name, c := range map[string]struct {
		change func(m *image)
		want   evidence.PythonLock
	}{
		"of another":      {func(*image) {}, join(otherTID)},
		"lock not marked": {func(m *image) { m.word(atLock+m.l.sizeofHead()+8, 0) }, plain},
		"lock marked otherwise": {func(m *image) {
			m.word(atLock+m.l.sizeofHead()+8, atReference+0x40)
		}, plain},
		"odd reference": {func(m *image) {
			m.word(atLock+m.l.sizeofHead()+8, atReference+1)
			m.word(atOther+m.l.threadSentinel, atReference+1)
			m.word(atReference+1+m.l.weakrefObject, atLock)
		}, plain},
		"reference to another": {func(m *image) { m.word(atReference+m.l.weakrefObject, atSemaphore) }, plain},
		"reference not mapped": {func(m *image) {
			m.word(atLock+m.l.sizeofHead()+8, 1<<40)
			m.word(atOther+m.l.threadSentinel, 1<<40)
		}, plain},
		"no thread's":       {func(m *image) { m.word(atOther+m.l.threadSentinel, 0) }, plain},
		"thread not in use": {func(m *image) { m.forget(otherStack) }, plain},
		"of two":            {func(m *image) { m.word(atThread+m.l.threadSentinel, atReference) }, join(0)},
		"freed":             {func(m *image) { m.word(atOther+m.l.threadInterpreter, 0) }, plain},
	} {
		for minor := 10; minor <= 12; minor++ {
			m := newImage(t, minor)
			m.addThread(otherStack, otherTID)
			m.word(atOther+m.l.threadSentinel, atReference)
			m.word(atLock+m.l.sizeofHead()+8, atReference)
			m.word(atSleeper+0x100, atLock)
			if m.l.codeExceptions != 0 {
				m.word(atOuter+m.l.frameLocals+8*2, 0) // in no `with` block
			}
			c.change(m)
			p := Read(m, m.symbols(), versionOf(minor), DefaultLimits)
			k := p.Lock(Wait{NSTID: imageTID, Addr: atSemaphore, SP: atSleeper})
			if diff := cmp.Diff(&c.want, k); diff != "" {
				t.Errorf("3.%d, %s (-want +got):\n%s", minor, name, diff)
			}
		}
	}
}

// addThread adds a second thread, which runs nothing of Python.
func (m *image) addThread(stack uint64, tid int32) {
	m.word(atThread+m.l.threadNext, atOther)
	m.word(atOther+m.l.threadInterpreter, atInterpreter)
	m.word(atOther+m.l.threadID, stack)
	m.word(stack, stack)
	m.word(stack+16, stack)
	m.int(stack+tidInTCBAMD64, tid)
	if m.l.threadNativeID != 0 {
		m.word(atOther+m.l.threadNativeID, uint64(tid))
	}
}

// forget makes the second thread one that has no ID.
func (m *image) forget(stack uint64) {
	m.int(stack+tidInTCBAMD64, 0)
	if m.l.threadNativeID != 0 {
		m.word(atOther+m.l.threadNativeID, 0)
	}
}
