package facts

import "strings"

// The numbers of the calls threads of a server sleep in, per architecture
// (arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h).
var (
	amd64Calls = map[string]string{
		"0": "read", "1": "write", "7": "poll", "17": "pread64", "19": "readv", "23": "select",
		"35": "nanosleep", "42": "connect", "43": "accept", "44": "sendto", "45": "recvfrom", "46": "sendmsg", "47": "recvmsg",
		"34": "pause", "58": "vfork", "61": "wait4", "73": "flock", "72": "fcntl", "128": "rt_sigtimedwait", "130": "rt_sigsuspend",
		"202": "futex", "219": "restart_syscall", "230": "clock_nanosleep", "232": "epoll_wait", "247": "waitid",
		"270": "pselect6", "271": "ppoll", "281": "epoll_pwait", "288": "accept4", "426": "io_uring_enter",
		"449": "futex_waitv", "455": "futex_wait", "16": "ioctl", "74": "fsync", "24": "sched_yield",
		"2": "open", "4": "stat", "5": "fstat", "6": "lstat", "18": "pwrite64", "20": "writev", "21": "access", "40": "sendfile", "75": "fdatasync", "89": "readlink",
		"217": "getdents64", "257": "openat", "262": "newfstatat", "295": "preadv", "327": "preadv2", "332": "statx", "437": "openat2", "3": "close", "11": "munmap",
	}
	arm64Calls = map[string]string{
		"63": "read", "64": "write", "67": "pread64", "65": "readv", "72": "pselect6", "73": "ppoll",
		"101": "nanosleep", "115": "clock_nanosleep", "203": "connect", "202": "accept", "206": "sendto", "207": "recvfrom", "211": "sendmsg", "212": "recvmsg",
		"260": "wait4", "95": "waitid", "32": "flock", "25": "fcntl", "137": "rt_sigtimedwait", "133": "rt_sigsuspend",
		"98": "futex", "128": "restart_syscall", "22": "epoll_pwait", "242": "accept4", "426": "io_uring_enter",
		"449": "futex_waitv", "455": "futex_wait", "29": "ioctl", "82": "fsync", "124": "sched_yield",
		"56": "openat", "61": "getdents64", "66": "writev", "68": "pwrite64", "69": "preadv", "71": "sendfile", "78": "readlinkat", "79": "newfstatat", "80": "fstat", "83": "fdatasync",
		"286": "preadv2", "291": "statx", "437": "openat2", "57": "close", "215": "munmap",
	}
)

// CallName is the name of the system call in a syscall line; "running" for a
// thread on a CPU, "no system call" for one asleep outside of any (a page
// fault), "" if the line could not be read.
func CallName(arch, line string) string {
	number, _, _ := strings.Cut(line, " ")
	switch number {
	case "":
		return ""
	case "running":
		return "running"
	case "-1":
		return "no system call"
	}
	calls := amd64Calls
	if arch == "arm64" || arch == "aarch64" {
		calls = arm64Calls
	}
	if name, ok := calls[number]; ok {
		return name
	}
	return "system call " + number
}
