package facts

import "fmt"

// signals are the names of the signals that end servers (signal(7)).
var signals = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
	9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 31: "SIGSYS",
}

// EndedBy says in words what a wait status (wait(2)) means; "" when it is not
// known.
func EndedBy(status *int) string {
	if status == nil {
		return ""
	}
	if sig := *status & 0x7f; sig != 0 {
		name, ok := signals[sig]
		if !ok {
			name = "signal"
		}
		return fmt.Sprintf("killed by signal %d (%s)", sig, name)
	}
	return fmt.Sprintf("exited with code %d", *status>>8&0xff)
}
