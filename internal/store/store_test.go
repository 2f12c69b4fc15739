package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// TestLock: two stores cannot use the same directory, on the real file system too. The
// lock leaves no file and ends with Close.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	for name, fs := range map[string]FS{dir: OS(), "/data": NewMem(1)} {
		for _, o := range []Options{{DataDir: name}, {DataDir: name, LogDir: filepath.Join(name, "logs")}} {
			s := open(t, fs, o)
			var busy *BusyError
			if _, err := Open(fs, Options{DataDir: name}); !errors.As(err, &busy) {
				t.Errorf("second open: %v", err)
			}
			must(t, s.Close())
			must(t, open(t, fs, o).Close())
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, versionDir))
	must(t, err)
	if len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// TestLinkedLogDirectory: if a directory has two names, the store treats it as one.
func TestLinkedLogDirectory(t *testing.T) {
	dir := t.TempDir()
	data, logs := filepath.Join(dir, "data"), filepath.Join(dir, "logs")
	must(t, os.Mkdir(data, 0o755))
	if err := os.Symlink(data, logs); err != nil {
		t.Fatal(err)
	}
	must(t, open(t, OS(), Options{DataDir: data, LogDir: logs}).Close())
}

// TestOnRealFileSystem: on the real file system, everything that was fsynced is there
// after a restart.
func TestOnRealFileSystem(t *testing.T) {
	o := Options{DataDir: filepath.Join(t.TempDir(), "new"), LogDir: filepath.Join(t.TempDir(), "new", "too"), Compression: Gzip}
	s := open(t, OS(), o)
	w := newWorld()
	_, err := s.Load(w)
	must(t, err)
	_, err = s.WriteSnapshot(0, w)
	must(t, err)
	for z := wire.Zxid(1); z < 40; z++ {
		must(t, w.Txn(txn(z, 'r')))
		must(t, s.Append([]*record.Txn{txn(z, 'r')}))
		must(t, s.Sync())
		if z%10 == 0 {
			must(t, s.Roll())
			_, err := s.WriteSnapshot(z, w)
			must(t, err)
		}
	}
	sizes, err := s.Sizes()
	must(t, err)
	if sizes.Snapshots == 0 || sizes.Logs < preallocDefault {
		t.Errorf("sizes %+v", sizes)
	}
	removed, err := s.Purge(3)
	must(t, err)
	if len(removed) != 1 { // snapshot.0; log.1 is the last that begins before snapshot.a
		t.Errorf("removed %v", removed)
	}
	must(t, s.Truncate(35))
	must(t, s.Close())
	s = open(t, OS(), o)
	again := newWorld()
	res, err := s.Load(again)
	must(t, err)
	if res.LastZxid != 35 || res.Snapshot != 30 || len(again.nodes) != 35 {
		t.Errorf("%+v, %d nodes", res, len(again.nodes))
	}
	must(t, s.Close())
}

// TestMixedDirectories: a start is refused if the log directory contains snapshots or the
// snapshot directory logs, as in ZooKeeper. Other files are ignored.
func TestMixedDirectories(t *testing.T) {
	split := Options{DataDir: "/data", LogDir: "/logs"}
	for _, c := range []struct{ dir, name string }{{"/data", "log.1"}, {"/logs", "snapshot.0"}, {"/logs", "snapshot.zz"}} {
		m := NewMem(1)
		must(t, open(t, m, split).Close())
		f, err := m.Create(filepath.Join(c.dir, versionDir, c.name))
		must(t, err)
		must(t, f.Close())
		var layout *LayoutError
		if _, err := Open(m, split); !errors.As(err, &layout) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s in %s: %v", c.name, c.dir, err)
		}
		if _, err := Check(m, split); !errors.As(err, &layout) {
			t.Errorf("check: %s in %s: %v", c.name, c.dir, err)
		}
	}
	m := diskOf(t, samples)
	put(t, m, "readme", []byte("x"))
	put(t, m, "log.zz", []byte("x"))
	put(t, m, "snapshot.3c.bak", []byte("x"))
	if r := loaded(t, m); r.zxids[len(r.zxids)-1] != 0xa1 {
		t.Error("unknown files were minded")
	}
}

