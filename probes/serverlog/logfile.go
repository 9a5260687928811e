package serverlog

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// headBytes and anchorBytes are how much of the beginning, and of what stands
// before the place that was read to, is compared to notice that a file has got
// other content under the same name.
const (
	headBytes   = 1024
	anchorBytes = 256
)

// logFile is one log in the child.
type logFile struct {
	c         *catalogue
	candidate Candidate
	f         *os.File
	id        identity
	link      string // what candidate.Open led to
	scanner   *scanner
	follower  *follower
	// What is known of the content, to notice that it was replaced.
	head, anchor []byte
	anchorAt     int64
}

func newLogFile(c *catalogue, candidate Candidate) (*logFile, error) {
	f, id, err := openLog(candidate.Open)
	if err != nil {
		return nil, err
	}
	return &logFile{c: c, candidate: candidate, f: f, id: id, link: linkOf(candidate.Open), scanner: newScanner(c)}, nil
}

// linkOf is where a descriptor's link leads, without the word that the kernel
// adds when the name was removed; "" for a path that is no link.
func linkOf(path string) string {
	target, _ := os.Readlink(path)
	return strings.TrimSuffix(target, deleted)
}

func (l *logFile) size() int64 {
	if st, err := l.f.Stat(); err == nil {
		return st.Size()
	}
	return 0
}

// scan reads what has not been read yet and tells everything.
func (l *logFile) scan(allowed time.Duration) scanned {
	var until time.Time
	if allowed > 0 {
		until = time.Now().Add(allowed)
	}
	notes := l.fresh()
	res, err := l.scanner.read(source{ReaderAt: l.f, seekData: seekData(l.f)}, until)
	if err != nil {
		return scanned{Notes: notes, Refused: refused(err)}
	}
	s := scanned{Done: res.done, Notes: notes, Size: l.size()}
	s.Log = evidence.Log{
		Path: l.candidate.Path, Source: l.candidate.Source, SizeBytes: res.size, Lines: res.lines,
	}
	if st, err := l.f.Stat(); err == nil {
		s.Log.Modified = st.ModTime()
		s.Log.SilentS = max(0, time.Since(st.ModTime()).Seconds())
	}
	res.state.into(&s.Log, l.c)
	res.endInto(&s.Log, l.c, l.f)
	l.remember(res.size)
	if l.follower == nil {
		if err := l.startFollower(res.size); err != nil {
			s.Notes = append(s.Notes, l.candidate.Path+" cannot be followed: "+refused(err).Why)
		}
	}
	return s
}

// startFollower follows from an offset on, from the beginning of the line that
// is unfinished there.
func (l *logFile) startFollower(offset int64) error {
	end, err := readEnding(l.f, offset, 4*lastBytes)
	if err != nil {
		return err
	}
	n := newNovelty(l.c)
	for _, line := range end.lines {
		pieces(line, func(p []byte) { n.isNew(p) })
	}
	if end.whole >= 0 {
		offset = end.whole
	}
	// The library opens and watches a path. That of our own descriptor stays
	// when the target ends.
	l.follower, err = follow("/proc/self/fd/"+strconv.Itoa(int(l.f.Fd())), offset, n)
	return err
}

// remember keeps what the file holds up to size.
func (l *logFile) remember(size int64) {
	l.head = readSome(l.f, 0, min(size, headBytes))
	l.anchorAt = max(0, size-anchorBytes)
	l.anchor = readSome(l.f, l.anchorAt, size-l.anchorAt)
}

func readSome(r io.ReaderAt, at, n int64) []byte {
	b := make([]byte, n)
	got, _ := r.ReadAt(b, at)
	return b[:got]
}

// fresh notices that the file was truncated, written anew or replaced by
// another since it was last read. It then starts again with the new content
// and says so.
func (l *logFile) fresh() []string {
	if l.head == nil {
		return nil // never read
	}
	if l.reopen() {
		return []string{l.candidate.Path + " was replaced by a new file while whyhang watched; read again from its start"}
	}
	same := bytes.Equal(readSome(l.f, 0, int64(len(l.head))), l.head) &&
		bytes.Equal(readSome(l.f, l.anchorAt, int64(len(l.anchor))), l.anchor)
	if same {
		return nil
	}
	l.restart()
	return []string{l.candidate.Path + " was truncated or written anew while whyhang watched; read again from its start"}
}

// reopen goes over to the file that the candidate's path leads to now, if that
// is another one of the same name. A path that leads nowhere changes nothing:
// the open file can still be read. Neither does another name: a descriptor's
// number is used again for any file.
func (l *logFile) reopen() bool {
	var st unix.Stat_t
	if err := unix.Stat(l.candidate.Open, &st); err != nil || identityOf(&st) == l.id {
		return false
	}
	if l.candidate.PID != 0 && linkOf(l.candidate.Open) != l.link {
		return false
	}
	f, id, err := openLog(l.candidate.Open)
	if err != nil {
		return false
	}
	l.restart()
	l.f.Close()
	l.f, l.id = f, id
	return true
}

// restart forgets everything read so far.
func (l *logFile) restart() {
	if l.follower != nil {
		l.follower.stop()
		l.follower = nil
	}
	l.scanner = newScanner(l.c)
	l.head, l.anchor, l.anchorAt = nil, nil, 0
}

// frame says how the log has moved since the last frame. Nil for a log that
// was not scanned.
func (l *logFile) frame() (*evidence.LogFrame, []string) {
	if l.head == nil && l.follower == nil {
		return nil, nil
	}
	notes := l.fresh()
	size := l.size()
	if l.follower == nil {
		if err := l.startFollower(0); err != nil {
			return nil, append(notes, l.candidate.Path+" cannot be followed: "+refused(err).Why)
		}
	}
	end, err := readEnding(l.f, size, lastBytes)
	if err != nil {
		return nil, append(notes, l.candidate.Path+": "+refused(err).Why)
	}
	f := &evidence.LogFrame{Path: l.candidate.Path, SizeBytes: size}
	bar := end.bar()
	g := l.follower.since(end.whole, bar)
	f.NewLines, f.NewContent, f.Activity = g.lines, g.content, g.activity
	if bar != nil {
		f.Bar = end.cleanLine(end.keyLines(), len(end.lines)-1, bar)
	}
	l.remember(size)
	return f, notes
}
