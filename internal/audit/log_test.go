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
// appends at the new end, and counts from there until it renames the file.
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

// TestLose shows that records that could not be made are counted in the file.
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

// TestLostRecordsAreReported shows that a full disk loses records and has no other effect. The lost
// records are counted, the loss is logged, and the first record after it says how many are missing.
func TestLostRecordsAreReported(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	l := openLog(t, Options{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l.Write(znode("/lost1"))
	l.Write(znode("/lost2"))
	await(t, "two records are lost", func() bool { return l.Lost() == 2 })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l.Write(znode("/kept"))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := read(t, path)
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "operation=auditRecordsLost\tlost=2\tresult=failure") || !strings.Contains(lines[1], "znode=/kept\t") {
		t.Errorf("%q", lines)
	}
	for _, want := range []string{"level=ERROR", "the audit log cannot be written", "no space left", "lost=2", path} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the server's log lacks %q:\n%s", want, log.String())
		}
	}
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
		anyone               bool   // the super user of the machine gets the error too
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
