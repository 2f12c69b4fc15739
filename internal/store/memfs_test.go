package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// TestMemForgets: the memory file system loses exactly what was not fsynced.
func TestMemForgets(t *testing.T) {
	m := NewMem(1)
	put(t, m, "kept", []byte("old content"))
	f, err := m.Append("/data/version-2/kept")
	must(t, err)
	_, err = f.WriteAt([]byte("NEW"), 0)
	must(t, err)
	g, err := m.Create("/data/version-2/unnamed")
	must(t, err)
	must(t, g.Sync())
	all, none := m.Clone(1), m.Clone(1)
	all.Crash(KeepAll)
	none.Crash(LoseAll)
	if got := get(t, none, "kept"); string(got) != "old content" || len(names(t, none)) != 1 {
		t.Errorf("%q, %v", got, names(t, none))
	}
	if got := get(t, all, "kept"); string(got) != "NEW content" || len(names(t, all)) != 2 {
		t.Errorf("%q, %v", got, names(t, all))
	}
	must(t, f.Sync())
	must(t, m.SyncDir("/data/version-2"))
	m.Crash(LoseAll)
	if got := get(t, m, "kept"); string(got) != "NEW content" || len(names(t, m)) != 2 {
		t.Errorf("%q, %v", got, names(t, m))
	}
	if err := f.Sync(); !errors.Is(err, ErrCrashed) {
		t.Errorf("an old handle: %v", err)
	}
}

// TestMemTears: each sector is kept or lost independently and as a whole. A rename takes
// effect completely or not at all.
func TestMemTears(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(200) {
		m := NewMem(seed)
		put(t, m, "a", bytes.Repeat([]byte("o"), 3*sectorLen))
		f, err := m.Append("/data/version-2/a")
		must(t, err)
		_, err = f.WriteAt(bytes.Repeat([]byte("n"), 3*sectorLen), 0)
		must(t, err)
		must(t, m.Rename("/data/version-2/a", "/data/version-2/b"))
		m.Crash(2)
		left := names(t, m)
		if len(left) != 1 {
			t.Fatalf("files %v", left)
		}
		b := get(t, m, left[0])
		what := left[0]
		for i := range 3 {
			s := b[i*sectorLen:][:sectorLen]
			if !bytes.Equal(s, bytes.Repeat(s[:1], sectorLen)) {
				t.Fatalf("a torn sector")
			}
			what += string(s[:1])
		}
		seen[what] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d of 16 outcomes: %v", len(seen), seen)
	}
}

// TestMemTruncation: a truncation is kept or lost as a whole, and the truncated bytes do
// not read as zeros within the old length.
func TestMemTruncation(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(100) {
		m := NewMem(seed)
		put(t, m, "a", bytes.Repeat([]byte("o"), 2000))
		f, err := m.Append("/data/version-2/a")
		must(t, err)
		must(t, f.Truncate(700))
		m.Crash(2)
		b := get(t, m, "a")
		if !bytes.Equal(b, bytes.Repeat([]byte("o"), len(b))) {
			t.Fatalf("%d bytes, not all as they were", len(b))
		}
		seen[len(b)] = true
	}
	if len(seen) != 2 || !seen[700] || !seen[2000] {
		t.Errorf("lengths %v", seen)
	}
}

// TestMemTruncationOfUnsynced: a crash may bring back what was truncated, even if it was never fsynced, because the system may
// have written it before the truncation. An fsync of the truncation prevents that.
func TestMemTruncationOfUnsynced(t *testing.T) {
	for _, synced := range []bool{false, true} {
		seen := map[string]bool{}
		for seed := range uint64(100) {
			m := NewMem(seed)
			put(t, m, "a", []byte("old"))
			f, err := m.Append("/data/version-2/a")
			must(t, err)
			_, err = f.WriteAt([]byte("new"), 3)
			must(t, err)
			must(t, f.Truncate(3))
			if synced {
				must(t, f.Sync())
			}
			c := m.Clone(seed)
			c.Crash(2)
			m.Crash(LoseAll)
			if got := get(t, m, "a"); string(got) != "old" {
				t.Fatalf("a disk that has written only what it must has %q", got)
			}
			seen[string(get(t, c, "a"))] = true
		}
		if !seen["old"] || seen["oldnew"] == synced || len(seen) > 2 {
			t.Errorf("fsynced %v: %v", synced, seen)
		}
	}
}

// TestMemFailedSync: data whose fsync failed is lost in a crash, even if the next fsync
// succeeds.
func TestMemFailedSync(t *testing.T) {
	m := NewMem(1)
	put(t, m, "a", []byte("old"))
	f, err := m.Append("/data/version-2/a")
	must(t, err)
	_, err = f.WriteAt([]byte("new"), 0)
	must(t, err)
	m.Fail(OpSync, 1, syscall.EIO)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	must(t, f.Sync())
	m.Crash(LoseAll)
	if got := get(t, m, "a"); string(got) != "old" {
		t.Errorf("%q", got)
	}
}