// madeSure counts how often each directory was created or made durable.
type madeSure struct {
	*Mem
	times map[string]int
}

func (f *madeSure) MkdirAll(dir string) error {
	f.times[dir]++
	return f.Mem.MkdirAll(dir)
}

// TestOpenMakesDirectoriesDurable: the name of an existing directory may not be durable,
// so every start makes the data and log directories durable, even if it may not create
// them.
func TestOpenMakesDirectoriesDurable(t *testing.T) {
	f := &madeSure{NewMem(1), map[string]int{}}
	o := Options{DataDir: "/data", LogDir: "/log"}
	for n := 1; n <= 3; n++ {
		must(t, open(t, f, o).Close())
		if len(f.times) != 2 || f.times["/data/version-2"] != n || f.times["/log/version-2"] != n {
			t.Errorf("start %d: %v", n, f.times)
		}
		o.NoDirCreate = true
	}
}

// TestNoDirCreate: a missing directory is an error if the store may not create
// directories.
func TestNoDirCreate(t *testing.T) {
	var layout *LayoutError
	if _, err := Open(NewMem(1), Options{DataDir: "/data", NoDirCreate: true}); !errors.As(err, &layout) {
		t.Errorf("%v", err)
	}
}

// TestInitializeMarker: if an empty history needs the marker, the marker may be next to
// either directory. It is removed only when the first snapshot is durable.
func TestInitializeMarker(t *testing.T) {
	o := Options{DataDir: "/data", LogDir: "/logs", NoDBCreate: true}
	m := NewMem(1)
	if res, err := loadInto(m, o, newWorld()); err != nil || !res.Empty || res.LastZxid != -1 || res.Marked {
		t.Errorf("without the marker: %+v, %v", res, err)
	}
	for _, dir := range []string{"/data", "/logs"} {
		c := m.Clone(2)
		marker := filepath.Join(dir, markerName)
		f, err := c.Create(marker)
		must(t, err)
		must(t, f.Close())
		must(t, c.SyncDir(dir))
		s := open(t, c, o)
		res, err := s.Load(newWorld())
		if err != nil || !res.Empty || res.LastZxid != 0 || !res.Marked {
			t.Errorf("with %s: %+v, %v", marker, res, err)
		}
		if _, err := c.Stat(marker); err != nil {
			t.Error("the marker is gone before there is a snapshot")
		}
		_, err = s.WriteSnapshot(0, newWorld())
		must(t, err)
		if _, err := c.Stat(marker); err == nil {
			t.Error("the marker is still there")
		}
		must(t, s.Close())
		if res, err := loadInto(c, o, newWorld()); err != nil || res.Empty {
			t.Errorf("later: %+v, %v", res, err)
		}
	}
}

// TestAppendOutOfLine: Append refuses a gap, a repetition, and a log without a snapshot
// before it, and changes nothing.
func TestAppendOutOfLine(t *testing.T) {
	s := open(t, NewMem(1), dataOptions)
	if err := s.Append([]*record.Txn{txn(1, 'a')}); err == nil {
		t.Error("appended before Load")
	}
	_, err := s.Load(newWorld())
	must(t, err)
	if err := s.Append([]*record.Txn{txn(1, 'a')}); err == nil {
		t.Error("appended without a snapshot")
	}
	_, err = s.WriteSnapshot(0, newWorld())
	must(t, err)
	must(t, s.Append([]*record.Txn{txn(1, 'a'), txn(2, 'a')}))
	for _, z := range []wire.Zxid{2, 4, 1, 1<<32 + 2, 1 << 32} {
		if err := s.Append([]*record.Txn{txn(z, 'a')}); err == nil {
			t.Errorf("%v after 2 was taken", z)
		}
	}
	must(t, s.Append([]*record.Txn{txn(3, 'a'), txn(1<<32+1, 'a'), txn(3<<32+1, 'a')}))
	must(t, s.Close())
}

