package evidence

import "time"

// Frame is one look at everything that can move, taken in one pass. Two
// frames make movement.
type Frame struct {
	At time.Time `json:"at"`
	// SinceMS is the time since the first frame by the monotonic clock; rates
	// come from it, as the wall clock may step.
	SinceMS float64 `json:"since_ms"`
	TookMS  float64 `json:"took_ms"`
	// During is "check" for a look taken while whyhang itself had a request in
	// flight: what moves then may be whyhang's own doing.
	During    string         `json:"during,omitempty"`
	Processes []ProcessFrame `json:"processes,omitempty"`
	GPUs      []GPUFrame     `json:"gpus,omitempty"`
	Sockets   *SocketFrame   `json:"sockets,omitempty"`
	Logs      []LogFrame     `json:"logs,omitempty"`
	Caches    []CacheFrame   `json:"caches,omitempty"`
	Kernel    *KernelFrame   `json:"kernel,omitempty"`
	// Storage are the threads that wait for a file system, where StorageLooked:
	// in looks at threads.
	Storage       []StorageWait `json:"storage,omitempty"`
	StorageLooked bool          `json:"storage_looked,omitempty"`
	// PageCache is nil in frames before which nobody asked, and where it is not
	// known (Weights.PageCacheUnread).
	PageCache *PageCacheFrame `json:"page_cache,omitempty"`
}

// ProcessFrame is what moves of one process. Counters only grow; a nil one
// could not be read (Process.Unread says why).
type ProcessFrame struct {
	PID int `json:"pid"`
	// State is the letter of /proc/PID/stat; "" when the process has vanished.
	State       string `json:"state"`
	ThreadCount int    `json:"thread_count"`
	// WaitStatus is the wait status of a zombie, where it may be read.
	WaitStatus *int `json:"wait_status,omitempty"`
	// CPU time of the whole thread group, in milliseconds (stat fields 14, 15;
	// 16, 17 for children that were waited for). Resolution 10 ms.
	UserMS        uint64 `json:"user_ms"`
	SystemMS      uint64 `json:"system_ms"`
	ChildUserMS   uint64 `json:"child_user_ms"`
	ChildSystemMS uint64 `json:"child_system_ms"`
	MinorFaults   uint64 `json:"minor_faults"`
	MajorFaults   uint64 `json:"major_faults"`
	// Memory mapped in now, by kind (status RssAnon, RssFile, RssShmem).
	RSSAnonBytes  *uint64 `json:"rss_anon_bytes,omitempty"`
	RSSFileBytes  *uint64 `json:"rss_file_bytes,omitempty"`
	RSSShmemBytes *uint64 `json:"rss_shmem_bytes,omitempty"`
	SwapBytes     *uint64 `json:"swap_bytes,omitempty"`
	// Bytes through read()/write() calls (rchar, wchar of /proc/PID/io) and
	// bytes from and to storage (read_bytes, write_bytes).
	ReadCharBytes  *uint64 `json:"read_char_bytes,omitempty"`
	WriteCharBytes *uint64 `json:"write_char_bytes,omitempty"`
	ReadBytes      *uint64 `json:"read_bytes,omitempty"`
	WriteBytes     *uint64 `json:"write_bytes,omitempty"`
	// WriteCalls counts write calls, also those that fail (syscw): calls without
	// bytes are writes in vain.
	WriteCalls *uint64 `json:"write_calls,omitempty"`
	// Files is the progress of weight files, by path.
	Files []FileFrame `json:"files,omitempty"`
	// Threads is every thread, by TID; empty in a frame that looked at counters
	// only.
	Threads []ThreadFrame `json:"threads,omitempty"`
}

// FileFrame is how far one weight file has come.
type FileFrame struct {
	Path string `json:"path"`
	// FD and PosBytes as in OpenFile.
	FD       int     `json:"fd"`
	PosBytes *uint64 `json:"pos_bytes,omitempty"`
	// ResidentBytes as in OpenFile; read only where that is cheap.
	ResidentBytes *uint64 `json:"resident_bytes,omitempty"`
}

// ThreadFrame is one thread in one look.
type ThreadFrame struct {
	TID   int    `json:"tid"`
	Name  string `json:"name"`
	State string `json:"state"`
	// Syscall is the line of /proc/PID/task/TID/syscall: "running", "-1 SP
	// PC", or number, six arguments, SP, PC. Empty: not readable.
	Syscall string `json:"syscall,omitempty"`
	// Wchan is the kernel function the thread sleeps in; "" when none or not
	// readable.
	Wchan string `json:"wchan,omitempty"`
	// RunNS, DelayNS and Slices are /proc/PID/task/TID/schedstat: time on a
	// CPU, time waiting for one, number of times it ran. Equal RunNS and
	// Slices in two looks prove that the thread did not run in between. Nil
	// where the kernel has no CONFIG_SCHED_INFO.
	RunNS   *uint64 `json:"run_ns,omitempty"`
	DelayNS *uint64 `json:"delay_ns,omitempty"`
	Slices  *uint64 `json:"slices,omitempty"`
	// UserMS and SystemMS are the thread's own CPU time, resolution 10 ms.
	UserMS   uint64 `json:"user_ms"`
	SystemMS uint64 `json:"system_ms"`
}
