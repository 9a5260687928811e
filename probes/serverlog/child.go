package serverlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// question is what the parent asks. Exactly one field is set.
type question struct {
	Setup *setup     `json:"setup,omitempty"`
	Open  *Candidate `json:"open,omitempty"`
	Scan  *scan      `json:"scan,omitempty"`
	Frame bool       `json:"frame,omitempty"`
}

type setup struct {
	Signatures []evidence.Signature  `json:"signatures"`
	Formats    []evidence.LineFormat `json:"formats"`
	// Poll is the time between two looks at a growing file, 0 for pollOften.
	Poll time.Duration `json:"poll,omitempty"`
}

// scan asks to read the log opened under this number, for that long at most
// (0: without a limit).
type scan struct {
	Log     int           `json:"log"`
	Allowed time.Duration `json:"allowed"`
}

// opened answers Open: the log's number, or why it is none. Same is true for a
// file that is already open under that number.
type opened struct {
	Log     int      `json:"log"`
	Same    bool     `json:"same,omitempty"`
	Size    int64    `json:"size"`
	Refused *refusal `json:"refused,omitempty"`
}

// scanned answers Scan.
type scanned struct {
	Log     evidence.Log `json:"log"`
	Done    bool         `json:"done"` // to the end
	Size    int64        `json:"size"` // of the file
	Notes   []string     `json:"notes,omitempty"`
	Refused *refusal     `json:"refused,omitempty"`
}

// framed answers Frame.
type framed struct {
	Frames []evidence.LogFrame `json:"frames"`
	Notes  []string            `json:"notes,omitempty"`
}

// memoryLimit is how much more memory the child may take than it has when it
// starts, in bytes. The tail library reads a line as a whole, however long.
const memoryLimit = 1 << 30

// Child is the child that reads logs; see probes.ChildMain.
func Child() probes.Handler {
	limitMemory()
	c := &child{}
	return c.answer
}

// limitMemory lets the child fail rather than the machine.
func limitMemory() {
	var used uint64
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		// The sixth number is data and stack in pages (proc_pid_statm(5)).
		var f [5]uint64
		if _, err := fmt.Sscan(string(b), &f[0], &f[1], &f[2], &f[3], &f[4], &used); err == nil {
			used *= uint64(os.Getpagesize())
		}
	}
	limit := used + memoryLimit
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
}

// child is the state of the reading end.
type child struct {
	c    *catalogue
	logs []*logFile
}

func (c *child) answer(_ context.Context, raw json.RawMessage, stage func(string)) (any, error) {
	var q question
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, err
	}
	switch {
	case q.Setup != nil:
		var err error
		pollEvery(q.Setup.Poll)
		c.c, err = newCatalogue(q.Setup.Signatures, q.Setup.Formats, time.Now(), time.Local)
		return struct{}{}, err
	case c.c == nil:
		return nil, errors.New("asked before it was set up")
	case q.Open != nil:
		stage("open " + q.Open.Path)
		return c.open(*q.Open), nil
	case q.Scan != nil:
		if q.Scan.Log < 0 || q.Scan.Log >= len(c.logs) {
			return nil, errors.New("no log number " + strconv.Itoa(q.Scan.Log))
		}
		l := c.logs[q.Scan.Log]
		stage("read " + l.candidate.Path)
		return l.scan(q.Scan.Allowed), nil
	case q.Frame:
		f := framed{Frames: []evidence.LogFrame{}}
		for _, l := range c.logs {
			stage("read " + l.candidate.Path)
			frame, notes := l.frame()
			f.Notes = append(f.Notes, notes...)
			if frame != nil {
				f.Frames = append(f.Frames, *frame)
			}
		}
		return f, nil
	}
	return nil, errors.New("no question")
}

// open opens a candidate, or finds it among the logs that are open.
func (c *child) open(candidate Candidate) opened {
	for i, l := range c.logs {
		if l.candidate.Open == candidate.Open {
			return opened{Log: i, Same: true, Size: l.size()}
		}
	}
	l, err := newLogFile(c.c, candidate)
	if err != nil {
		return opened{Refused: refused(err)}
	}
	for i, other := range c.logs {
		if other.id == l.id {
			l.f.Close()
			return opened{Log: i, Same: true, Size: other.size()}
		}
	}
	c.logs = append(c.logs, l)
	return opened{Log: len(c.logs) - 1, Size: l.size()}
}