// TestPurge: Purge keeps at least three sound snapshots. It keeps the log that contains
// the zxid of the oldest of them, and all later logs. Damaged snapshots do not count.
func TestPurge(t *testing.T) {
	purge := func(m *Mem, keep int) string {
		s := open(t, m, dataOptions)
		_, err := s.Load(&recorded{})
		must(t, err)
		removed, err := s.Purge(keep)
		must(t, err)
		must(t, s.Close())
		for i, path := range removed {
			removed[i] = filepath.Base(path)
		}
		slices.Sort(removed)
		return strings.Join(removed, " ")
	}
	for _, c := range []struct {
		name  string
		setup func(m *Mem)
		keep  int
		want  string
	}{
		{"three of four", func(*Mem) {}, 3, "snapshot.0"},
		{"fewer are raised to three", func(*Mem) {}, 1, "snapshot.0"},
		{"more than there are", func(*Mem) {}, 9, ""},
		{"a broken one does not count", func(m *Mem) {
			b := get(t, m, "snapshot.91")
			b[7000]++
			put(t, m, "snapshot.91", b)
		}, 3, ""},
		{"what was set aside goes with its time", func(m *Mem) {
			put(t, m, "aside.log.1", nil)
			put(t, m, "aside.snapshot.3b.tmp", nil)
			put(t, m, "aside.log.3d.from-9", nil)
			put(t, m, "snapshot.5.tmp.2", nil)
		}, 3, "aside.log.1 aside.snapshot.3b.tmp snapshot.0 snapshot.5.tmp.2"},
	} {
		m := diskOf(t, samples)
		c.setup(m)
		if got := purge(m, c.keep); got != c.want {
			t.Errorf("%s: removed %q, want %q", c.name, got, c.want)
		}
		if r := loaded(t, m); r.zxids[len(r.zxids)-1] != 0xa1 {
			t.Errorf("%s: does not load afterwards", c.name)
		}
	}
	m := diskOf(t, samples)
	s := open(t, m, dataOptions)
	_, err := s.Load(&recorded{})
	must(t, err)
	if _, err := s.WriteSnapshot(0xa1, newWorld()); err != nil {
		t.Fatal(err)
	}
	removed, err := s.Purge(3)
	must(t, err)
	if len(removed) != 3 { // snapshot.0, snapshot.3c, log.1
		t.Errorf("removed %v", removed)
	}
}

// TestTruncateElsewhere: a truncation to a zxid that is not in the history is refused and
// changes nothing.
func TestTruncateElsewhere(t *testing.T) {
	m := diskOf(t, samples)
	s := open(t, m, dataOptions)
	_, err := s.Load(&recorded{})
	must(t, err)
	before := names(t, m)
	for _, z := range []wire.Zxid{0xa2, 1 << 32} {
		if err := s.Truncate(z); !errors.Is(err, ErrNotInLog) {
			t.Errorf("to %v: %v", z, err)
		}
	}
	drop(t, m, "snapshot.0")
	if err := s.Truncate(0x3b); !errors.Is(err, ErrNotInLog) {
		t.Errorf("before every snapshot: %v", err)
	}
	if len(names(t, m)) != len(before)-1 {
		t.Errorf("files are %v", names(t, m))
	}
	must(t, s.Close())
}

// TestTruncateAcrossMissingLogs: an old snapshot remains, but the log between it and a newer one, which a leader has sent, is not
// there. A truncation to a zxid between them is refused as not in the log, so that the server asks for a snapshot, and changes nothing.
func TestTruncateAcrossMissingLogs(t *testing.T) {
	m := diskOf(t, samples)
	drop(t, m, "log.1")
	s := open(t, m, dataOptions)
	_, err := s.Load(&recorded{})
	must(t, err)
	before := names(t, m)
	if err := s.Truncate(0x3b); !errors.Is(err, ErrNotInLog) {
		t.Error(err)
	}
	if now := names(t, m); !slices.Equal(now, before) {
		t.Errorf("files are %v, were %v", now, before)
	}
	must(t, s.Close())
}

