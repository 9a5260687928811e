package evidence

// BlockKind is what a thread waits for outside futexes.
type BlockKind string

// The waits whose wakers can be named.
const (
	BlockPipeRead    BlockKind = "pipe-read"    // an empty pipe or FIFO
	BlockPipeWrite   BlockKind = "pipe-write"   // a full pipe or FIFO
	BlockSocketRead  BlockKind = "socket-read"  // an empty unix socket or TCP connection
	BlockSocketWrite BlockKind = "socket-write" // a unix socket whose peer does not read
	BlockChild       BlockKind = "child"        // wait4, waitid: a child to end
	BlockFlock       BlockKind = "flock"
	BlockPosixLock   BlockKind = "posix-lock" // fcntl F_SETLKW
	BlockOFDLock     BlockKind = "ofd-lock"   // fcntl F_OFD_SETLKW
	// BlockOther is a wait at a descriptor whose other end cannot be named: a
	// terminal, a TCP connection that leaves the network namespace, a device.
	// Unseen is always set.
	BlockOther BlockKind = "other"
)

// Blocked is a wait without a time-out in a call other than a futex call, and
// who can end it. Every thread of every waker could.
type Blocked struct {
	Kind BlockKind `json:"kind"`
	// FD is the descriptor; -1 for a wait for a child.
	FD int `json:"fd"`
	// Object is what is waited on: "pipe:[123]", "socket:[456]", the path of a
	// FIFO or of a locked file; "" for a child.
	Object string `json:"object,omitempty"`
	// Connection is "LOCAL to REMOTE" of a TCP connection of which both ends are
	// in one network namespace.
	Connection string `json:"connection,omitempty"`
	// QueuedBytes is what lies in the pipe or socket; nil if not known.
	QueuedBytes *uint64 `json:"queued_bytes,omitempty"`
	// Wakers are the processes that hold the other end or the lock, or the
	// children that are waited for. One process may stand here several times.
	// Empty, with Unseen empty: nobody can.
	Wakers []Waker `json:"wakers,omitempty"`
	// Unseen says why there may be wakers that are not in the list.
	Unseen string `json:"unseen,omitempty"`
	// Likely: Unseen names nothing but what is rare. Wakers then holds at least
	// one process, and all that whyhang may look at. Such a wait proves nothing,
	// but it may support a "likely".
	Likely bool `json:"likely,omitempty"`
}

// Waker is a process that can end a wait.
type Waker struct {
	PID  int    `json:"pid"`
	Name string `json:"name,omitempty"`
	// FD is its descriptor of the other end; absent for locks and children.
	FD *int `json:"fd,omitempty"`
}
