package socket

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var compareRows = cmp.Options{
	cmp.AllowUnexported(row{}, unixRow{}),
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
}

// rowCases are lines as the kernel prints them on a little-endian machine.
var rowCases = map[string]struct {
	line string
	want row
}{
	"listener": {
		"   0: 0100007F:7530 00000000:0000 0A 00000000:00000005 00:00000000 00000000  1000        0 88123 1 0000000000000000 100 0 0 10 0",
		row{network: "tcp", local: netip.MustParseAddrPort("127.0.0.1:30000"), remote: netip.MustParseAddrPort("0.0.0.0:0"), state: 10, rx: 5, uid: 1000, inode: 88123},
	},
	"not accepted": {
		"  14: 0100007F:7530 0100007F:A3C4 01 00000000:00000021 00:00000000 00000000     0        0 0 1 00000000a1b2c3d4 20 4 30 10 -1",
		row{network: "tcp", local: netip.MustParseAddrPort("127.0.0.1:30000"), remote: netip.MustParseAddrPort("127.0.0.1:41924"), state: 1, rx: 33},
	},
	"connecting, five attempts": {
		"   3: 0A00020F:C350 0100000A:4E20 02 00000001:00000000 01:00000190 00000005     0        0 99 2 0000000000000000 800 0 0 1 7",
		row{network: "tcp", local: netip.MustParseAddrPort("15.2.0.10:50000"), remote: netip.MustParseAddrPort("10.0.0.1:20000"), state: 2, tx: 1, retransmits: 5, inode: 99},
	},
	"IPv6 wildcard": {
		"   1: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 4294967294        0 5 1 0 100 0 0 10 0",
		row{network: "tcp6", local: netip.MustParseAddrPort("[::]:8080"), remote: netip.MustParseAddrPort("[::]:0"), state: 10, uid: 4294967294, inode: 5},
	},
	"IPv4 in IPv6": {
		"   2: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000200007F:D431 08 00000000:00000001 00:00000000 00000000     0        0 77 1 0 20 4 1 10 -1",
		row{network: "tcp6", local: netip.MustParseAddrPort("[::ffff:127.0.0.1]:8080"), remote: netip.MustParseAddrPort("[::ffff:127.0.0.2]:54321"), state: 8, rx: 1, inode: 77},
	},
	"IPv6": {
		"   2: B80D01200000000067452301EFCDAB89:0050 B80D0120000000000000000001000000:FFFF 01 00000000:00000000 02:000A8C2B 00000000     0        0 12 2 0 20 4 1 10 -1",
		row{network: "tcp6", local: netip.MustParseAddrPort("[2001:db8::123:4567:89ab:cdef]:80"), remote: netip.MustParseAddrPort("[2001:db8::1]:65535"), state: 1, inode: 12},
	},
	"largest inode": {
		" 4: 00000000:0001 00000000:0000 0A FFFFFFFF:FFFFFFFF 00:0 FFFFFFFF 4294967295 0 18446744073709551615",
		row{network: "tcp", local: netip.MustParseAddrPort("0.0.0.0:1"), remote: netip.MustParseAddrPort("0.0.0.0:0"), state: 10, tx: 4294967295, rx: 4294967295, retransmits: 4294967295, uid: 4294967295, inode: 18446744073709551615},
	},
}

