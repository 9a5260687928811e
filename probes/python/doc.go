// Package python reads a CPython interpreter out of the memory of a process
// that goes on running: its threads and their Python frames, who holds the
// GIL, which lock object a thread sleeps on, who owns an RLock and who is
// inside a `with lock:` block.
//
// It knows the versions 3.10 to 3.15. The layouts of 3.10 to 3.12 were printed
// from their headers by testdata/offsets.c; later versions describe themselves
// (_Py_DebugOffsets). Any other version is left unread, with the reason.
//
// It may not read files or processes: it is given a Memory and the addresses
// of a few symbols. Nothing in that memory is believed: every read, every
// list and every text is bounded, and a frame counts only if its code object
// says that it is one. What is read of a thread that ran meanwhile may be
// mixed of two moments; it is exact for a thread that slept.
package python
