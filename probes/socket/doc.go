// Package socket says who listens, who is connected to whom, and how long the
// queues are, in the network namespace of the target.
//
// It reads /proc/PID/net/{tcp,tcp6,unix}, which anybody may read, and the
// descriptors of the processes by readlink, which needs the right to trace
// them. The tables are parsed here and not by procfs, which has no column for
// retransmits and gives up a whole table for one line that it cannot read: any
// user can make such a line, with a unix socket whose name has a newline.
//
// The package may not judge what it sees, may not send anything to the target
// (Dialer only opens the way for those who may), and may not stat or open what
// a descriptor points to.
package socket
