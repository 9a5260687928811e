package process

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

func kernelThreadLine(pid int) string {
	return strings.Replace(statLine(pid, "kthreadd", 'S', 0, 1, 1), " 0 -1 0 ", fmt.Sprintf(" 0 -1 %d ", kernelThread|0x40), 1)
}

// A hand-made /proc, whose reader may look at everything: process 100 reads
// pipe 7, of which 100 has the read end and 200 the write end.
func TestDescriptorScan(t *testing.T) {
	base := map[string]string{
		"stat": "btime 1700000000\n", "self": "-> 100",
		"2/stat":   kernelThreadLine(2),
		"100/stat": statLine(100, "reader", 'S', 1, 1, 5), "100/comm": "reader\n",
		"100/fd/3": "-> pipe:[7]", "100/fdinfo/3": "flags:\t00\nino:\t7\n",
		"100/task/100/fd/3": "-> pipe:[7]", "100/task/100/fdinfo/3": "flags:\t00\nino:\t7\n",
		"100/task/100/wchan": "anon_pipe_read",
		"200/stat":           statLine(200, "writer", 'S', 1, 1, 6), "200/comm": "writer\n",
		"200/fd/9": "-> pipe:[7]", "200/fdinfo/9": "flags:\t01\nino:\t7\n",
		"200/fd/10": "-> pipe:[77]", "200/fdinfo/10": "flags:\t01\nino:\t77\n",
	}
	nine, four := 9, 4
	self := []evidence.Waker{{PID: 100, Name: "reader", FD: &four}}
	writer := []evidence.Waker{{PID: 200, Name: "writer", FD: &nine}}
	for _, c := range []struct {
		name   string
		change map[string]string
		want   evidence.Blocked
	}{
		{"all is seen", nil, evidence.Blocked{Wakers: writer}},
		{"the writer only reads", map[string]string{"200/fdinfo/9": "flags:\t00\n"},
			evidence.Blocked{Unseen: "who holds the other end is not seen"}},
		{"opened for both", map[string]string{"200/fdinfo/9": "flags:\t02\n"}, evidence.Blocked{Wakers: writer}},
		{"O_PATH", map[string]string{"200/fdinfo/9": "flags:\t010000001\n"},
			evidence.Blocked{Unseen: "who holds the other end is not seen"}},
		{"not the first namespace", map[string]string{"2/stat": statLine(2, "sh", 'S', 1, 1, 5)},
			evidence.Blocked{Wakers: writer, Unseen: "processes outside this PID namespace, or hidden ones, are not seen", Likely: true}},
		{"its own writer", map[string]string{"200/fd/9": "", "100/fd/4": "-> pipe:[7]", "100/fdinfo/4": "flags:\t01\n",
			"200/fd/4": "-> socket:[5]", "200/fdinfo/4": "flags:\t02\nscm_fds: 0\n"}, evidence.Blocked{Wakers: self}},
		{"in a message", map[string]string{"200/fd/9": "", "100/fd/4": "-> pipe:[7]", "100/fdinfo/4": "flags:\t01\n",
			"200/fd/4": "-> socket:[5]", "200/fdinfo/4": "flags:\t02\nscm_fds: 1\n"},
			evidence.Blocked{Wakers: self, Unseen: "descriptors are on their way in a message that a socket holds"}},
		{"in an io_uring", map[string]string{"200/fd/4": "-> anon_inode:[io_uring]", "200/fdinfo/4": "flags:\t02\nUserFiles:\t1\n    0: pipe:[7]\n"},
			evidence.Blocked{Wakers: writer, Unseen: "an io_uring holds it, too; process 200 has an io_uring, which may read and write while its threads sleep"}},
		{"another io_uring", map[string]string{"200/fd/4": "-> anon_inode:[io_uring]", "200/fdinfo/4": "flags:\t02\nUserFiles:\t1\n    0: pipe:[8]\n"},
			evidence.Blocked{Wakers: writer, Unseen: "process 200 has an io_uring, which may read and write while its threads sleep"}},
		{"the first thread has ended", map[string]string{
			"200/stat": statLine(200, "writer", 'Z', 1, 2, 6), "200/fd/9": "", "200/fd/10": "",
			"200/task/201/stat": statLine(201, "writer", 'S', 1, 2, 6),
			"200/task/201/fd/9": "-> pipe:[7]", "200/task/201/fdinfo/9": "flags:\t01\n"}, evidence.Blocked{Wakers: writer}},
		{"the kernel does not say where", map[string]string{"100/task/100/wchan": "0"},
			evidence.Blocked{Wakers: writer, Unseen: "the kernel does not say in which function it sleeps", Likely: true}},
		{"asleep elsewhere", map[string]string{"100/task/100/wchan": "folio_wait_bit_common"},
			evidence.Blocked{Wakers: writer, Unseen: "it sleeps in folio_wait_bit_common, not for the pipe"}},
		{"a terminal", map[string]string{"100/task/100/fd/3": "-> /dev/pts/0", "100/task/100/wchan": "wait_woken"},
			evidence.Blocked{Kind: evidence.BlockOther, Object: "/dev/pts/0", Unseen: "the other end of a file or device cannot be named"}},
		{"an eventfd", map[string]string{"100/task/100/fd/3": "-> anon_inode:[eventfd]"},
			evidence.Blocked{Kind: evidence.BlockOther, Object: "anon_inode:[eventfd]", Unseen: "the other end of such a descriptor cannot be named"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(base)
			maps.Copy(files, c.change)
			maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
			r, err := NewReader(procFixture(t, files))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			skeleton, _ := blockedOf(call{Args: [6]uint64{3}, Number: unix.SYS_READ})
			s := sleepers{tids: []int{100}, waiting: []sleeper{{tid: 100, call: call{Args: [6]uint64{3}, Number: unix.SYS_READ}, look: evidence.ThreadLook{State: "S"}, blocked: &skeleton}}}
			got := r.blockers(context.Background(), []evidence.Process{{PID: 100}}, []answer[sleepers]{{Value: s, Done: true}}, true).of(0, 0)
			c.want.FD = 3
			if c.want.Kind == "" {
				c.want.Kind, c.want.Object = evidence.BlockPipeRead, "pipe:[7]"
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if skeleton.Unseen != "" || skeleton.Wakers != nil {
				t.Error("the look's own evidence was changed")
			}
		})
	}
}

// A look with 20 waits at pipes, among 300 processes with 20 descriptors each.
func BenchmarkBlocked20Of300(b *testing.B) {
	r := reader(b)
	others := exec.Command(scenario.Build(b, "crowd"), strconv.Itoa(300), strconv.Itoa(20))
	scenario.StartCmd(b, nil, others)
	s := scenario.Start(b, "pipe_ends", "many", "20")
	procs := treeOf(b, r, s.PID)
	ctx := context.Background()
	for b.Loop() {
		look, _ := r.Waits(ctx, procs)
		n := 0
		for _, w := range look.Waits {
			if w.Blocked != nil && len(w.Blocked.Wakers) == 1 {
				n++
			}
		}
		if n != 20 {
			b.Fatalf("%d waits, want 20", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/look")
}
