package socket

import (
	"context"
	"errors"
	"net"
	"testing"
)

// Two servers share a port: only connections that ours accepted are given. A
// server that accepts nothing gets none, whatever the other one answers.
func TestSharedPort(t *testing.T) {
	other, at := start(t, nil, "listen", "accept", "tcp4+reuseport/127.0.0.1:0")
	ours, again := start(t, nil, "listen", "accept", "tcp4+reuseport/"+at[0])
	if again[0] != at[0] {
		t.Fatalf("the port is not shared: %s and %s", at, again)
	}
	dial := AcceptedBy("/proc", treeOf(ours), (&net.Dialer{}).DialContext)
	for range 8 {
		conn, err := dial(context.Background(), "tcp", at[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if mine, _ := accepter(context.Background(), "/proc", treeOf(ours), conn); !mine {
			t.Error("somebody else's connection")
		}
		if theirs, _ := accepter(context.Background(), "/proc", treeOf(other), conn); theirs {
			t.Error("the other server's connection")
		}
	}
}

func TestSharedPortNeverAccepted(t *testing.T) {
	_, at := start(t, nil, "listen", "accept", "tcp4+reuseport/127.0.0.1:0")
	stuck, _ := start(t, nil, "listen", "never", "tcp4+reuseport/"+at[0])
	conn, err := AcceptedBy("/proc", treeOf(stuck), (&net.Dialer{}).DialContext)(context.Background(), "tcp", at[0])
	var shared *SharedPortError
	if conn != nil || !errors.As(err, &shared) || shared.Waiting == 0 && shared.Others < maxTries {
		t.Fatalf("%v, %v; want an error that says that nothing was accepted", conn, err)
	}
}