// TestReadLog: ReadLog begins after any zxid that is provably in the log, and ends at the
// last durable transaction.
func TestReadLog(t *testing.T) {
	m := diskOf(t, samples)
	s := open(t, m, dataOptions)
	_, err := s.Load(&recorded{})
	must(t, err)
	must(t, s.Append([]*record.Txn{txn(0xa2, 'a'), txn(0xa3, 'a')}))
	must(t, s.Sync())
	must(t, s.Append([]*record.Txn{txn(0xa4, 'a')}))
	for _, after := range []wire.Zxid{0, 1, 0x3c, 0x3d, 0x95, 0x96, 0xa1, 0xa2, 0xa3} {
		z := after
		for txn, err := range s.ReadLog(after) {
			must(t, err)
			if z++; txn.Zxid != z {
				t.Fatalf("after %v: %v instead of %v", after, txn.Zxid, z)
			}
		}
		if z != 0xa3 {
			t.Errorf("after %v: ends at %v", after, z)
		}
	}
	for txn, err := range s.ReadLog(0x90) {
		must(t, err)
		if txn.Zxid == 0x94 {
			break
		}
	}
	must(t, s.Close())
	_, err = s.Purge(3)
	must(t, err)
	must(t, m.Remove("/data/version-2/log.1"))
	readFails(t, s, 0x3c)
	readFails(t, s, 0xa9)
}

// TestSnapshotReplacesOtherForm: a new snapshot replaces one that has the same zxid and
// another compression.
func TestSnapshotReplacesOtherForm(t *testing.T) {
	forms := []Compression{Plain, Gzip, Snappy}
	for _, before := range forms {
		for _, after := range forms {
			m := NewMem(1)
			for i, form := range []Compression{before, after} {
				o := dataOptions
				o.Compression = form
				s := open(t, m, o)
				_, err := s.Load(newWorld())
				must(t, err)
				w := newWorld()
				w.nodes["/"+strconv.Itoa(i)] = nil
				_, err = s.WriteSnapshot(0, w)
				must(t, err)
				must(t, s.Close())
			}
			m.Crash(LoseAll)
			w, _, err := load(m, dataOptions)
			must(t, err)
			if _, ok := w.nodes["/1"]; !ok {
				t.Errorf("%q, then %q: loaded is the first: %v", before, after, names(t, m))
			}
		}
	}
}

// purging is a file system in which a purge runs whenever the log directory
// has just been listed.
type purging struct {
	FS
	gone string
}

func (p purging) ReadDir(dir string) ([]FileInfo, error) {
	list, err := p.FS.ReadDir(dir)
	return list, errors.Join(err, p.FS.Remove(p.gone))
}

// TestReadLogBesidePurge: if a log is purged just before ReadLog opens it, ReadLog
// reports that the zxid is no longer in the log, not an error of the disk.
func TestReadLogBesidePurge(t *testing.T) {
	m := diskOf(t, samples)
	s := open(t, m, dataOptions)
	_, err := s.Load(&recorded{})
	must(t, err)
	s.fs = purging{m, "/data/version-2/log.1"}
	readFails(t, s, 1)
}

func readFails(t *testing.T, s *Store, after wire.Zxid) {
	t.Helper()
	var last error
	for _, err := range s.ReadLog(after) {
		last = err
	}
	if !errors.Is(last, ErrNotInLog) {
		t.Errorf("after %v: %v", after, last)
	}
}

