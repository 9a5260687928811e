package serverlog

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The log that is read against ripgrep: its size, and how many of the known
// strings ripgrep is given.
const (
	grepBytes    = 1 << 30
	grepLiterals = 40
)

const readyLine = "[2026-11-30 17:07:31] The server is fired up and ready to roll!\n"

// debugLog writes what SGLang writes at level debug while it serves: locks that
// are tried, batches whose numbers are others each time, requests, health checks
// and scrapes. A line has 107 bytes on average. The ready line stands in the
// middle.
func debugLog(size int64) func(io.Writer, int64) (int, error) {
	r := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	locks := debugLines(10)
	routes := []string{"POST /v1/chat/completions", "GET /health", "GET /metrics"}
	var written int64
	ready := false
	return func(w io.Writer, n int64) (int, error) {
		if !ready && written > size/2 {
			ready = true
			return io.WriteString(w, readyLine)
		}
		now := at.Add(time.Duration(n) * 7 * time.Millisecond).Format(time.TimeOnly)
		var line string
		switch k := r.IntN(100); {
		case k < 10:
			line = fmt.Sprintf(locks[k], now, r.IntN(8), r.IntN(1000))
		case k < 37:
			line = fmt.Sprintf("[2026-11-30 %s TP%d] Decode batch, #running-req: %d, #token: %d, token usage: %.2f, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: %d, \n",
				now, r.IntN(8), 1+r.IntN(128), r.IntN(200000), r.Float64(), 3000*r.Float64(), r.IntN(3))
		default:
			line = fmt.Sprintf("[2026-11-30 %s] INFO:     10.0.%d.%d:%d - \"%s HTTP/1.1\" 200 OK\n",
				now, r.IntN(256), r.IntN(256), 1024+r.IntN(60000), routes[r.IntN(len(routes))])
		}
		written += int64(len(line))
		return io.WriteString(w, line)
	}
}

// BenchmarkAgainstRipgrep reads a log for all known lines, in a child as always,
// and has ripgrep count the lines that hold some of the same strings. It prints
// both times, their ratio, and the most memory that the child had.
func BenchmarkAgainstRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("ripgrep (rg) is not installed: apt-get install ripgrep")
	}
	known := knownLines(b)
	path, lines := writeLog(b, grepBytes, debugLog(grepBytes))
	args := []string{"-c", "-F"}
	for i := 0; i < grepLiterals; i++ {
		args = append(args, "-e", known.Signatures[i*len(known.Signatures)/grepLiterals].Literal)
	}
	args = append(args, "-e", strings.TrimSpace(readyLine[22:]), path)
	var ours, theirs time.Duration
	var peak int64
	for b.Loop() {
		start := time.Now()
		r, err := Start(known.Signatures, known.Formats, 0)
		if err != nil {
			b.Fatal(err)
		}
		logs, run := r.Scan(context.Background(), []Candidate{Named(path)})
		ours += time.Since(start)
		r.Close()
		if peak == 0 {
			peak = childPeak(b) // later ripgrep is one of them
		}
		if len(logs) != 1 || logs[0].Lines != lines {
			b.Fatalf("%d logs, %v; want one of %d lines", len(logs), run, lines)
		}
		start = time.Now()
		out, err := exec.Command(rg, args...).Output()
		theirs += time.Since(start)
		if n, _ := strconv.Atoi(strings.TrimSpace(string(out))); err != nil || n == 0 {
			b.Fatalf("rg: %q, %v", out, err)
		}
	}
	n := float64(b.N)
	b.ReportMetric(ours.Seconds()/n, "s-whyhang")
	b.ReportMetric(theirs.Seconds()/n, "s-rg")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ratio")
	b.ReportMetric(float64(lines)/1e6, "Mlines")
	b.ReportMetric(float64(peak)/(1<<20), "MiB-peak")
	b.ReportMetric(0, "ns/op")
}

// childPeak is the most memory a child of this process had, in bytes.
func childPeak(tb testing.TB) int64 {
	tb.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &r); err != nil {
		tb.Fatal(err)
	}
	return r.Maxrss << 10
}
