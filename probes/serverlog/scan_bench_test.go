package serverlog

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// benchBytes is the size of the log that BenchmarkScan reads.
const benchBytes = 256 << 20

// debugLines are lines of SGLang at level debug with a rank and a number to
// fill in. known of ten are lines that a signature knows.
func debugLines(known int) []string {
	unknown := []string{
		"[2026-11-30 %s TP%d] Tokenizer for /models/kimi-k2.5-int4 loaded as generic TokenizersBackend. Set --trust-remote-code to load tokenizer %d.\n",
		"[2026-11-30 %s TP%d] Ignore import error when loading sglang.srt.models.qwen%d_5: '_OpNamespace' 'sgl_kernel' object has no attribute 'fused_sigmoid_mul_cpu'\n",
		"[2026-11-30 %s TP%d] Freezing GC in Scheduler process. gen0: 45->0, gen1: 0->0, gen2: %d->0\n",
		"[2026-11-30 %s TP%d] init_threads_binding: numa_index=0, world_size=8, local_omp_cpuid=%d\n",
		"[2026-11-30 %s TP%d] Lock 1400741473%d released on /home/op/.cache/sglang/inductor/locks/cyxlb3uaa6kvoxxvj647upwxgrlfbl77xjn7gacmjrksxyazpqkc.lock\n",
		"[2026-11-30 %s TP%d] Updating ModelConfig.num_attention_heads from 9 to 12 for layer %d of the checkpoint, tie_word_embeddings=False\n",
		"[2026-11-30 %s TP%d] Using regular tokenizer for %d inputs\n",
	}
	all := []string{
		"[2026-11-30 %s TP%d] Decode batch, #running-req: 1, #token: %d, token usage: 0.00, cuda graph: False, gen throughput (token/s): 27.02, #queue-req: 0, \n",
		"[2026-11-30 %s TP%d] Attempting to acquire lock 1400741473%d on /home/op/.cache/sglang/inductor/locks/cyxlb3uaa6kvoxxvj647upwxgrlfbl77xjn7gacmjrksxyazpqkc.lock\n",
		"[2026-11-30 %s TP%d] Lock 1400741473%d not acquired on /home/op/.cache/sglang/inductor/locks/cyxlb3uaa6kvoxxvj647upwxgrlfbl77xjn7gacmjrksxyazpqkc.lock, waiting 0.05 seconds ...\n",
	}
	lines := make([]string, 10)
	for i := range lines {
		if i < known {
			lines[i] = all[i%len(all)]
		} else {
			lines[i] = unknown[i%len(unknown)]
		}
	}
	return lines
}

// accessLines are those of a busy vLLM server that colours its prefix.
func accessLines() []string {
	const access = "\x1b[1;36m(APIServer pid=4242)\x1b[0;0m INFO:     10.0.0.%d:%d - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n"
	lines := make([]string, 200)
	for i := range lines {
		lines[i] = fmt.Sprintf(access, 7+i%4, 40000+i*i%9973)
	}
	return lines
}

// sampleMix are the lines of a real debug log of SGLang between its launch and
// its ready line: three of four are locks that are tried again and again.
func sampleMix(tb testing.TB, c *catalogue) []string {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(logs, "sglang-0.5.23-cpu-tp2-debug.log"))
	if err != nil {
		tb.Fatal(err)
	}
	var lines []string
	for line := range bytes.Lines(b) {
		outer := slices.ContainsFunc(c.match(line), func(f found) bool {
			k := c.signatures[f.signature].Kind
			return k == evidence.KindLaunch || k == evidence.KindReady
		})
		if !outer {
			lines = append(lines, string(line))
		}
	}
	return lines
}

// numbered fills time, rank and a number into lines.
func numbered(lines []string) func(io.Writer, int64) (int, error) {
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	return func(w io.Writer, n int64) (int, error) {
		return fmt.Fprintf(w, lines[n%int64(len(lines))], at.Add(time.Duration(n)*7*time.Millisecond).Format(time.TimeOnly), n%8, n)
	}
}

// verbatim writes lines as they are.
func verbatim(lines []string) func(io.Writer, int64) (int, error) {
	return func(w io.Writer, n int64) (int, error) { return io.WriteString(w, lines[n%int64(len(lines))]) }
}

// writeLog writes a log of that size and returns its path and number of lines.
func writeLog(tb testing.TB, size int64, line func(io.Writer, int64) (int, error)) (string, int64) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "server.log")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	var written, n int64
	for ; written < size; n++ {
		c, err := line(w, n)
		if err != nil {
			tb.Fatal(err)
		}
		written += int64(c)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	return path, n
}

// BenchmarkScan reads a whole log for all known lines. The number in the name
// is how many of ten lines are known ones: a debug log of a start has few, a
// log of a busy server is nothing else.
func BenchmarkScan(b *testing.B) {
	c := catalogueOf(b, knownLines(b))
	for _, bb := range []struct {
		name string
		line func(io.Writer, int64) (int, error)
	}{
		{"known=0", numbered(debugLines(0))},
		{"known=2", numbered(debugLines(2))},
		{"known=10", numbered(debugLines(10))},
		{"access", verbatim(accessLines())},
		{"sample", verbatim(sampleMix(b, c))},
		{"serving", debugLog(benchBytes)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			path, lines := writeLog(b, benchBytes, bb.line)
			f, _, err := openLog(path)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			b.SetBytes(fileSize(b, f))
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				res, err := newScanner(c).read(source{ReaderAt: f, seekData: seekData(f)}, time.Time{})
				if err != nil || res.lines != lines {
					b.Fatalf("%d lines, %v; want %d", res.lines, err, lines)
				}
			}
			// Time on the CPU, as the machine may be shared.
			spent := (cpuTime(b) - before).Seconds()
			b.ReportMetric(float64(b.N)*float64(fileSize(b, f))/1e6/spent, "MB/cpu-s")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-sys")
		})
	}
}

// cpuTime is the user and system time of this process.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func fileSize(tb testing.TB, f *os.File) int64 {
	tb.Helper()
	st, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	return st.Size()
}
