package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"bellwether/wire"
)

// removals are the ways to remove the directories while a store uses them, on the real
// file system and in memory.
var removals = []struct {
	name string
	real func(base string) error
	mem  func(m *Mem)
}{
	{"version-2 is removed",
		func(base string) error { return os.RemoveAll(filepath.Join(base, "version-2")) },
		func(m *Mem) { m.RemoveAll("/data/version-2") }},
	{"dataDir is removed",
		func(base string) error { return os.RemoveAll(base) },
		func(m *Mem) { m.RemoveAll("/data") }},
	{"version-2 is renamed, and another made",
		func(base string) error {
			dir := filepath.Join(base, "version-2")
			return errors.Join(os.Rename(dir, filepath.Join(base, "x")), os.Mkdir(dir, 0o755))
		},
		func(m *Mem) {
			m.RenameDir("/data/version-2", "/data/x")
			_ = m.MkdirAll("/data/version-2")
		}},
	{"dataDir is renamed",
		func(base string) error { return os.Rename(base, base+"-old") },
		func(m *Mem) { m.RenameDir("/data", "/old") }},
	{"a copy takes the place of version-2",
		func(base string) error {
			dir := filepath.Join(base, "version-2")
			if err := os.CopyFS(filepath.Join(base, "copy"), os.DirFS(dir)); err != nil {
				return err
			}
			return errors.Join(os.Rename(dir, filepath.Join(base, "x")), os.Rename(filepath.Join(base, "copy"), dir))
		},
		func(m *Mem) {
			files, _ := m.ReadDir("/data/version-2")
			m.RenameDir("/data/version-2", "/data/x")
			_ = m.MkdirAll("/data/version-2")
			for _, f := range files {
				_, _ = m.Create(filepath.Join("/data/version-2", f.Name))
			}
		}},
}

// uses are the steps of a store that acknowledge something or create a file. Each must
// itself notice that a directory was removed.
var uses = []struct {
	name string
	do   func(d *driver) error
}{
	{"sync of what was appended", func(d *driver) error { return d.commit(3) }},
	{"sync of nothing new", func(d *driver) error { return d.s.Sync() }},
	{"end of a log", func(d *driver) error { return d.s.Roll() }},
	{"snapshot", func(d *driver) error { return d.snapshot(2) }},
	{"epoch", func(d *driver) error { return d.s.SetAcceptedEpoch(1) }},
	{"nothing", func(d *driver) error { return d.s.InPlace() }},
}

// TestRemovedDirectoryPoisons: when the directory is removed, renamed or replaced,
// neither the next step nor any later one acknowledges anything.
func TestRemovedDirectoryPoisons(t *testing.T) {
	for _, r := range removals {
		for _, u := range uses {
			t.Run(r.name+", "+u.name, func(t *testing.T) {
				base := filepath.Join(t.TempDir(), "data")
				m := NewMem(1)
				for _, disk := range []struct {
					fs     FS
					dir    string
					remove func() error
				}{
					{OS(), base, func() error { return r.real(base) }},
					{m, "/data", func() error { r.mem(m); return nil }},
				} {
					d := newDriver(m, Options{DataDir: disk.dir, PreallocBytes: 4096})
					removedUnder(t, disk.fs, d, disk.remove, u.do)
				}
			})
		}
	}
}

// removedUnder runs a store, removes what it uses, and then uses the store.
func removedUnder(t *testing.T, fs FS, d *driver, remove func() error, use func(d *driver) error) {
	t.Helper()
	d.s = open(t, fs, d.opts)
	_, err := d.s.Load(newWorld())
	must(t, err)
	_, err = d.s.WriteSnapshot(0, newWorld())
	must(t, err)
	must(t, d.commit(1, 2))
	must(t, remove())
	if err := use(d); err == nil {
		t.Errorf("%T: it did not notice", fs)
	}
	var removed *RemovedError
	var poisoned *PoisonedError
	if err := d.s.Sync(); !errors.As(err, &poisoned) {
		t.Errorf("%T: a later sync: %v", fs, err)
	} else if fs == OS() && !errors.As(err, &removed) && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%T: the error does not say what happened: %v", fs, err)
	}
	if got := d.s.Synced(); got != 2 {
		t.Errorf("%T: %v counts as durable", fs, got)
	}
	_ = d.s.Close()
}

