package preflight

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/store"
)

const sample = "../store/testdata/datadir-3.8.0"

// sampleCopy returns a copy of a data directory that ZooKeeper 3.8.0 wrote.
func sampleCopy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(sample)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// enough are limits into which the sample fits.
var enough = Needs{FrameBytes: 1 << 20, ExtendedTypes: true, Schemes: []string{"world", "ip", "digest", "auth", "sasl", "x509"}, Free: 1 << 40, LogFree: 1 << 40}

func read(t *testing.T, files store.FS, dir string) *Data {
	t.Helper()
	d, err := ReadData(files, store.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDataOfZooKeeper shows what is read from a directory of ZooKeeper 3.8.0, and what each limit says about it.
func TestDataOfZooKeeper(t *testing.T) {
	d := read(t, store.OS(), sample)
	if d.Check.LastZxid != 0xa1 || d.Tree.Nodes != 96 || d.Tree.TTLs != 2 || d.Tree.Containers != 1 || d.Tree.ACLs != 7 {
		t.Errorf("%+v up to %v", d.Tree, d.Check.LastZxid)
	}
	if got := d.Judge(enough); len(got) > 0 {
		t.Errorf("findings without a reason: %+v", got)
	}
	for name, test := range map[string]struct {
		change   func(n *Needs)
		severity Severity
		what     string
	}{
		"TTL":       {func(n *Needs) { n.ExtendedTypes = false }, Warns, "2 znodes have a TTL"},
		"size":      {func(n *Needs) { n.FrameBytes = 10 }, Warns, "more than jute.maxbuffer (10)"},
		"scheme":    {func(n *Needs) { n.Schemes = []string{"world"} }, Warns, `the scheme "digest", which is not switched on`},
		"memory":    {func(n *Needs) { n.Memory = 1 << 10 }, Prevents, "a process may use 0.0 MiB"},
		"disk":      {func(n *Needs) { n.Free = 1 << 10 }, Prevents, "0.0 MiB are free, and a snapshot needs"},
		"log":       {func(n *Needs) { n.LogFree, n.LogBytes = 1<<20, 64<<20 }, Prevents, "a new log reserves 64.0 MiB"},
		"copy":      {func(n *Needs) { n.Free, n.Copy = 1<<20, 2<<20 }, Warns, "a copy of the data needs 2.0 MiB"},
		"unlimited": {func(n *Needs) { n.Free, n.LogFree, n.Copy = -1, -1, 1<<50 }, "", ""},
	} {
		needs := enough
		test.change(&needs)
		got := d.Judge(needs)
		if test.severity == "" && len(got) > 0 || test.severity != "" && !finds(got, test.severity, "", test.what) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestDamagedData shows that a damaged snapshot before sound logs is a warning, and that damage with which a server
// would not start prevents a takeover.
func TestDamagedData(t *testing.T) {
	dir := sampleCopy(t)
	flip(t, filepath.Join(dir, "version-2", "snapshot.95"), 200)
	got := read(t, store.OS(), dir).Judge(enough)
	if !finds(got, Warns, "snapshot.95 at offset", "") || finds(got, Prevents, "", "") {
		t.Errorf("a damaged snapshot: %+v", got)
	}
	dir = sampleCopy(t)
	flip(t, filepath.Join(dir, "version-2", "log.93"), 100)
	flip(t, filepath.Join(dir, "version-2", "log.96"), 100)
	if got := read(t, store.OS(), dir).Judge(enough); !finds(got, Prevents, "log.96 at offset", "") {
		t.Errorf("a damaged log: %+v", got)
	}
}

func flip(t *testing.T, file string, offset int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[offset] ^= 0xff
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// halfWritten is a file system in which the newest snapshot cannot be read the first time, as while a server writes it.
type halfWritten struct {
	store.FS
	opened map[string]int
}

func (h halfWritten) Open(name string) (store.File, error) {
	h.opened[name]++
	if strings.HasSuffix(name, "snapshot.95") && h.opened[name] == 1 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return h.FS.Open(name)
}

// TestFilesThatChangeMeanwhile shows that a file that a running server removes or writes meanwhile is no damage.
func TestFilesThatChangeMeanwhile(t *testing.T) {
	files := halfWritten{store.OS(), map[string]int{}}
	if d := read(t, files, sample); d.Check.LastZxid != 0xa1 || len(d.Judge(enough)) > 0 {
		t.Errorf("%+v", d)
	}
	if files.opened[filepath.Join(sample, "version-2", "snapshot.95")] < 2 {
		t.Error("the directory was read once")
	}
}

// TestReadOnlyFiles shows that the file system with which data are read refuses every change.
func TestReadOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	files, name := readOnly{store.OS()}, filepath.Join(dir, "x")
	_, created := files.Create(name)
	_, appended := files.Append(name)
	_, locked := files.Lock(name)
	for _, err := range []error{created, appended, locked, files.MkdirAll(name), files.Rename(dir, name), files.Remove(dir), files.SyncDir(dir)} {
		if !errors.Is(err, errReadOnly) {
			t.Errorf("a change was not refused: %v", err)
		}
	}
}

// TestOwnersOfFiles shows whose files a server can use: those that the owner of the directory can read and write.
func TestOwnersOfFiles(t *testing.T) {
	dir := Entry{Path: "d", Mode: fs.ModeDir | 0o755, User: 101}
	for _, test := range []struct {
		entries  []Entry
		user     int
		severity Severity
		what     string
	}{
		{[]Entry{dir, {Path: "log.1", Mode: 0o644, User: 101}}, 101, "", ""},
		{[]Entry{dir, {Path: "log.1", Mode: 0o644, User: 101}}, 0, Warns, "belongs to user 101, and this command runs as user 0"},
		{[]Entry{dir, {Path: "log.1", Mode: 0o644, User: 0}}, 101, Prevents, "belongs to user 0 and has mode 0644, so that user 101 cannot"},
		{[]Entry{dir, {Path: "log.1", Mode: 0o444, User: 101}}, 101, Prevents, "mode 0444"},
		{[]Entry{{Path: "d", Mode: fs.ModeDir | 0o755}, {Path: "log.1", Mode: 0o600, User: 101}}, 0, "", ""}, // root may do everything
		{[]Entry{{Path: "d", User: -1}}, 0, "", ""},
	} {
		got := Owners(test.entries, test.user)
		if test.severity == "" && len(got) > 0 || test.severity != "" && !finds(got, test.severity, "", test.what) {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

// TestCurrentEpochOfData shows the three states of the file.
func TestCurrentEpochOfData(t *testing.T) {
	dir := sampleCopy(t)
	if _, ok, err := CurrentEpoch(dir); ok || err != nil {
		t.Errorf("no file: %v, %v", ok, err)
	}
	for text, want := range map[string]string{"7": "7 true <nil>", "x\n": `"x" is not a number`} {
		if err := os.WriteFile(filepath.Join(dir, "version-2", "currentEpoch"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		epoch, ok, err := CurrentEpoch(dir)
		if got := fmt.Sprint(int64(epoch), ok, err); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestReportSays shows the verdict and the text of reports.
func TestReportSays(t *testing.T) {
	warning := Finding{Warns, "zoo.cfg:3", "x is ignored", "", ""}
	hidden := Finding{Unseen, "a:2181", "connection refused", "", "start it"}
	fault := Finding{Prevents, "zoo.cfg:4", "y=1 is not allowed", "it would not start", "remove it"}
	for _, test := range []struct {
		all     []Finding
		verdict string
		text    string
	}{
		{nil, Yes, "yes: nothing prevents a takeover; 0 warnings\n"},
		{[]Finding{warning}, Yes, "warns: zoo.cfg:3: x is ignored\nyes: nothing prevents a takeover; 1 warning\n"},
		{[]Finding{warning, hidden}, Unknown, "unseen: a:2181: connection refused\n    do: start it\nwarns: zoo.cfg:3: x is ignored\nunknown: 1 part could not be examined; 1 warning\n"},
		{[]Finding{hidden, fault}, No, "prevents: zoo.cfg:4: y=1 is not allowed\n    why: it would not start\n    do: remove it\nunseen: a:2181: connection refused\n    do: start it\nno: 1 thing prevents a takeover; 0 warnings\n"},
	} {
		r := &Report{}
		r.Add(test.all...)
		r.Sort()
		var text bytes.Buffer
		if err := r.Print(&text); err != nil || text.String() != test.text || r.Verdict() != test.verdict {
			t.Errorf("%s: %q (%v)", r.Verdict(), text.String(), err)
		}
	}
}
