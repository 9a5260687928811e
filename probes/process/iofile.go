package process

import "bytes"

// ioCounters are the counters of /proc/PID/io (proc_pid_io(5)), in bytes but for
// WriteCalls; nil for a line that is missing.
type ioCounters struct{ ReadChar, WriteChar, Read, Write, WriteCalls *uint64 }

func parseIO(b []byte) ioCounters {
	var io ioCounters
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		n, ok := number(bytes.TrimSpace(value))
		if !ok {
			continue
		}
		switch string(name) {
		case "rchar":
			io.ReadChar = &n
		case "wchar":
			io.WriteChar = &n
		case "read_bytes":
			io.Read = &n
		case "write_bytes":
			io.Write = &n
		case "syscw":
			io.WriteCalls = &n
		}
	}
	return io
}
