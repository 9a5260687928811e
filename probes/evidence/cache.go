package evidence

import "time"

// CacheKind says what grows in a cache directory.
type CacheKind string

// The kinds of caches.
const (
	CacheBuild    CacheKind = "build"    // compiled kernels, graphs, tuning results
	CacheDownload CacheKind = "download" // models from a hub
)

// Cache is a cache directory that a process of the tree would use: its
// environment names it, or it is the default place and exists.
type Cache struct {
	// Path is as the process PID sees it.
	Path    string    `json:"path"`
	Library string    `json:"library"`
	Kind    CacheKind `json:"kind"`
	PID     int       `json:"pid"`
	// Variable is the environment variable that names the place, "" for the
	// default place below the home directory.
	Variable string `json:"variable,omitempty"`
	// FSType is the file system's type where it is one that other machines may
	// share ("nfs", "lustre"); Remote says that it is such a one. A process of
	// another machine is in no /proc of this one.
	FSType string `json:"fs_type,omitempty"`
	Remote bool   `json:"remote,omitempty"`
	// Looks counts the looks; First and Last are the times of the outer ones.
	Looks int       `json:"looks"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Locks are the lock files that matter: those whose existence means held,
	// those that somebody holds, and the newest of the rest. IdleLocks counts
	// the lock files that are not listed, all of them held by nobody.
	Locks     []LockFile `json:"locks,omitempty"`
	IdleLocks int        `json:"idle_locks,omitempty"`
	// Unread is set when the directory could not be read.
	Unread *Unread `json:"unread,omitempty"`
}

// LockFileKind says when a lock file means that something is held.
type LockFileKind string

// The kinds of lock files.
const (
	// LockPresence: whoever made the file holds the lock until it is removed,
	// by whomever (torch.utils.file_baton). A process that is killed leaves it.
	LockPresence LockFileKind = "presence"
	// LockKernel: the file is nothing, the lock of flock(2) or fcntl(2) on it
	// is what counts, and ends with its holder (the filelock package).
	LockKernel LockFileKind = "kernel"
)

// LockFile is a lock file in a cache.
type LockFile struct {
	Path     string       `json:"path"`
	Kind     LockFileKind `json:"kind"`
	Modified time.Time    `json:"modified"`
	Inode    uint64       `json:"inode"`
	UID      int          `json:"uid"`
	// Executable: some execute bit is set. os.open, with which file_baton makes
	// its file, sets them by default; the filelock package and touch(1) do not.
	Executable bool `json:"executable,omitempty"`
	// First and Last are the first and the last look that saw it.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Asked is when Holders was read last; nil: never.
	Asked *time.Time `json:"asked,omitempty"`
	// Holders are the processes that have the file open. Unseen says why there
	// may be others.
	Holders []FileHolder `json:"holders,omitempty"`
	Unseen  string       `json:"unseen,omitempty"`
}

// FileHolder is a process that has a file open.
type FileHolder struct {
	PID  int    `json:"pid"`
	Name string `json:"name,omitempty"`
	FD   int    `json:"fd"`
	// Locks: this descriptor holds a lock of the kernel on the file.
	Locks bool `json:"locks,omitempty"`
	// WorkMS is the processor time that the process and its living descendants
	// used between the first and the last look at them, OverMS the time between
	// these looks. Both nil after one look.
	WorkMS *float64 `json:"work_ms,omitempty"`
	OverMS *float64 `json:"over_ms,omitempty"`
}

// CacheFrame is what moves in one cache.
type CacheFrame struct {
	Path string `json:"path"`
	// At is when it was looked at: looks run beside the frames, as a directory
	// may take long, and a frame takes the last one that was done.
	At time.Time `json:"at"`
	// Files and Bytes are without lock files and logs, which come, go and grow
	// without an end coming nearer.
	Files int    `json:"files"`
	Bytes uint64 `json:"bytes"`
	// Newest is the latest modification time of a file.
	Newest *time.Time `json:"newest,omitempty"`
	// Cut: there is more than was looked at, so that sums of two looks do not
	// compare.
	Cut bool `json:"cut,omitempty"`
	// Partial are downloads that are not complete, the newest first.
	Partial []PartialFile `json:"partial,omitempty"`
}

// PartialFile is a file of a download under way, or of one that was given up.
type PartialFile struct {
	Path      string `json:"path"`
	SizeBytes uint64 `json:"size_bytes"`
	// AllocatedBytes is what the file takes on the disk: some clients make the
	// file as long as it is to become before the first byte comes.
	AllocatedBytes uint64    `json:"allocated_bytes"`
	Modified       time.Time `json:"modified"`
	// PID is a process that has it open, 0 if none was seen.
	PID int `json:"pid,omitempty"`
}
