package evidence

// Endpoint is an address at which processes of the tree are to meet others, and
// whether anybody serves it. A connection that is refused leaves no socket, so
// this is how it is seen.
type Endpoint struct {
	// Address is host:port.
	Address string `json:"address"`
	// Local: the address belongs to the target's network namespace; nil when not
	// known (a name, or the addresses could not be read).
	Local *bool `json:"local,omitempty"`
	// Served: somebody listens there; nil unless Local is true.
	Served *bool `json:"served,omitempty"`
	// PID is the process of the tree that listens, 0 if none does.
	PID int `json:"pid,omitempty"`
}
