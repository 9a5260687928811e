package evidence

import "time"

// WaitLook is one reading of what threads wait on. The order is what makes it
// a proof: look A at every waiting thread, then the words, then look B at the
// same threads. A thread whose A and B are equal was asleep in that one call
// the whole time, so the words were true at one instant for all such threads
// together.
type WaitLook struct {
	At time.Time `json:"at"`
	// Processes are those whose threads were looked at.
	Processes []WaitProcess `json:"processes,omitempty"`
	Waits     []Wait        `json:"waits"`
	// Python is what was read of the interpreters in these processes.
	Python []PythonProcess `json:"python,omitempty"`
}

// WaitProcess says how complete the waits of a process are: they hold every
// thread only if there are as many as the process has threads, before and
// after the words were read.
type WaitProcess struct {
	PID int `json:"pid"`
	// Threads and ThreadsAfter are the number of threads at look A and B.
	Threads      int `json:"threads"`
	ThreadsAfter int `json:"threads_after"`
	// Caught are the signals that the process has handlers for (SigCgt of
	// proc_pid_status(5)). A handler may do anything, and most calls that wait
	// end by a signal.
	Caught []int `json:"caught,omitempty"`
}

// Wait is one thread asleep in a call that another thread must end. One of
// Futex and Blocked is set.
type Wait struct {
	PID int `json:"pid"`
	TID int `json:"tid"`
	// A and B are the looks before and after the words were read.
	A ThreadLook `json:"a"`
	B ThreadLook `json:"b"`
	// Futex is what the thread waits on if its call is a futex call.
	Futex *Futex `json:"futex,omitempty"`
	// Blocked is what it waits on in another call.
	Blocked *Blocked `json:"blocked,omitempty"`
	// AsleepMS is for how long the thread has not run, in milliseconds, as the
	// scheduler counts; some seconds less or more on virtual machines. Nil if not
	// known.
	AsleepMS *float64 `json:"asleep_ms,omitempty"`
	// Site is the function that asked for the wait.
	Site *Site `json:"site,omitempty"`
}

// ThreadLook is the part of a look that tells whether a thread ran.
type ThreadLook struct {
	State   string  `json:"state"`
	Syscall string  `json:"syscall"`
	RunNS   *uint64 `json:"run_ns,omitempty"`
	Slices  *uint64 `json:"slices,omitempty"`
}

// Site is a place in native code: the innermost return address on a thread's
// stack that lies outside the C library. The stack is searched, not unwound, so
// an address left behind by an earlier call may be taken for it.
type Site struct {
	// Module is the base name of the file the code comes from; OffsetBytes the
	// address's place in that file, for addr2line.
	Module      string `json:"module"`
	OffsetBytes uint64 `json:"offset_bytes"`
	// Function is its name, readable (C++ and Rust names demangled); "" if the
	// file has no name for it.
	Function string `json:"function,omitempty"`
}
