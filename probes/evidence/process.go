package evidence

import "time"

// Process is what does not move of one process of the tree.
type Process struct {
	PID  int `json:"pid"`
	PPID int `json:"ppid"`
	// NSPID is the process's ID in each PID namespace, outermost first, the
	// last is its own (NSpid of /proc/PID/status). Lock words and logs hold
	// IDs of the last one.
	NSPID []int `json:"nspid,omitempty"`
	// StartTicks is field 22 of /proc/PID/stat, clock ticks since boot: with
	// the PID it names a process for ever, as PIDs are used again.
	StartTicks uint64    `json:"start_ticks"`
	Started    time.Time `json:"started"`
	// Name is comm, at most 15 bytes; Argv is cmdline split at NUL, redacted.
	// A process that rewrote its title has one element in Argv.
	Name string   `json:"name"`
	Argv []string `json:"argv,omitempty"`
	Exe  string   `json:"exe,omitempty"`
	Cwd  string   `json:"cwd,omitempty"`
	UID  int      `json:"uid"`
	// State is the state letter at discovery: R S D T t Z X I.
	State string `json:"state"`
	// Kernel: it is a thread of the kernel (PF_KTHREAD, field 9 of stat).
	Kernel bool `json:"kernel,omitempty"`
	// LeaderExited: the first thread has ended and others live. State here and
	// in frames, descriptors and memory are then those of a living thread, as
	// /proc/PID itself shows an empty zombie.
	LeaderExited bool `json:"leader_exited,omitempty"`
	// WaitStatus is set for a zombie whose status may be read.
	WaitStatus *int `json:"wait_status,omitempty"`
	// TracerPID is who traces the process, 0 for nobody; TracerName its comm.
	TracerPID  int    `json:"tracer_pid,omitempty"`
	TracerName string `json:"tracer_name,omitempty"`
	// NetNS, PIDNS and MntNS are namespace identities such as "net:[4026531840]".
	NetNS string `json:"net_ns,omitempty"`
	PIDNS string `json:"pid_ns,omitempty"`
	MntNS string `json:"mnt_ns,omitempty"`
	// Cgroup is the path of the unified or, failing that, the memory
	// hierarchy; Container the 64-digit container ID in it, if any.
	Cgroup    string `json:"cgroup,omitempty"`
	Container string `json:"container,omitempty"`
	// Env holds the variables that engines and rules ask for (see
	// process.TreeOptions.Env), redacted. Absent: not readable or not set; Unread
	// tells the two apart.
	Env map[string]string `json:"env,omitempty"`
	// Libraries are the base names of mapped shared objects that tell an
	// engine or a runtime (libcuda, libnccl, libtorch, llama, python).
	Libraries []string `json:"libraries,omitempty"`
	// Libc is "glibc 2.36", "musl" or empty when not known.
	Libc string `json:"libc,omitempty"`
	// Files are weight files the process has mapped or open at discovery.
	Files []OpenFile `json:"files,omitempty"`
	// Unread is what of this process could not be read.
	Unread []Unread `json:"unread,omitempty"`
}

// OpenFile is a weight file a process holds, by mapping or by descriptor.
type OpenFile struct {
	Path string `json:"path"`
	// SizeBytes is the file's size; nil when stat did not answer in time.
	SizeBytes *uint64 `json:"size_bytes,omitempty"`
	// Mapped: the file is mapped; MappedBytes is the length of its mappings
	// and ResidentBytes how much of them is mapped in now (Rss of smaps).
	Mapped        bool    `json:"mapped,omitempty"`
	MappedBytes   uint64  `json:"mapped_bytes,omitempty"`
	ResidentBytes *uint64 `json:"resident_bytes,omitempty"`
	// FD is a descriptor of the file, -1 if only mapped.
	FD int `json:"fd"`
	// PosBytes is the descriptor's offset (fdinfo pos): how far read() came.
	// pread and mmap do not move it.
	PosBytes *uint64 `json:"pos_bytes,omitempty"`
}

// Weights are the model files, found from argv or from what the tree holds
// open.
type Weights struct {
	// Path is the model directory, or the file of a single-file model.
	Path string `json:"path"`
	// FoundBy says how: "argv --model-path", "mapped by 4242", "fd 7 of 4242".
	FoundBy string `json:"found_by"`
	// Format is "safetensors", "gguf", "bin" or "mixed".
	Format     string       `json:"format,omitempty"`
	Files      []WeightFile `json:"files,omitempty"`
	TotalBytes uint64       `json:"total_bytes"`
	// ExpectedBytes is what the files must come to by their headers, and by the
	// index where parts are missing; 0: not known.
	ExpectedBytes uint64 `json:"expected_bytes,omitempty"`
	// Missing are parts that the index or the numbers in the names promise and
	// that are not there, the first 64; MissingCount counts all.
	Missing      []string `json:"missing,omitempty"`
	MissingCount int      `json:"missing_count,omitempty"`
	// IndexBytes is the size of all tensors by the index (metadata.total_size);
	// 0: no such index.
	IndexBytes uint64 `json:"index_bytes,omitempty"`
	// DTypeBytes are the bytes of tensors by type, as the headers write it
	// ("BF16", "Q4_K"); of the files whose headers were read.
	DTypeBytes map[string]uint64 `json:"dtype_bytes,omitempty"`
	// Unread says why headers were not read.
	Unread *Unread `json:"unread,omitempty"`
	// PageCacheUnread says why Frame.PageCache is not known.
	PageCacheUnread *Unread `json:"page_cache_unread,omitempty"`
	// FSType is the type of the file system they are on, as in mountinfo.
	FSType string `json:"fs_type,omitempty"`
}

// WeightFile is one shard.
type WeightFile struct {
	Path string `json:"path"`
	// RealPath is the path behind symbolic links, as /proc shows the file when
	// it is mapped or open; absent if it is Path.
	RealPath  string `json:"real_path,omitempty"`
	SizeBytes uint64 `json:"size_bytes"`
	// Header is what the file says of itself; nil: not read, or a format
	// without such a header.
	Header *WeightHeader `json:"header,omitempty"`
}

// WeightHeader is the header of a safetensors or GGUF file.
type WeightHeader struct {
	// ExpectedBytes is how long the file is at least if it is complete.
	ExpectedBytes uint64 `json:"expected_bytes"`
	Tensors       int    `json:"tensors"`
	// Problem says why it could not be read to its end; ExpectedBytes then
	// counts what was read.
	Problem string `json:"problem,omitempty"`
}
