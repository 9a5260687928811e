package evidence

// PythonProcess is what was read of a CPython interpreter from outside, while
// it ran: consistent only for threads that slept through the reading.
type PythonProcess struct {
	PID int `json:"pid"`
	// Version is "3.12"; FreeThreaded: built without a GIL.
	Version      string `json:"version"`
	FreeThreaded bool   `json:"free_threaded,omitempty"`
	// GIL is nil where there is none or it was not found.
	GIL     *PythonGIL     `json:"gil,omitempty"`
	Threads []PythonThread `json:"threads,omitempty"`
	// Unread says what could not be read, and why.
	Unread string `json:"unread,omitempty"`
}

// PythonGIL is the lock that all threads of an interpreter share
// (CPython Python/ceval_gil.c, struct _gil_runtime_state).
type PythonGIL struct {
	// Cond is the address of the condition variable that waiters sleep on.
	Cond   string `json:"cond"`
	Locked bool   `json:"locked"`
	// SwitchNumber counts how often the GIL went to another thread.
	SwitchNumber uint64 `json:"switch_number"`
	// HolderNSTID is the thread that took it last, a TID of the target's PID
	// namespace; HolderTID the same in whyhang's /proc. It holds it only if
	// Locked.
	HolderNSTID int `json:"holder_nstid,omitempty"`
	HolderTID   int `json:"holder_tid,omitempty"`
}

// PythonThread is one thread that runs Python code. Its IDs are 0 if it is not
// known which thread that is: up to 3.12, in an interpreter that another thread
// has made.
type PythonThread struct {
	NSTID int `json:"nstid,omitempty"`
	TID   int `json:"tid"`
	// Frames are its Python frames, the innermost first. Truncated: there are
	// more.
	Frames    []PythonFrame `json:"frames,omitempty"`
	Truncated bool          `json:"truncated,omitempty"`
	// Inside are the addresses of the lock objects whose `with` blocks this
	// thread is in, the innermost first: Locks, RLocks, and those of Conditions.
	// A lock that it gave back in Condition.wait is not among them.
	Inside []string `json:"inside,omitempty"`
}

// PythonFrame is a function call in progress. File and Function are empty for
// one that is there but could not be read.
type PythonFrame struct {
	File     string `json:"file"`
	Function string `json:"function"`
	// Line is the line being executed; 0 if not known.
	Line int `json:"line,omitempty"`
}

// PythonLockKind is what a thread waits for in CPython's own terms.
type PythonLockKind string

// The kinds of locks of CPython.
const (
	PythonGILWait PythonLockKind = "GIL"
	PythonMutex   PythonLockKind = "Lock"  // threading.Lock: no owner in memory
	PythonRLock   PythonLockKind = "RLock" // threading.RLock: names its owner
	PythonJoin    PythonLockKind = "Thread.join"
)

// PythonLock is the object behind a futex word.
type PythonLock struct {
	Kind PythonLockKind `json:"kind"`
	// Object is the address of the Python object; for a join that of the lock
	// that the thread holds while it lives (up to 3.12) or of its ThreadHandle; ""
	// for the GIL.
	Object string `json:"object,omitempty"`
	// OwnerNSTID and OwnerTID are the thread that holds an RLock or the GIL, or
	// that is joined; 0 if not known.
	OwnerNSTID int `json:"owner_nstid,omitempty"`
	OwnerTID   int `json:"owner_tid,omitempty"`
	// OwnerGone: the RLock names an owner, and no thread of the process is it.
	// It ended with the lock held, or was a thread of the parent when the
	// process was forked.
	OwnerGone bool `json:"owner_gone,omitempty"`
	// Count is how often its owner has taken an RLock.
	Count uint64 `json:"count,omitempty"`
	// Inside are the threads that are in a `with` block of this Lock: one of
	// them very likely holds it.
	Inside []int `json:"inside,omitempty"`
}
