package server

import (
	"bytes"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bellwether/internal/store"
	"bellwether/wire"
)

// logBook is a log that a test can read while it is written.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestSlowFsyncIsLogged: an fsync that takes longer than fsync.warningthresholdms is logged
// with ZooKeeper's message, which docs/operate.md quotes. A faster one is not.
func TestSlowFsyncIsLogged(t *testing.T) {
	docs, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	sign := regexp.MustCompile("(?m)^\\| `(.*)` \\| the disk took longer than `fsync.warningthresholdms` \\|$").FindSubmatch(docs)
	if sign == nil {
		t.Fatal("docs/operate.md has no row for a slow fsync")
	}
	line := regexp.MustCompile(`level=WARN msg="` + regexp.QuoteMeta(string(sign[1])) + ` in the log writer took \d+ms `)
	for limit, told := range map[time.Duration]bool{time.Millisecond: true, time.Hour: false} {
		if said := slowSync(t, limit); line.MatchString(said) != told {
			t.Errorf("limit %v: want %v: %v in %s", limit, line, told, said)
		}
	}
}

// slowSync returns the log of a server of which one fsync took a little longer than two
// milliseconds.
func slowSync(t *testing.T, limit time.Duration) string {
	t.Helper()
	fs, book := &stallFS{FS: store.NewMem(1)}, new(logBook)
	o := quick()
	o.FS, o.Log = fs, slog.New(slog.NewTextHandler(book, nil))
	o.Config.Storage.SyncWarning = limit
	s := start(t, o)
	c := s.connect()
	c.create("/a", "")
	before, release := fs.count(), fs.stall()
	c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})
	eventually(t, "the write is at the disk", func() bool { return fs.count() > before })
	began := s.clock()
	eventually(t, "time passes", func() bool { return s.clock()-began > int64(2*time.Millisecond) })
	release()
	c.reply(nil)
	return book.String()
}

// TestFailedSpaceProbeIsLogged: while a disk is full, the probe for free space may fail
// for another reason. Each reason is logged once, and the server continues when there is
// space.
func TestFailedSpaceProbeIsLogged(t *testing.T) {
	disk, book := store.NewMem(1), new(logBook)
	o := diskOptions(disk)
	o.Config.Storage.SnapCount = 100_000
	o.Log = slog.New(slog.NewTextHandler(book, nil))
	c := start(t, o).connect()
	c.create("/a", "before")
	disk.SetSpace(0)
	for refused := wire.OK; refused == wire.OK; {
		refused = c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: make([]byte, 1000), Version: -1}, nil).Err
	}
	for nth := 1; nth <= 2; nth++ {
		disk.Fail(store.OpCreate, nth, syscall.EIO)
	}
	eventually(t, "the probe's error is logged", func() bool { return strings.Contains(book.String(), syscall.EIO.Error()) })
	disk.SetSpace(-1)
	eventually(t, "writes are accepted again", func() bool {
		return c.call(wire.OpCreate, create("/b", "after"), nil).Err == wire.OK
	})
	if n := strings.Count(book.String(), syscall.EIO.Error()); n != 1 {
		t.Errorf("logged %d times: %s", n, book.String())
	}
}
