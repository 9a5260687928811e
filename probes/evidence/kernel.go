package evidence

import "time"

// Kernel is what the machine grants the tree and has done to it: its control
// groups, the file systems it writes to, the processes killed for memory.
type Kernel struct {
	// Cgroups are the control groups that processes of the tree are in, and the
	// groups above those, as a limit or a freeze above counts for all below.
	Cgroups     []Cgroup     `json:"cgroups,omitempty"`
	FileSystems []FileSystem `json:"file_systems,omitempty"`
	Log         *KernelLog   `json:"log,omitempty"`
	// CPUClocks is empty where the kernel does not steer the clocks.
	CPUClocks []CPUClock `json:"cpu_clocks,omitempty"`
	// Unread are groups and file systems that could not be read, and why.
	Unread []Unread `json:"unread,omitempty"`
}

// Cgroup is one control group (cgroups(7)).
type Cgroup struct {
	// Version is 1 or 2. Controllers are those of a version 1 hierarchy;
	// version 2 has one hierarchy for all.
	Version     int      `json:"version"`
	Controllers []string `json:"controllers,omitempty"`
	// Path is the group's name as in /proc/PID/cgroup; Dir the directory it was
	// read from.
	Path string `json:"path"`
	Dir  string `json:"dir"`
	// PIDs are the processes of the tree in the group or in one below it.
	PIDs []int `json:"pids,omitempty"`
	// Foreign counts the processes directly in the group that are not of the
	// tree, at its first look; nil if not known.
	Foreign *int `json:"foreign,omitempty"`
}

// CPUClock is how fast some of the processors may run
// (Documentation/admin-guide/pm/cpufreq.rst).
type CPUClock struct {
	// CPUs is how many they are.
	CPUs     int    `json:"cpus"`
	Driver   string `json:"driver,omitempty"`
	Governor string `json:"governor,omitempty"`
	// In kHz, 0 for not known: the lowest and the highest clock of the hardware,
	// and the highest that the kernel asks for.
	LowestKHz   int `json:"lowest_khz,omitempty"`
	MostKHz     int `json:"most_khz,omitempty"`
	HardwareKHz int `json:"hardware_khz,omitempty"`
}

// FileSystem is one that the server writes to.
type FileSystem struct {
	// Mount is where it is mounted, by the view of process PID; FSType as in
	// mountinfo.
	PID    int    `json:"pid"`
	Mount  string `json:"mount"`
	FSType string `json:"fs_type,omitempty"`
	// For says what of the server lies on it.
	For []Use `json:"for"`
	// UID is the user the server writes as: only root gets the blocks that are
	// reserved (the difference of FreeBytes and AvailBytes).
	UID        int    `json:"uid"`
	SizeBytes  uint64 `json:"size_bytes"`
	FreeBytes  uint64 `json:"free_bytes"`
	AvailBytes uint64 `json:"avail_bytes"`
	// Inodes is 0 for a file system that does not count them.
	Inodes     uint64 `json:"inodes,omitempty"`
	FreeInodes uint64 `json:"free_inodes"`
	ReadOnly   bool   `json:"read_only,omitempty"`
}

// Use is a file or directory that the server writes to.
type Use struct {
	PID int `json:"pid"`
	// What it is: "fd 1", "HOME", "/tmp", "working directory"; Path is where, by
	// the view of the process.
	What string `json:"what"`
	Path string `json:"path"`
}

// KernelLog is what the kernel's log says of processes killed for memory since
// the tree began.
type KernelLog struct {
	Kills []OOMKill `json:"kills,omitempty"`
	// Complete: the log reaches back to the tree's start without a gap, so that
	// a kill that is not in it did not happen.
	Complete bool `json:"complete"`
	// SamePIDs: the PIDs in it, which are those of the first PID namespace, are
	// those of the snapshot.
	SamePIDs bool `json:"same_pids"`
}

// OOMKill is a line of the kernel about a process it killed for memory.
type OOMKill struct {
	At   time.Time `json:"at"`
	PID  int       `json:"pid"`
	Name string    `json:"name"`
	// Cgroup is the memory group of the process, from the line before; "" if
	// there was none.
	Cgroup string `json:"cgroup,omitempty"`
	// Limit: a memory group was at its limit, not the whole machine.
	Limit bool `json:"limit,omitempty"`
	// AnonBytes is the private memory it had.
	AnonBytes *uint64 `json:"anon_bytes,omitempty"`
	Text      string  `json:"text"`
}

// Freezer is the state of a group's freezer.
type Freezer string

// The states of a freezer, in the words of version 1.
const (
	Thawed   Freezer = "THAWED"
	Freezing Freezer = "FREEZING" // told to, and some thread has not arrived
	Frozen   Freezer = "FROZEN"
)

// KernelFrame is what moves of the limits.
type KernelFrame struct {
	Cgroups []CgroupFrame `json:"cgroups,omitempty"`
	// Pressure, memory and kills of the whole machine.
	Pressure          *Pressure `json:"pressure,omitempty"`
	MemAvailableBytes *uint64   `json:"mem_available_bytes,omitempty"`
	SwapTotalBytes    *uint64   `json:"swap_total_bytes,omitempty"`
	SwapFreeBytes     *uint64   `json:"swap_free_bytes,omitempty"`
	// OOMKills is oom_kill of /proc/vmstat: kills by any limit.
	OOMKills    *uint64 `json:"oom_kills,omitempty"`
	SwapInPages *uint64 `json:"swap_in_pages,omitempty"`
}

// CgroupFrame is what moves of a control group. What a controller does not
// offer here is nil.
type CgroupFrame struct {
	// Cgroup is the index into Kernel.Cgroups.
	Cgroup  int     `json:"cgroup"`
	Freezer Freezer `json:"freezer,omitempty"`
	// FreezeSelf: the group itself was told to freeze, not only one above it.
	FreezeSelf *bool `json:"freeze_self,omitempty"`
	// QuotaUS is the processor time, in microseconds, that the group may use in
	// each period; nil: no limit, or not known.
	QuotaUS  *uint64 `json:"quota_us,omitempty"`
	PeriodUS *uint64 `json:"period_us,omitempty"`
	// Periods counts the periods in which it wanted to run, Throttled those in
	// which it used its quota up; ThrottledUS is how long it then stood still,
	// summed over processors.
	Periods     *uint64 `json:"periods,omitempty"`
	Throttled   *uint64 `json:"throttled,omitempty"`
	ThrottledUS *uint64 `json:"throttled_us,omitempty"`
	// MemoryLimitBytes is nil for no limit.
	MemoryLimitBytes *uint64 `json:"memory_limit_bytes,omitempty"`
	MemoryBytes      *uint64 `json:"memory_bytes,omitempty"`
	SwapBytes        *uint64 `json:"swap_bytes,omitempty"`
	// OOMKills counts processes killed for memory, ever: in the group alone
	// (version 1) or also below it (version 2).
	OOMKills *uint64   `json:"oom_kills,omitempty"`
	Pressure *Pressure `json:"pressure,omitempty"`
}

// Pressure is pressure stall information
// (Documentation/accounting/psi.rst).
type Pressure struct {
	CPU    *Stall `json:"cpu,omitempty"`
	Memory *Stall `json:"memory,omitempty"`
	IO     *Stall `json:"io,omitempty"`
}

// Stall is for how long, in microseconds since boot, some or all tasks that
// had work stood still for want of one resource.
type Stall struct {
	SomeUS uint64 `json:"some_us"`
	// FullUS is absent for processors of older kernels.
	FullUS *uint64 `json:"full_us,omitempty"`
}
