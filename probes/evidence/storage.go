package evidence

import "time"

// StorageWait is a thread, in one look, asleep in a place of the kernel where
// only a file system can wake it: in read, open or the like, or in a page fault
// on a mapped file.
type StorageWait struct {
	PID   int    `json:"pid"`
	TID   int    `json:"tid"`
	Name  string `json:"name"`
	State string `json:"state"`
	// Syscall and Wchan as in ThreadFrame, RunNS and Slices too: equal in two
	// looks, they prove that it is one and the same sleep.
	Syscall string  `json:"syscall,omitempty"`
	Wchan   string  `json:"wchan,omitempty"`
	RunNS   *uint64 `json:"run_ns,omitempty"`
	Slices  *uint64 `json:"slices,omitempty"`
	// Path is the file of the call's descriptor; "" for a page fault and for
	// calls that name a path, as neither shows which file it is.
	Path string `json:"path,omitempty"`
	// Mount is where that file lies; nil if not known.
	Mount *Mount `json:"mount,omitempty"`
	// Guessed: the file is not known, and Mount is the one that fits: that of
	// the weight files the process has in its hands, or the only one of the kind that
	// the kernel function belongs to.
	Guessed bool `json:"guessed,omitempty"`
}

// Mount is a line of /proc/PID/mountinfo.
type Mount struct {
	ID     int    `json:"id"`
	Point  string `json:"point"`
	FSType string `json:"fs_type"`
	// Source is the device, server or bucket, redacted.
	Source string `json:"source,omitempty"`
}

// PageCacheFrame is how much of the model's files the kernel keeps in memory:
// cachestat(2), Linux 6.5. It counts the pages whoever had them read, also those
// that readahead has brought before the server asked for them.
type PageCacheFrame struct {
	// At is when it was asked: beside the frames, as reading may have to wait.
	At          time.Time `json:"at"`
	CachedBytes uint64    `json:"cached_bytes"`
	// Files is how many files that are.
	Files int `json:"files"`
}
