package evidence

// Sockets are the listeners and connections of the tree, read in the target's
// own network namespace.
type Sockets struct {
	// PID is the process whose /proc/PID/net was read.
	PID   int    `json:"pid,omitempty"`
	NetNS string `json:"net_ns,omitempty"`
	// SameNetNS: whyhang is in that namespace itself; nil when not known.
	SameNetNS   *bool        `json:"same_net_ns,omitempty"`
	Listeners   []Listener   `json:"listeners,omitempty"`
	Connections []Connection `json:"connections,omitempty"`
	// Endpoints are the addresses at which the tree is to meet others, as they
	// were in the last look.
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// OwnersKnown: the descriptors of every process of the tree were readable,
	// so that a socket without an owner in the tree really has none.
	OwnersKnown bool `json:"owners_known"`
}

// Owner says how sure it is that a socket belongs to the tree.
type Owner string

// How a listener was matched to the tree.
const (
	OwnerDescriptor Owner = "descriptor" // a process of the tree holds it open
	OwnerUser       Owner = "user"       // same user and the port of the command line; descriptors not readable
	OwnerOther      Owner = "other"      // somebody else holds it
	OwnerUnknown    Owner = "unknown"
)

// Listener is a listening socket: one of the tree's, or somebody else's on the
// port that the tree was told to use.
type Listener struct {
	// Network is "tcp", "tcp6" or "unix".
	Network string `json:"network"`
	// Address is host:port, or the path of a unix socket.
	Address string `json:"address"`
	Port    int    `json:"port,omitempty"`
	Inode   uint64 `json:"inode"`
	UID     int    `json:"uid"`
	Owner   Owner  `json:"owner"`
	PID     int    `json:"pid,omitempty"`
	// PIDName is the comm of PID when it is not one of the tree's.
	PIDName string `json:"pid_name,omitempty"`
	// AcceptQueue is the number of connections that nobody has accepted yet
	// (rx_queue of a socket in state LISTEN).
	AcceptQueue int `json:"accept_queue"`
}

// Connection is an established or half-open TCP connection of the tree.
type Connection struct {
	Network string `json:"network"`
	Local   string `json:"local"`
	Remote  string `json:"remote"`
	// State is the name of the TCP state: ESTABLISHED, SYN_SENT, CLOSE_WAIT …
	State string `json:"state"`
	Inode uint64 `json:"inode"`
	// PID is the process of the tree that holds it. 0 with Inode 0: nobody has
	// accepted it; 0 with an Inode: its holder is not known.
	PID int `json:"pid,omitempty"`
	// PeerPID is the process of the tree that holds the other end; 0 if none
	// does, or if that is not known.
	PeerPID int `json:"peer_pid,omitempty"`
	// RxQueueBytes were received and not read; TxQueueBytes sent and not
	// acknowledged.
	RxQueueBytes int `json:"rx_queue_bytes"`
	TxQueueBytes int `json:"tx_queue_bytes"`
	// Inbound: the local end is one of the tree's listeners.
	Inbound bool `json:"inbound,omitempty"`
	// Retransmits counts unanswered attempts.
	Retransmits int `json:"retransmits,omitempty"`
}

// SocketFrame is what moves of the sockets.
type SocketFrame struct {
	// AcceptQueues are the accept queues by listener inode, whyhang's own
	// connections not counted.
	AcceptQueues map[string]int `json:"accept_queues,omitempty"`
	// OwnWaiting are whyhang's own connections that nobody has accepted yet, by
	// listener inode.
	OwnWaiting map[string]int `json:"own_waiting,omitempty"`
	// Inbound counts established connections to the tree's listeners, whyhang's
	// own not among them.
	Inbound int `json:"inbound"`
	// InboundBy are the same by listener inode, without those whose other end a
	// process of the tree held in the first look. Ranks, stores and queues of an
	// engine have connections of their own that stay open while it is idle. Nil: not counted.
	InboundBy map[string]int `json:"inbound_by"`
	// RxQueueBytes is the sum over all connections of the tree that the first
	// look knew or that its listeners have, whyhang's own not among them.
	RxQueueBytes int `json:"rx_queue_bytes"`
	TxQueueBytes int `json:"tx_queue_bytes"`
}
