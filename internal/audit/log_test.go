package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// openLog opens a Log that the test closes.
func openLog(t *testing.T, o Options) *Log {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// znode returns a record of a znode.
func znode(path string) Record { return Record{Operation: OpCreate, Znode: path, Result: Success} }

// read returns the lines of a file.
func read(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// await waits until done.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TestLogAppends shows that a Log appends to its file, in both formats.
func TestLogAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for _, format := range []Format{Text, JSON} {
		l := openLog(t, Options{Path: path, Format: format})
		l.Write(znode("/a"))
		l.Write(Record{Operation: OpMulti, Result: Failure})
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Write(znode("/after-the-end"))
	}
	lines := read(t, path)
	if len(lines) != 4 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	const at = `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} `
	for i, want := range []string{at + "INFO o.a.z.a.Slf4jAuditLogger: operation=create\tznode=/a\tresult=success$",
		at + "ERROR o.a.z.a.Slf4jAuditLogger: operation=multiOperation\tresult=failure$"} {
		if !regexp.MustCompile(want).MatchString(lines[i]) {
			t.Errorf("%q does not match %q", lines[i], want)
		}
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(lines[2]), &got); err != nil || got["znode"] != "/a" || got["result"] != "success" {
		t.Errorf("%s: %v", lines[2], err)
	}
	if _, err := time.Parse(time.RFC3339Nano, got["time"]); err != nil {
		t.Error(err)
	}
}

// TestLogRotates shows that the file is renamed at its size limit, and that the oldest file
// is replaced.
func TestLogRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, Options{Path: path, BytesMax: 1, FilesMax: 2})
	for i := range 5 {
		l.Write(znode(fmt.Sprint("/", i)))
		await(t, "the record is written", func() bool {
			b, err := os.ReadFile(path)
			return err == nil && bytes.Contains(b, fmt.Appendf(nil, "znode=/%d\t", i))
		})
	}
	for name, want := range map[string]string{path: "/4", path + ".1": "/3", path + ".2": "/2"} {
		if lines := read(t, name); len(lines) != 1 || !strings.Contains(lines[0], "znode="+want+"\t") {
			t.Errorf("%s: %q", name, lines)
		}
	}
	if _, err := os.Stat(path + ".3"); err == nil {
		t.Error("a third file is kept")
	}
}

// TestLogNoticesARename shows that when another program, such as logrotate, renames the file, the log
// begins a new file.
func TestLogNoticesARename(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, Options{Path: path})
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	l.Write(znode("/a"))
	await(t, "the record is in a new file", func() bool {
		b, err := os.ReadFile(path)
		return err == nil && bytes.Contains(b, []byte("znode=/a\t"))
	})
	if lines := read(t, path+".old"); lines[0] != "" {
		t.Errorf("the renamed file: %q", lines)
	}
}

// TestLogNoticesATruncation shows that when another program copies the file and truncates it, the log
// appends at the new end, and compares the new size with the limit at which it renames the file.
func TestLogNoticesATruncation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, Options{Path: path, BytesMax: 300, FilesMax: 1})
	has := func(text string) {
		t.Helper()
		await(t, text, func() bool {
			b, err := os.ReadFile(path)
			return err == nil && bytes.Contains(b, []byte(text))
		})
	}
	for i := range 10 {
		name := fmt.Sprint("/n", i)
		l.Write(znode(name))
		has("znode=" + name + "\t")
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path + ".1"); err == nil {
		t.Error("a file that another program keeps short was renamed")
	}
}

// TestLose shows that the file has a record of the records that could not be made, and that Lost counts them.
func TestLose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := openLog(t, Options{Path: path})
	l.Lose()
	await(t, "a record of the loss", func() bool {
		b, err := os.ReadFile(path)
		return err == nil && bytes.Contains(b, []byte("operation=auditRecordsLost"))
	})
	if l.Lost() != 1 {
		t.Errorf("%d lost", l.Lost())
	}
}

// TestRecordsWaitForAFullDisk shows that records wait while the disk is full, that those beyond
// PendingMax are lost, and that all others are in the file afterwards, in their order. The lost records are
// counted, the loss is logged, and a record where they are missing says how many they are.
func TestRecordsWaitForAFullDisk(t *testing.T) {
	path := fullDisk(t)
	var log sharedText
	l := openLog(t, Options{Path: path, PendingMax: 300, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l.Write(znode("/w00"))
	await(t, "the full disk is noticed", func() bool { return log.String() != "" })
	for i := 1; i < 20; i++ {
		l.Write(znode(fmt.Sprintf("/w%02d", i)))
	}
	lost := l.Lost()
	if lost == 0 || lost > 18 {
		t.Fatalf("%d records of 20 are lost", lost)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	await(t, "nothing waits any more", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.taken+len(l.pending) == 0
	})
	l.Write(znode("/later"))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 20 - lost {
		want = append(want, fmt.Sprintf("znode=/w%02d\t", i))
	}
	want = append(want, fmt.Sprintf("operation=auditRecordsLost\tlost=%d\tresult=failure", lost), "znode=/later\t")
	lines := read(t, path)
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d: %q", len(lines), len(want), lines)
	}
	for i, line := range lines {
		if !strings.Contains(line, want[i]) {
			t.Errorf("line %d is %q, want %q", i, line, want[i])
		}
	}
	for _, want := range []string{"level=ERROR", "the audit log cannot be written: records wait in memory", "no space left", fmt.Sprint("lost=", lost), path} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the server's log lacks %q:\n%s", want, log.String())
		}
	}
}

