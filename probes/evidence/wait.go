package evidence

import "time"

// WaitLook is one reading of the words that threads wait on. The order is
// what makes it a proof: look A at every waiting thread, then the words, then
// look B at the same threads. A thread whose A and B are equal was asleep in
// that one call the whole time, so the words were true at one instant for all
// such threads together.
type WaitLook struct {
	At    time.Time `json:"at"`
	Waits []Wait    `json:"waits"`
}

// Wait is one thread asleep in a call that another thread must end.
type Wait struct {
	PID int `json:"pid"`
	TID int `json:"tid"`
	// A and B are the looks before and after the words were read.
	A ThreadLook `json:"a"`
	B ThreadLook `json:"b"`
	// Futex is what the thread waits on; nil if the call is no futex call.
	Futex *Futex `json:"futex,omitempty"`
}

// ThreadLook is the part of a look that tells whether a thread ran.
type ThreadLook struct {
	State   string  `json:"state"`
	Syscall string  `json:"syscall"`
	RunNS   *uint64 `json:"run_ns,omitempty"`
	Slices  *uint64 `json:"slices,omitempty"`
}

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
	// Val is the value the word was expected to hold.
	Val uint32 `json:"val"`
	// Timed: the wait ends by itself.
	Timed bool `json:"timed"`
	// Word is the word as read; nil when the memory was not read.
	Word *uint32 `json:"word,omitempty"`
	// Mutex is the word read as the first word of a glibc pthread_mutex_t;
	// only present if the layout around it fits one.
	Mutex *MutexWords `json:"mutex,omitempty"`
	// JoinTID is the thread that pthread_join waits for, as a TID of whyhang's
	// own /proc; JoinVerified: the word is the TID field of a struct pthread
	// whose self pointers point to itself.
	JoinTID      int  `json:"join_tid,omitempty"`
	JoinVerified bool `json:"join_verified,omitempty"`
	// Caller is the libc function that a return address near the top of the
	// thread's stack lies in, such as "pthread_mutex_lock". Empty: not found.
	Caller string `json:"caller,omitempty"`
	// Unread says why the memory was not read.
	Unread string `json:"unread,omitempty"`
}

// MutexWords are the words of a glibc pthread_mutex_t (nptl
// struct __pthread_mutex_s, LP64): lock +0, count +4, owner +8, nusers +12,
// kind +16, list +24.
type MutexWords struct {
	Lock uint32 `json:"lock"`
	// Count is the recursion count; 0 for normal mutexes.
	Count uint32 `json:"count"`
	// OwnerNSTID is the owner as it stands in memory: a TID of the target's
	// PID namespace. OwnerTID is the same thread in whyhang's /proc, 0 when no
	// such thread was found; OwnerPID its process.
	OwnerNSTID int `json:"owner_nstid"`
	OwnerTID   int `json:"owner_tid,omitempty"`
	OwnerPID   int `json:"owner_pid,omitempty"`
	// NUsers counts holders and some waiters; Kind holds type and flags (0x10
	// robust, 0x20 priority inheritance, 0x80 process shared).
	NUsers uint32 `json:"nusers"`
	Kind   uint32 `json:"kind"`
	// ListZero: the two list pointers are zero, as in every mutex that is not
	// robust.
	ListZero bool `json:"list_zero"`
}
