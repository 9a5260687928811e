package evidence

// GPU is what does not move of the GPUs. Whether the driver answered at all
// is the status of the "gpu" ProbeRun.
type GPU struct {
	// Driver is the driver's version; Library where it was read from
	// ("NVML", "amdgpu sysfs").
	Driver  string      `json:"driver,omitempty"`
	Library string      `json:"library,omitempty"`
	Devices []GPUDevice `json:"devices,omitempty"`
	// Child is set when the child process that asks the driver did not come
	// back: where it hangs.
	Child *StuckChild `json:"child,omitempty"`
}

// GPUDevice is one GPU.
type GPUDevice struct {
	Index            int     `json:"index"`
	UUID             string  `json:"uuid,omitempty"`
	Name             string  `json:"name,omitempty"`
	BusID            string  `json:"bus_id,omitempty"`
	MemoryTotalBytes *uint64 `json:"memory_total_bytes,omitempty"`
	// PowerLimitW is the enforced limit in watts.
	PowerLimitW *float64 `json:"power_limit_w,omitempty"`
	// Unread are facts the driver did not give, with its answer.
	Unread []Unread `json:"unread,omitempty"`
}

// GPUFrame is what moves of one GPU.
type GPUFrame struct {
	Index int `json:"index"`
	// MemoryUsedBytes is what was allocated. Where MemoryReservedBytes is nil
	// (a driver without nvmlDeviceGetMemoryInfo_v2) it includes what the driver
	// keeps for itself, else MemoryReservedBytes is that part.
	MemoryUsedBytes     *uint64 `json:"memory_used_bytes,omitempty"`
	MemoryReservedBytes *uint64 `json:"memory_reserved_bytes,omitempty"`
	// UtilPercent: a kernel was resident during that share of the driver's
	// last sample period. It does not mean work.
	UtilPercent       *int     `json:"util_percent,omitempty"`
	MemoryUtilPercent *int     `json:"memory_util_percent,omitempty"`
	PowerW            *float64 `json:"power_w,omitempty"`
	SMClockMHz        *int     `json:"sm_clock_mhz,omitempty"`
	MemoryClockMHz    *int     `json:"memory_clock_mhz,omitempty"`
	TemperatureC      *int     `json:"temperature_c,omitempty"`
	// ClockReasons says why the clocks are as they are, bits of
	// nvmlClocksEventReasons (nvml.h): 1 idle, 2 set by hand, 4 at its power limit,
	// 8 slowed down by the hardware, 0x20 and 0x40 by heat, 0x80 power brake.
	ClockReasons *uint64 `json:"clock_reasons,omitempty"`
	// Processes are the compute processes the driver names. In a container the
	// PIDs may be the host's, or none: absence proves nothing.
	Processes []GPUProcess `json:"processes,omitempty"`
	// Lost: the driver says the GPU fell off the bus.
	Lost bool `json:"lost,omitempty"`
}

// GPUProcess is a process on a GPU as the driver names it.
type GPUProcess struct {
	PID             int     `json:"pid"`
	MemoryUsedBytes *uint64 `json:"memory_used_bytes,omitempty"`
	// InTree: the PID is one of the target's tree.
	InTree bool `json:"in_tree,omitempty"`
}

// StuckChild is a child process of whyhang that was abandoned.
type StuckChild struct {
	PID   int    `json:"pid"`
	State string `json:"state,omitempty"`
	Wchan string `json:"wchan,omitempty"`
	// Stage is the last thing it said it was about to do.
	Stage string `json:"stage,omitempty"`
}