// TestRemovedLogPoisons: if the log file itself is removed, renamed or replaced, no later
// step acknowledges anything.
func TestRemovedLogPoisons(t *testing.T) {
	for what, change := range map[string]func(m *Mem) error{
		"removed": func(m *Mem) error { return m.Remove("/data/version-2/log.1") },
		"renamed": func(m *Mem) error { return m.Rename("/data/version-2/log.1", "/data/version-2/log.1.bak") },
		"replaced": func(m *Mem) error {
			f, err := m.Create("/data/version-2/x")
			return errors.Join(err, f.Close(), m.Rename("/data/version-2/x", "/data/version-2/log.1"))
		},
	} {
		d := newDriver(NewMem(1), dataOptions)
		must(t, d.start())
		must(t, d.commit(1, 2))
		must(t, change(d.m))
		var removed *RemovedError
		if err := d.commit(3); !errors.As(err, &removed) || removed.Path != "/data/version-2/log.1" || removed.Synced != 2 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestRemovedSnapshotDirectoryPoisons: both of two directories are watched, even the one
// that is not written to.
func TestRemovedSnapshotDirectoryPoisons(t *testing.T) {
	for _, gone := range []string{"/snaps", "/logs"} {
		d := newDriver(NewMem(1), Options{DataDir: "/snaps", LogDir: "/logs", PreallocBytes: -1})
		must(t, d.start())
		must(t, d.commit(1))
		d.m.RemoveAll(gone + "/version-2")
		var removed *RemovedError
		if err := d.commit(2); !errors.As(err, &removed) || removed.Path[:5] != gone[:5] {
			t.Errorf("%s: %v", gone, err)
		}
	}
}

// TestDirectoryInPlace: the store continues if the directory is still there but has
// several names, or is below a directory that cannot be searched any more.
func TestDirectoryInPlace(t *testing.T) {
	base := t.TempDir()
	must(t, os.Mkdir(filepath.Join(base, "disk"), 0o755))
	must(t, os.Symlink("disk", filepath.Join(base, "data")))
	must(t, os.MkdirAll(filepath.Join(base, "elsewhere"), 0o755))
	must(t, os.Symlink("../elsewhere", filepath.Join(base, "disk", "version-2")))
	d := newDriver(NewMem(1), Options{DataDir: filepath.Join(base, "data"), PreallocBytes: -1})
	d.s = open(t, OS(), d.opts)
	_, err := d.s.Load(newWorld())
	must(t, err)
	_, err = d.s.WriteSnapshot(0, newWorld())
	must(t, err)
	for z := wire.Zxid(1); z < 5; z++ {
		must(t, d.commit(z))
		must(t, d.roll())
	}
	must(t, d.s.InPlace())
	denied := place{"/data", FileInfo{}}.check(deniedFS{NewMem(1)}, 0)
	must(t, denied)
	must(t, d.s.Close())
}

// deniedFS refuses Stat for lack of permission.
type deniedFS struct{ *Mem }

func (deniedFS) Stat(name string) (FileInfo, error) {
	return FileInfo{}, fmt.Errorf("stat %s: %w", name, os.ErrPermission)
}

// statsOf counts the calls of Stat by path.
type statsOf struct {
	FS
	calls map[string]int
}

func (s *statsOf) Stat(name string) (FileInfo, error) {
	s.calls[name]++
	return s.FS.Stat(name)
}

// TestSyncChecksEachDirectoryOnce: an fsync checks once the directory of the log and, if
// that is another one, the directory of the snapshots.
func TestSyncChecksEachDirectoryOnce(t *testing.T) {
	for _, c := range []struct {
		opts Options
		want map[string]int
	}{
		{Options{DataDir: "/data", PreallocBytes: -1}, map[string]int{"/data/version-2/log.1": 1}},
		{Options{DataDir: "/snaps", LogDir: "/logs", PreallocBytes: -1}, map[string]int{"/logs/version-2/log.1": 1, "/snaps/version-2": 1}},
	} {
		disk := &statsOf{NewMem(1), map[string]int{}}
		d := newDriver(NewMem(1), c.opts)
		d.s = open(t, disk, d.opts)
		_, err := d.s.Load(newWorld())
		must(t, err)
		_, err = d.s.WriteSnapshot(0, newWorld())
		must(t, err)
		must(t, d.commit(1))
		clear(disk.calls)
		must(t, d.commit(2))
		if !maps.Equal(disk.calls, c.want) {
			t.Errorf("%v: a sync looks at %v, want %v", c.opts.DataDir, disk.calls, c.want)
		}
		must(t, d.s.Close())
	}
}

// TestStatAgreesWithOS: Stat of the store's file system returns the same as package os.
func TestStatAgreesWithOS(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("abc"), 0o600))
	must(t, os.Symlink("file", filepath.Join(dir, "link")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "broken")))
	for _, name := range []string{dir, file, filepath.Join(dir, "link"), filepath.Join(dir, "broken"), filepath.Join(dir, "missing"), os.DevNull, "."} {
		info, err := OS().Stat(name)
		want, wantErr := os.Stat(name)
		if err != nil || wantErr != nil {
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || errors.Is(err, os.ErrNotExist) != errors.Is(wantErr, os.ErrNotExist) {
				t.Errorf("%s: %v, want %v", name, err, wantErr)
			}
			continue
		}
		if info.Name != want.Name() || info.Size != want.Size() || info.Dir != want.IsDir() || info.Not != notFile(want.Mode()) {
			t.Errorf("%s: %+v, want %v %d %v", name, info, want.Name(), want.Size(), want.Mode())
		}
	}
	a, _ := OS().Stat(file)
	b, _ := OS().Stat(filepath.Join(dir, "link"))
	c, _ := OS().Stat(dir)
	if !a.SameFile(b) || a.SameFile(c) {
		t.Error("files are not told apart")
	}
}

// BenchmarkInPlace measures the check of the directories, which each fsync makes.
func BenchmarkInPlace(b *testing.B) {
	d := newDriver(NewMem(1), Options{DataDir: b.TempDir()})
	d.s = open(b, OS(), d.opts)
	_, err := d.s.Load(newWorld())
	must(b, err)
	_, err = d.s.WriteSnapshot(0, newWorld())
	must(b, err)
	must(b, d.commit(1))
	b.ReportAllocs()
	for b.Loop() {
		must(b, d.s.logInPlace())
	}
	must(b, d.s.Close())
}
