//go:build !cgo

package demo

import "errors"

// deadlock needs POSIX mutexes, and those need C.
func deadlock(func()) error {
	return errors.New("the deadlock demo is not in this build: it was built without a C compiler (CGO_ENABLED=0)")
}
