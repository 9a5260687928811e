package evidence

// Futex is a wait on a futex word and what stands around the word.
type Futex struct {
	// Call is the system call: "futex", "futex_wait" (Op holds its flags,
	// Command is 9) or "futex_waitv" (Addr is its array of words; Op, Command,
	// Private and Val say nothing).
	Call string `json:"call"`
	// Addr is the word's address in the target, as "0x7f…".
	Addr string `json:"addr"`
	// Op is the raw operation (futex(2)); Command the operation without its
	// flags: 0 WAIT, 9 WAIT_BITSET, 6 LOCK_PI, 13 LOCK_PI2.
	Op      uint32 `json:"op"`
	Command uint32 `json:"command"`
	Private bool   `json:"private"`
	// Local: the word lies in memory that only this process has mapped, so that
	// nobody outside it can wake the wait, whatever Private says. False: shared,
	// or not known.
	Local bool `json:"local,omitempty"`
	// Val is the value the word was expected to hold.
	Val uint32 `json:"val"`
	// Timed: the wait ends by itself.
	Timed bool `json:"timed"`
	// Word is the word as read; nil when the memory was not read.
	Word *uint32 `json:"word,omitempty"`
	// Mutex is the word read as the first word of a glibc pthread_mutex_t;
	// only present if the layout around it fits one.
	Mutex *MutexWords `json:"mutex,omitempty"`
	// Owner is who holds the lock, or the thread that is joined; nil where the
	// memory names nobody.
	Owner *LockOwner `json:"owner,omitempty"`
	// Python is the CPython object that the thread waits for, if it is one.
	Python *PythonLock `json:"python,omitempty"`
	// Caller is the libc function that a return address near the top of the
	// thread's stack lies in, such as "pthread_mutex_lock". Empty: not found.
	Caller string `json:"caller,omitempty"`
	// Unread says why the memory was not read.
	Unread string `json:"unread,omitempty"`
}

// LockKind is what kind of lock names an owner.
type LockKind string

// The kinds of locks whose memory names an owner.
const (
	KindMutex       LockKind = "mutex"
	KindRobustMutex LockKind = "robust mutex"
	KindPIMutex     LockKind = "priority-inheritance mutex"
	KindRWLock      LockKind = "rwlock"
	KindMuslMutex   LockKind = "musl mutex"
	KindThread      LockKind = "thread" // pthread_join
)

// OwnerProof says what the reading of an owner rests on.
type OwnerProof string

// From the strongest to the weakest.
const (
	// ProofKernel: the kernel itself keeps the word (priority inheritance, the
	// TID of a thread that is joined).
	ProofKernel OwnerProof = "kernel"
	// ProofCode: a return address on the stack lies in the function that takes
	// such locks.
	ProofCode OwnerProof = "code"
	// ProofLayout: the memory looks like such a lock, and nothing more.
	ProofLayout OwnerProof = "layout"
)

// LockOwner is the one thread that can end a wait.
type LockOwner struct {
	Kind LockKind `json:"kind"`
	// Addr is the address of the lock (not of the word in it); "" for a join.
	Addr string `json:"addr,omitempty"`
	// NSTID is the owner as it stands in memory: a TID of the target's PID
	// namespace; 0 while the lock changes hands. TID is the same thread in
	// whyhang's /proc and PID its process; 0 when no such thread was found.
	NSTID int `json:"nstid"`
	TID   int `json:"tid,omitempty"`
	PID   int `json:"pid,omitempty"`
	// Proof is what this rests on.
	Proof OwnerProof `json:"proof"`
	// Ended: no thread of that ID lives anywhere the owner could be; it ended
	// with the lock held. Not set when it is only not known.
	Ended bool `json:"ended,omitempty"`
	// Forked: the lock is private to the waiting process, yet the owner is a
	// thread of another (PID): the lock was held when the process was forked,
	// and nobody in the child can release the copy.
	Forked bool `json:"forked,omitempty"`
}

// MutexWords are the words of a glibc pthread_mutex_t (nptl
// struct __pthread_mutex_s, LP64): lock +0, count +4, owner +8, nusers +12,
// kind +16, list +24.
type MutexWords struct {
	Lock uint32 `json:"lock"`
	// Count is the recursion count; 0 for normal mutexes.
	Count uint32 `json:"count"`
	// OwnerNSTID is the owner as it stands in memory: a TID of the target's
	// PID namespace.
	OwnerNSTID int `json:"owner_nstid"`
	// NUsers counts holders and some waiters; Kind holds type and flags (0x10
	// robust, 0x20 priority inheritance, 0x80 process shared).
	NUsers uint32 `json:"nusers"`
	Kind   uint32 `json:"kind"`
	// ListZero: the two list pointers are zero, as in every mutex that is not
	// robust.
	ListZero bool `json:"list_zero"`
}
