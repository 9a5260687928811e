package socket

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

const fibTrie = `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.0.0.0/24 2 0 1
        |-- 10.0.0.0
           /24 link UNICAST
        |-- 10.0.0.5
           /32 host LOCAL
        |-- 10.0.0.255
           /32 link BROADCAST
Local:
        |-- 127.0.0.1
           /32 host LOCAL
`

const ifInet6 = `fe80000000000000025056fffe0a0b0c 02 40 20 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
short
`

func TestOwnAddresses(t *testing.T) {
	own := map[netip.Addr]bool{}
	localIPv4([]byte(fibTrie), own)
	localIPv6([]byte(ifInet6), own)
	want := []string{"10.0.0.5", "127.0.0.1", "fe80::250:56ff:fe0a:b0c", "::1"}
	if len(own) != len(want) {
		t.Errorf("%v", own)
	}
	for _, a := range want {
		if !own[netip.MustParseAddr(a)] {
			t.Errorf("%s is missing in %v", a, own)
		}
	}
}

func FuzzOwnAddresses(f *testing.F) {
	f.Add([]byte(fibTrie))
	f.Add([]byte(ifInet6))
	f.Add([]byte("|-- \n/32 host LOCAL\n|--"))
	f.Fuzz(func(t *testing.T, b []byte) {
		own := map[netip.Addr]bool{}
		localIPv4(b, own)
		localIPv6(b, own)
		for a := range own {
			if !a.IsValid() {
				t.Errorf("%v", a)
			}
		}
	})
}

func TestEndpoints(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := free.Addr().String()
	free.Close()
	defer l.Close()
	s, _ := Look("/proc", []evidence.Process{{PID: os.Getpid(), UID: os.Getuid()}}, 0)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	got := Endpoints("/proc", s, []string{l.Addr().String(), "localhost:" + port, nobody, "192.0.2.1:29500", "node7:29500", "no address"})
	yes, no := true, false
	want := []evidence.Endpoint{
		{Local: &yes, Served: &yes, PID: os.Getpid()}, {Local: &yes, Served: &yes, PID: os.Getpid()}, {Local: &yes, Served: &no}, {Local: &no}, {}, {},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	is := func(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	for i, w := range want {
		if g := got[i]; !is(g.Local, w.Local) || !is(g.Served, w.Served) || g.PID != w.PID {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
}
