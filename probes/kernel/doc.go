// Package kernel reads what the machine grants a server's processes: their
// control groups (version 1, version 2, and both at once), the pressure on
// processors, memory and disks, the room on the file systems they write to, and
// what the kernel's log says of processes killed for memory.
//
//	reader.go                        where everything is read from
//	mounts.go, membership.go         which directory stands for which group
//	groupfiles.go, pressure.go,
//	hostmemory.go                    the texts of the kernel
//	frame.go                         one look at what moves
//	filesystems.go                   which file systems, and for what
//	log.go, kmsg.go, oomline.go      the kernel's log
//	child.go                         what may hang, in a child
//
// The package only observes: it may not judge, thaw, or write to a control
// group. It may not call statfs or read the kernel's log in whyhang's own
// process: a dead mount would keep whyhang from ending. What a group or file
// does not offer stays nil.
package kernel