func TestParseRow(t *testing.T) {
	for name, c := range rowCases {
		got, ok := parseRow([]byte(c.line))
		if !ok {
			t.Errorf("%s: not taken for a row", name)
		}
		if d := cmp.Diff(c.want, got, compareRows); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestParseRowRefuses(t *testing.T) {
	good := rowCases["listener"].line
	for name, line := range map[string]string{
		"empty":              "",
		"heading":            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
		"cut off":            good[:strings.Index(good, " 88123")],
		"no slot":            strings.Replace(good, "0:", "0", 1),
		"short address":      strings.Replace(good, "0100007F:7530", "0100007:7530", 1),
		"long address":       strings.Replace(good, "0100007F:7530", "0100007F0100007F:7530", 1),
		"address not hex":    strings.Replace(good, "0100007F", "0100007G", 1),
		"port too long":      strings.Replace(good, ":7530", ":17530", 1),
		"no port":            strings.Replace(good, ":7530", "", 1),
		"state not hex":      strings.Replace(good, " 0A ", " 0X ", 1),
		"one queue":          strings.Replace(good, "00000000:00000005", "00000000", 1),
		"negative user":      strings.Replace(good, "1000", "-1", 1),
		"user above 32 bits": strings.Replace(good, "1000", "4294967296", 1),
		"inode above 64":     strings.Replace(good, "88123", "18446744073709551616", 1),
	} {
		if r, ok := parseRow([]byte(line)); ok {
			t.Errorf("%s: taken for %+v", name, r)
		}
	}
}

func TestReadable(t *testing.T) {
	for in, want := range map[string]string{
		"[::ffff:127.0.0.1]:8000": "127.0.0.1:8000",
		"[::]:8000":               "[::]:8000",
		"0.0.0.0:8000":            "0.0.0.0:8000",
	} {
		if got := readable(netip.MustParseAddrPort(in)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestStateName(t *testing.T) {
	for state, want := range map[uint8]string{1: "ESTABLISHED", 2: "SYN_SENT", 8: "CLOSE_WAIT", 0: "state 0x00", 255: "state 0xff"} {
		if got := (&row{state: state}).stateName(); got != want {
			t.Errorf("%d: %s, want %s", state, got, want)
		}
	}
}

func FuzzParseRow(f *testing.F) {
	for _, c := range rowCases {
		f.Add([]byte(c.line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, ok := parseRow(line)
		if !ok {
			return
		}
		if r.tx < 0 || r.rx < 0 || r.uid < 0 || r.retransmits < 0 || !r.local.IsValid() || !r.remote.IsValid() {
			t.Errorf("%q gives %+v", line, r)
		}
		if _, err := netip.ParseAddrPort(readable(r.local)); err != nil {
			t.Errorf("%q: address is not one: %v", line, err)
		}
	})
}

func TestParseUnixRow(t *testing.T) {
	for line, want := range map[string]unixRow{
		"0000000000000000: 00000002 00000000 00010000 0001 01 21213 /run/vllm/rpc 0.sock": {listening: true, inode: 21213, path: "/run/vllm/rpc 0.sock"},
		"ffff8881: 00000002 00000000 00010000 0005 01   212 @abstract":                    {listening: true, inode: 212, path: "@abstract"},
		"ffff8881: 00000002 00000000 00000000 0001 02     0 /run/vllm/rpc 0.sock":         {connecting: true, path: "/run/vllm/rpc 0.sock"},
		"00000000df3c95e5: 00000003 00000000 00000000 0001 03  1126":                      {inode: 1126},
		"ffff8881: 00000002 00000000 00010000 0001 01 9 " + strings.Repeat("x", 300):      {listening: true, inode: 9, path: strings.Repeat("x", 108)},
	} {
		got, ok := parseUnixRow([]byte(line))
		if !ok {
			t.Errorf("%q is not taken for a row", line)
		}
		if d := cmp.Diff(want, got, compareRows); d != "" {
			t.Errorf("%q (-want +got):\n%s", line, d)
		}
	}
	for _, line := range []string{"", "Num       RefCount Protocol Flags    Type St Inode Path", "second line of a name", "a: b c", ": 1 2 3 4 5 6x /p"} {
		if r, ok := parseUnixRow([]byte(line)); ok {
			t.Errorf("%q is taken for %+v", line, r)
		}
	}
}

func FuzzParseUnixRow(f *testing.F) {
	f.Add([]byte("0000000000000000: 00000002 00000000 00010000 0001 01 21213 /run/a b"))
	f.Add([]byte("ffff8881: 00000002 00000000 00000000 0001 02     0 @x"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if r, ok := parseUnixRow(line); ok && len(r.path) > 3*maxUnixPath {
			t.Errorf("%q gives a path of %d bytes", line, len(r.path))
		}
	})
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine)
	for name, c := range map[string]struct {
		text string
		want []string
		odd  bool
	}{
		"empty":           {"", nil, false},
		"heading only":    {"heading\n", nil, false},
		"rows":            {"heading\na\nb\n", []string{"a", "b"}, false},
		"no last newline": {"heading\na\nb", []string{"a", "b"}, false},
		"long heading":    {long + "\na\n", []string{"a"}, true},
		"long line":       {"heading\na\n" + long + "\nb\n", []string{"a", "b"}, true},
		"long last line":  {"heading\na\n" + long, []string{"a"}, true},
	} {
		var got []string
		table, err := readLines(strings.NewReader(c.text), func(b []byte) bool { got = append(got, string(b)); return true })
		if err != nil || table.odd != c.odd || table.cut {
			t.Errorf("%s: %+v, %v", name, table, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	n := 0
	table, err := readLines(strings.NewReader("heading\n"+strings.Repeat("x\n", maxRows+7)), func([]byte) bool { n++; return true })
	if err != nil || !table.cut || n != maxRows {
		t.Errorf("%d rows of an endless table, %+v, %v", n, table, err)
	}
}
