package serverlog

import "io"

// headroom is the room in front of what is read, for what is left of the chunk
// before it.
const headroom = 2 * maxPiece

// ahead reads one chunk while the one before it is looked at: copying it out of
// the page cache takes a good part of the time.
type ahead struct {
	r     io.ReaderAt
	chunk int
	buf   []byte // headroom, and the chunk that is read
	at    int64  // where it stands in the source
	n     int
	err   error
	busy  chan struct{} // is closed when it was read, nil if none was asked for
}

// start begins to read at an offset.
func (a *ahead) start(at int64) {
	busy := make(chan struct{})
	a.at, a.busy = at, busy
	go func() {
		a.n, a.err = a.r.ReadAt(a.buf[headroom:], at)
		close(busy)
	}()
}

// wait waits for a chunk that is being read.
func (a *ahead) wait() {
	if a.busy != nil {
		<-a.busy
		a.busy = nil
	}
}

// take is the chunk at an offset: n bytes that stand in buf behind rest. If the
// chunk is whole the next one is asked for, into free; until it is waited for,
// neither free nor the source may be used. Rest may be part of free.
func (a *ahead) take(at int64, rest, free []byte) (buf []byte, n int, err error) {
	asked := a.busy != nil
	a.wait()
	if !asked || a.at != at {
		a.start(at)
		a.wait()
	}
	buf, n, err = a.buf[headroom-len(rest):], a.n, a.err
	copy(buf, rest)
	a.buf = free
	if err == nil && n == a.chunk {
		a.start(at + int64(n))
	}
	return buf, n, err
}
