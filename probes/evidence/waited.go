package evidence

import "time"

// Waited is what `whyhang wait` saw before the last look, which is the rest of
// the snapshot.
type Waited struct {
	Since time.Time `json:"since"`
	// Looks is how often the counters were read.
	Looks int `json:"looks"`
	// Stalls are the times in which nothing moved towards an end, oldest first;
	// of many, the first and the last ones.
	Stalls []Standstill `json:"stalls,omitempty"`
	// StallsLeftOut is how many more there were.
	StallsLeftOut int `json:"stalls_left_out,omitempty"`
	// Restarts are the processes that the server was before, oldest first.
	Restarts []Restart `json:"restarts,omitempty"`
}

// Standstill is a time in which nothing moved, with the evidence of its beginning.
type Standstill struct {
	// Began is the last look in which something had moved; Ended the first in
	// which something moved again, absent if it has not.
	Began time.Time  `json:"began"`
	Ended *time.Time `json:"ended,omitempty"`
	// Snapshot is a close look taken as soon as the stall was noticed.
	Snapshot *Snapshot `json:"snapshot"`
}

// Restart is a process that ended while it was waited for, and that another one
// with the same command line took the place of.
type Restart struct {
	PID   int       `json:"pid"`
	Ended time.Time `json:"ended"`
	// NewPID is the process that took its place.
	NewPID int `json:"new_pid"`
}