// TestALossBeforeCloseIsRecorded shows that the goroutine does not end before it has recorded the records that
// were lost between its last write and Close.
func TestALossBeforeCloseIsRecorded(t *testing.T) {
	l := &Log{wake: make(chan struct{}, 1)}
	l.Lose()
	l.ended = true
	if l.settle(nil) {
		t.Error("it ends with a loss that is not in the file")
	}
	if l.take(nil); !l.settle(nil) {
		t.Error("it does not end although everything is recorded")
	}
}

// TestCloseWithAFullDisk shows that Close does not wait for room on the disk, and that the log says
// how many records are lost.
func TestCloseWithAFullDisk(t *testing.T) {
	var log bytes.Buffer
	l := openLog(t, Options{Path: fullDisk(t), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l.Write(znode("/a"))
	l.Write(znode("/b"))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.Lost() != 2 || !strings.Contains(log.String(), "its last records are lost") || !strings.Contains(log.String(), "lost=2") {
		t.Errorf("%d records are lost:\n%s", l.Lost(), log.String())
	}
}

// sharedText holds what was logged. It is safe for concurrent use.
type sharedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sharedText) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *sharedText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// fullDisk returns the path of a file that can be opened, and on whose disk there is no room.
func fullDisk(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilesThatCannotBeWritten shows that Open and Try refuse the same files with the same text, which names
// the key, the file, the reason and what to do, and that Try creates and changes no file.
func TestFilesThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	old, closed := filepath.Join(dir, "old.log"), filepath.Join(dir, "closed")
	if err := errors.Join(os.WriteFile(old, []byte("a line\n"), 0o600), os.Mkdir(closed, 0o500),
		os.WriteFile(filepath.Join(dir, "readonly.log"), nil, 0o400)); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	const writable = "make the file and its folder writable for the server, or name another file"
	for _, c := range []struct {
		path, reason, remedy string // no reason: the file can be written
		anyone               bool   // root gets the error too
	}{
		{"old.log", "", "", true},
		{"new.log", "", "", true},
		{"missing/audit.log", "no such file or directory", "create the folder " + filepath.Join(dir, "missing") + ", or name another file", true},
		{"closed", "is a directory", "name a file, not a directory", true},
		{"old.log/audit.log", "not a directory", writable, true},
		{"closed/audit.log", "permission denied", writable, false},
		{"readonly.log", "permission denied", writable, false},
	} {
		if !c.anyone && os.Geteuid() == 0 {
			continue
		}
		path, want := filepath.Join(dir, c.path), "<nil>"
		if c.reason != "" {
			want = "audit.file: the audit log cannot be written: open " + path + ": " + c.reason + ": " + c.remedy
		}
		if err := Try(path); fmt.Sprint(err) != want {
			t.Errorf("Try: %v, want %s", err, want)
		}
		if after := listing(t, dir); after != before {
			t.Errorf("after Try of %s: %s, want %s", path, after, before)
		}
		if c.reason == "" {
			continue
		}
		if _, err := Open(Options{Path: path}); fmt.Sprint(err) != want {
			t.Errorf("Open: %v, want %s", err, want)
		}
	}
}

// listing returns the names and sizes of all files below a folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	if err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		all = append(all, fmt.Sprint(path, " ", info.Size()))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// TestHungDiskStopsNobody shows that Write does not wait for a disk that does not answer,
// and that Close does not wait beyond its context.
func TestHungDiskStopsNobody(t *testing.T) {
	path, drain := hangingFile(t)
	l, err := Open(Options{Path: path, BytesMax: 1 << 40, PendingMax: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 << 20 / 64 { // more than fits into the buffer, the buffer that is being written, and the pipe together
		l.Write(znode("/a"))
	}
	if l.Lost() == 0 {
		t.Error("no record is lost")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Close(ctx); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Close: %v", err)
	}
	drain()
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRotationThatFails shows that no record is lost if the file cannot be renamed.
func TestRotationThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.MkdirAll(filepath.Join(path+".1", "folder"), 0o755); err != nil { // so that the rename fails
		t.Fatal(err)
	}
	var log bytes.Buffer
	l := openLog(t, Options{Path: path, BytesMax: 1, FilesMax: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for i := range 4 {
		l.Write(znode(fmt.Sprint("/", i)))
		await(t, "the record is written", func() bool {
			b, err := os.ReadFile(path)
			return err == nil && bytes.Contains(b, fmt.Appendf(nil, "znode=/%d\t", i))
		})
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.Lost() != 0 || strings.Count(log.String(), "cannot be renamed") != 1 {
		t.Errorf("%d records are lost:\n%s", l.Lost(), log.String())
	}
}
