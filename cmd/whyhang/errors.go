package main

import (
	"errors"
	"io/fs"
	"syscall"
)

// usageError is wrong usage: exit code 2, with a command that is right.
type usageError struct {
	says string
	try  string
}

func (e *usageError) Error() string { return e.says }

// cause is what the kernel said, without Go's prefix of operation and path.
func cause(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

const exitTable = `   0  ready         answers correctly
   1  -             whyhang itself failed
   2  -             wrong usage
   3  loading       moves towards ready
   4  stalled       does not move now; not proved that it cannot
   5  deadlocked    nothing inside can make it move again
   6  unresponsive  up, but does not answer, or answers wrongly
   7  broken        a part is dead or the machine failed
   8  gone          no such process, or it ended while we looked
   9  unknown       the evidence cannot decide; says what is missing
  10  ready         only with --strict or --baseline: its numbers would mislead`