// TestMemSpace: the file system is full at the planned size. Removing files frees space,
// and a write stores as much as fits.
func TestMemSpace(t *testing.T) {
	m := NewMem(1)
	must(t, m.MkdirAll("/data/version-2"))
	m.SetSpace(3 * sectorLen)
	f, err := m.Create("/data/version-2/a")
	must(t, err)
	n, err := f.WriteAt(make([]byte, 2000), 0)
	if n != 3*sectorLen || !errors.Is(err, syscall.ENOSPC) || !isFull(err) {
		t.Errorf("%d, %v", n, err)
	}
	if err := f.Allocate(5000); !isFull(err) {
		t.Errorf("allocate: %v", err)
	}
	must(t, f.Truncate(sectorLen))
	n, err = f.WriteAt(make([]byte, 2*sectorLen), sectorLen)
	if n != 2*sectorLen || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	must(t, m.Remove("/data/version-2/a"))
	put(t, m, "b", make([]byte, 3*sectorLen))
}

// TestFileSystemsAlike: both file systems behave alike where the store depends on it.
func TestFileSystemsAlike(t *testing.T) {
	for dir, f := range map[string]FS{filepath.Join(t.TempDir(), "x"): OS(), "/x": NewMem(1)} {
		must(t, f.MkdirAll(filepath.Join(dir, "y")))
		name := filepath.Join(dir, "a")
		for what, err := range map[string]error{
			"open":   second(f.Open(name)),
			"append": second(f.Append(name)),
			"stat":   second(f.Stat(name)),
			"remove": f.Remove(name),
			"rename": f.Rename(name, name+"b"),
			"list":   second(f.ReadDir(name)),
		} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%T: %s: %v", f, what, err)
			}
		}
		file, err := f.Create(name)
		must(t, err)
		_, err = file.WriteAt([]byte("abc"), 10)
		must(t, err)
		must(t, file.Allocate(5000))
		must(t, file.Allocate(100))
		size, err := file.Size()
		b := make([]byte, 6000)
		n, rerr := file.ReadAt(b, 9)
		if err != nil || size != 5000 || n != 4991 || rerr == nil || string(b[:5]) != "\x00abc\x00" {
			t.Errorf("%T: %d bytes, read %d, %v %v", f, size, n, err, rerr)
		}
		must(t, file.Truncate(11))
		must(t, file.Sync())
		must(t, file.Close())
		must(t, f.Rename(name, name+"b"))
		list, err := f.ReadDir(dir)
		must(t, err)
		if want := []FileInfo{{Name: "ab", Size: 11}, {Name: "y", Dir: true, Not: "a directory"}}; !slices.Equal(list, want) {
			t.Errorf("%T: %v, want %v", f, list, want)
		}
		must(t, f.SyncDir(dir))
	}
}

func second[T any](_ T, err error) error { return err }

// TestConcurrentCalls: snapshots, purges and readers work while the log writer writes.
func TestConcurrentCalls(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	var done sync.WaitGroup
	stop := make(chan struct{})
	beside := func(f func() error) {
		done.Add(1)
		go func() {
			defer done.Done()
			for {
				if err := f(); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
	}
	beside(func() error {
		w := newWorld()
		w.last = d.s.Synced()
		if _, err := d.s.WriteSnapshot(w.last, w); err != nil {
			return err
		}
		_, err := d.s.Purge(3)
		return err
	})
	beside(func() error {
		for _, err := range d.s.ReadLog(max(0, d.s.Synced()-3)) {
			if err != nil && !errors.Is(err, ErrNotInLog) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		_, err := d.s.Sizes()
		return err
	})
	for z := wire.Zxid(1); z < 300; z++ {
		must(t, d.s.Append([]*record.Txn{txn(z, 'a')}))
		must(t, d.s.Sync())
		if z%20 == 0 {
			must(t, d.s.Roll())
		}
	}
	close(stop)
	done.Wait()
	must(t, d.s.Close())
}

// TestDirectoriesAreMadeDurable: a directory is made durable before anything is created
// in it. That is necessary even if the directory exists already: the process that created
// it may have been killed before its fsync.
func TestDirectoriesAreMadeDurable(t *testing.T) {
	base := t.TempDir()
	for _, c := range []struct{ there, dir, unsure string }{
		{"", "a/b/c", "a/b/c a/b a ."},
		{"d", "d/e/f", "d/e/f d/e d"},
		{"g/h", "g/h", "g/h"},
	} {
		must(t, os.MkdirAll(filepath.Join(base, c.there), 0o755))
		unsure, found := unsureNames(filepath.Join(base, c.dir))
		var got []string
		for _, name := range unsure {
			rel, err := filepath.Rel(base, name)
			must(t, err)
			got = append(got, filepath.ToSlash(rel))
		}
		if strings.Join(got, " ") != c.unsure || found != unsure[len(unsure)-1] {
			t.Errorf("%s with %q there: unsure %v, found %s", c.dir, c.there, got, found)
		}
		must(t, OS().MkdirAll(filepath.Join(base, c.dir)))
		must(t, OS().MkdirAll(filepath.Join(base, c.dir)))
		if info, err := OS().Stat(filepath.Join(base, c.dir)); err != nil || !info.Dir {
			t.Errorf("%s: %+v, %v", c.dir, info, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o644))
	for _, dir := range []string{"file", "file/below"} {
		if err := OS().MkdirAll(filepath.Join(base, dir)); err == nil {
			t.Errorf("%s was made", dir)
		}
	}
}