// TestEpochs: epoch files are created and read. A state that a crash can leave is
// repaired, and any other is refused.
func TestEpochs(t *testing.T) {
	const none = "-"
	for _, c := range []struct {
		name                   string
		last                   wire.Zxid
		current, accepted, tmp string
		want                   Epochs
		file                   string // the damaged file
	}{
		{"none yet", 5, none, none, none, Epochs{0, 0}, ""},
		{"none yet, later log", 3<<32 + 5, none, none, none, Epochs{3, 3}, ""},
		{"as written", 2<<32 + 1, "4", "6", none, Epochs{4, 6}, ""},
		{"with a line end", 2<<32 + 1, "4\n", "6\r\n", none, Epochs{4, 6}, ""},
		{"crash after the first was made", 2<<32 + 1, "2", none, none, Epochs{2, 2}, ""},
		{"log ahead, a new value under way", 3<<32 + 1, "2", "5", "5", Epochs{5, 5}, ""},
		{"log ahead, the new value torn", 3<<32 + 1, "2", "5", "", Epochs{3, 5}, ""},
		{"log ahead, nothing under way", 3<<32 + 1, "2", "5", none, Epochs{3, 5}, ""},
		{"log ahead of every promise", 3<<32 + 1, "2", "2", none, Epochs{}, currentEpochName},
		{"current removed", 2<<32 + 1, none, "3", none, Epochs{}, currentEpochName},
		{"accepted removed", 2<<32 + 1, "3", none, none, Epochs{}, acceptedEpochName},
		{"accepted below current", 2<<32 + 1, "5", "4", none, Epochs{}, acceptedEpochName},
		{"not a number", 2<<32 + 1, "4x", "4", none, Epochs{}, currentEpochName},
		{"empty", 2<<32 + 1, "", "4", none, Epochs{}, currentEpochName},
	} {
		m := NewMem(1)
		s := open(t, m, dataOptions)
		_, err := s.InstallSnapshot(c.last, newWorld())
		must(t, err)
		for name, text := range map[string]string{currentEpochName: c.current, acceptedEpochName: c.accepted, currentEpochName + ".tmp": c.tmp} {
			if text != none {
				put(t, m, name, []byte(text))
			}
		}
		rep, err := Check(m, dataOptions)
		must(t, err)
		got, err := s.Epochs()
		var d *DamageError
		switch {
		case c.file == "" && (err != nil || got != c.want || len(rep.Damage) > 0):
			t.Errorf("%s: %+v, %v; check %v", c.name, got, err, rep.Damage)
		case c.file != "" && (!errors.As(err, &d) || filepath.Base(d.File) != c.file || len(rep.Damage) != 1):
			t.Errorf("%s: %v; check %v", c.name, err, rep.Damage)
		case c.file == "":
			again, err := s.Epochs()
			if err != nil || again != got {
				t.Errorf("%s: read again %+v, %v", c.name, again, err)
			}
		}
		must(t, s.Close())
	}
}

// TestLargeBatchIsSyncedInBetween: however much is appended at once, at most syncMax
// bytes lie between two fsyncs, unless one transaction alone is larger. The distance from
// the end at which a torn write is accepted depends on this.
func TestLargeBatchIsSyncedInBetween(t *testing.T) {
	d := newDriver(NewMem(1), Options{DataDir: "/data"})
	must(t, d.start())
	var batch []*record.Txn
	for z := wire.Zxid(1); z <= 24; z++ {
		size := 1 << 20
		if z == 12 {
			size = 10 << 20
		}
		batch = append(batch, &record.Txn{
			TxnHeader: record.TxnHeader{Zxid: z, Type: wire.OpCreate},
			Body:      &record.CreateTxn{Path: nodeOf(z), Data: make([]byte, size)},
		})
	}
	for i, one := range batch {
		must(t, d.s.Append([]*record.Txn{one}))
		if open := d.s.LogBytes() - d.s.log.synced; open > syncMax && d.s.Synced() != wire.Zxid(i) {
			t.Errorf("%d bytes are not synced after %v", open, one.Zxid)
		}
	}
	if d.s.Synced() < 16 {
		t.Errorf("synced %v of 24", d.s.Synced())
	}
	must(t, d.s.Close())
	if w, _, err := load(d.m, d.opts); err != nil || w.last != 24 {
		t.Errorf("%v, last %v", err, w.last)
	}
}

// TestAppendAllocatesNothing: appending a transaction allocates no memory.
func TestAppendAllocatesNothing(t *testing.T) {
	var coder wire.Coder
	buf := make([]byte, 0, 1<<20)
	one := txn(2, 'a')
	allocs := testing.AllocsPerRun(100, func() {
		var err error
		if buf, err = appendRecord(&coder, buf[:0], one); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
