package process

import (
	"bytes"
)

// status is the part of /proc/PID/status that whyhang uses. The library's
// reader of this file leaves out TracerPid, and does not tell a missing line
// from a zero.
type status struct {
	Tgid, TracerPID int
	// UID is the effective one.
	UID int
	// NSPID is the ID in each PID namespace, the outermost that this /proc
	// shows first.
	NSPID []int
	// Memory by kind, in bytes; nil for kernel threads and zombies, which have
	// none.
	RSSAnon, RSSFile, RSSShmem, Swap *uint64
	// CapEff is the effective capability set, a bit mask.
	CapEff uint64
	// Caught are the signals that have a handler: bit n-1 for signal n.
	Caught uint64
}

// parseStatus never fails: what is missing or unreadable stays empty.
func parseStatus(b []byte) status {
	s := status{UID: -1}
	for line := range bytes.Lines(b) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		words := bytes.Fields(value)
		if len(words) == 0 {
			continue
		}
		first, isNumber := number(words[0])
		switch string(name) {
		case "Tgid":
			s.Tgid = int(first)
		case "TracerPid":
			s.TracerPID = int(first)
		case "Uid":
			if len(words) > 1 {
				if euid, ok := number(words[1]); ok {
					s.UID = int(euid)
				}
			}
		case "NSpid":
			for _, w := range words[:min(len(words), maxNamespaces)] {
				if id, ok := number(w); ok {
					s.NSPID = append(s.NSPID, int(id))
				}
			}
		case "RssAnon":
			s.RSSAnon = kilobytes(first, isNumber)
		case "RssFile":
			s.RSSFile = kilobytes(first, isNumber)
		case "RssShmem":
			s.RSSShmem = kilobytes(first, isNumber)
		case "VmSwap":
			s.Swap = kilobytes(first, isNumber)
		case "SigCgt":
			s.Caught, _ = hexNumber(words[0])
		case "CapEff":
			s.CapEff, _ = hexNumber(words[0])
		}
	}
	return s
}

// maxNamespaces is MAX_PID_NS_LEVEL and one (pid_namespaces(7)).
const maxNamespaces = 33

func kilobytes(n uint64, ok bool) *uint64 {
	if !ok || n > 1<<53 {
		return nil
	}
	n *= 1024
	return &n
}

// hexNumber reads a hexadecimal number with or without "0x".
func hexNumber(b []byte) (uint64, bool) {
	b = bytes.TrimPrefix(b, []byte("0x"))
	if len(b) == 0 || len(b) > 16 {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | uint64(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
