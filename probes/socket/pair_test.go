package socket

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Literal rows of Linux 6.18: 127.0.0.1:35000 to :29500 and back; an IPv6 socket
// that speaks IPv4 with an IPv4 one; a connection to 10.0.0.9; one that is being
// closed; two proxies' sockets with one pair of addresses.
func TestPairs(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	tcp := head +
		"   0: 0100007F:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 900 1 0000000000000000 100 0 0 10 0\n" +
		"   1: 0100007F:88B8 0100007F:733C 01 00000000:00000000 00:00000000 00000000     0        0 101 1 0000000000000000 20 4 30 10 -1\n" +
		"   2: 0100007F:733C 0100007F:88B8 01 00000007:00000000 00:00000000 00000000     0        0 102 1 0000000000000000 20 4 30 10 -1\n" +
		"   3: 0100007F:9001 0100007F:733D 01 00000000:00000005 00:00000000 00000000     0        0 103 1 0000000000000000 20 4 30 10 -1\n" +
		"   4: 0500000A:9002 0900000A:733C 01 00000000:00000000 00:00000000 00000000     0        0 104 1 0000000000000000 20 4 30 10 -1\n" +
		"   5: 0100007F:9003 0100007F:733C 05 00000000:00000000 00:00000000 00000000     0        0 105 1 0000000000000000 20 4 30 10 -1\n" +
		"   6: 0100007F:733C 0100007F:9003 08 00000000:00000000 00:00000000 00000000     0        0 106 1 0000000000000000 20 4 30 10 -1\n" +
		"   7: 0100007F:9004 0100007F:733C 01 00000000:00000000 00:00000000 00000000     0        0 107 1 0000000000000000 20 4 30 10 -1\n" +
		"   8: 0100007F:9004 0100007F:733C 01 00000000:00000000 00:00000000 00000000     0        0 108 1 0000000000000000 20 4 30 10 -1\n" +
		"   9: 0100007F:733C 0100007F:9004 01 00000000:00000000 00:00000000 00000000     0        0 109 1 0000000000000000 20 4 30 10 -1\n" +
		"  10: 0100007F:9005 0100007F:733C 01 00000000:00000000 00:00000000 00000000     0        0 110 1 0000000000000000 20 4 30 10 -1\n" +
		"  11: 0100007F:733C 0100007F:9005 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 20 4 30 10 -1\n"
	tcp6 := head + "   0: 0000000000000000FFFF00000100007F:733D 0000000000000000FFFF00000100007F:9001 01 00000000:00000000 00:00000000 00000000     0        0 203 1 0000000000000000 20 4 30 10 -1\n"
	dir := t.TempDir()
	for name, text := range map[string]string{"tcp": tcp, "tcp6": tcp6} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := map[uint64]Pair{
		101: {"127.0.0.1:35000", "127.0.0.1:29500", 102, 0, 7},
		102: {"127.0.0.1:29500", "127.0.0.1:35000", 101, 0, 0},
		103: {"127.0.0.1:36865", "127.0.0.1:29501", 203, 5, 0},
		203: {"127.0.0.1:29501", "127.0.0.1:36865", 103, 0, 0},
	}
	wrong := map[uint64]error{104: ErrElsewhere, 105: ErrHalfOpen, 106: ErrHalfOpen, 107: ErrTwoPeers, 109: ErrTwoPeers, 110: ErrHalfOpen, 900: ErrNoTCP, 999: ErrNoTCP, 0: ErrNoTCP}
	asked := map[uint64]bool{}
	for inode := range want {
		asked[inode] = true
	}
	for inode := range wrong {
		asked[inode] = true
	}
	pairs, why, err := Pairs(dir, asked)
	if err != nil || len(pairs) != len(want) || len(why) != len(wrong) {
		t.Fatalf("%v %v %v", pairs, why, err)
	}
	for inode, w := range want {
		if pairs[inode] != w {
			t.Errorf("%d: %+v, want %+v", inode, pairs[inode], w)
		}
	}
	for inode, w := range wrong {
		if !errors.Is(why[inode], w) {
			t.Errorf("%d: %v, want %v", inode, why[inode], w)
		}
	}
	if _, _, err := Pairs(t.TempDir(), asked); err == nil {
		t.Error("no tables, no error")
	}
}

// Both ends of a connection inside the tree name each other's process; those of
// somebody outside it name nobody.
func TestPeerPID(t *testing.T) {
	server, at := start(t, nil, "listen", "accept", "tcp4/127.0.0.1:0")
	connect(t, 1, "tcp4", at[0], "x")
	self := evidence.Process{PID: os.Getpid(), UID: os.Getuid()}
	for _, tree := range [][]evidence.Process{append(treeOf(server), self), treeOf(server)} {
		eventually(t, "accepted and seen from both ends", func() bool {
			s, _ := Look("/proc", tree, 0)
			seen := 0
			for _, c := range s.Connections {
				switch {
				case c.Local == at[0] && c.PID == server.Process.Pid:
					want := 0
					if len(tree) == 2 {
						want = self.PID
					}
					if c.PeerPID != want {
						t.Errorf("the server's end: %+v", c)
					}
					seen++
				case c.Remote == at[0] && c.PID == self.PID && len(tree) == 2:
					if c.PeerPID == server.Process.Pid {
						seen++
					}
				}
			}
			return seen == len(tree)
		})
	}
}
