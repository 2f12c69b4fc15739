package embed

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"bellwether/internal/store"
)

// TestRealDiskLosesWhatWasNotFsynced shows that names and content that were fsynced stay after a loss of power,
// and that all other changes are undone, the newest first.
func TestRealDiskLosesWhatWasNotFsynced(t *testing.T) {
	dir := t.TempDir()
	d := newRealDisk()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(f store.File, off int64, text string) {
		t.Helper()
		_, err := f.WriteAt([]byte(text), off)
		must(t, err)
	}
	file := func(name, text string) store.File {
		t.Helper()
		f, err := d.Create(at(name))
		must(t, err)
		write(f, 0, text)
		must(t, f.Sync())
		return f
	}
	kept := file("kept", "0123456789")
	moved, removed, replaced := file("moved", "moved"), file("removed", "removed"), file("replaced", "replaced")
	must(t, d.SyncDir(dir))

	write(kept, 2, "xx") // this write is within the file, the next one goes beyond its end
	write(kept, 8, "yyyy")
	must(t, kept.Truncate(5))
	must(t, kept.Allocate(100))
	never := file("never", "its name was not synced")
	must(t, d.Rename(at("moved"), at("replaced")))
	write(moved, 0, "MOVED")
	must(t, d.Remove(at("removed")))
	again, err := d.Create(at("kept")) // emptied
	must(t, err)
	write(again, 0, "new")

	d.fail()
	if _, err := kept.WriteAt([]byte("x"), 0); !errors.Is(err, store.ErrCrashed) {
		t.Errorf("a write without power: %v", err)
	}
	wants(t, kept.Sync(), store.ErrCrashed)
	wants(t, d.SyncDir(dir), store.ErrCrashed)
	wants(t, d.Remove(at("kept")), store.ErrCrashed)
	_, err = d.Create(at("late"))
	wants(t, err, store.ErrCrashed)
	must(t, d.lose())
	for name, want := range map[string]string{"kept": "0123456789", "moved": "moved", "removed": "removed", "replaced": "replaced"} {
		if got, err := os.ReadFile(at(name)); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := os.Stat(at("never")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that was not synced: %v", err)
	}
	wants(t, kept.Sync(), store.ErrCrashed) // files that were opened before cannot be used
	for _, f := range []store.File{kept, moved, removed, replaced, never, again} {
		must(t, f.Close())
	}
	file("after", "x").Close()
}

// TestRealDiskBoundsItsNotes shows that the notes about changes are bounded: if nothing is fsynced, the oldest
// changes become durable without an fsync.
func TestRealDiskBoundsItsNotes(t *testing.T) {
	for _, length := range []int{8, 64 << 10} {
		d := newRealDisk()
		name := filepath.Join(t.TempDir(), "log")
		f, err := d.Create(name)
		must(t, err)
		last, p := uint64(0), make([]byte, length)
		write := func(bytes int) {
			for range bytes / (length + noteLen) {
				last++
				binary.BigEndian.PutUint64(p, last)
				_, err := f.WriteAt(p, 0)
				must(t, err)
			}
		}
		write(notesMax)
		before := heap()
		write(4 * notesMax)
		if after := heap(); after > before+notesMax {
			t.Errorf("writes of %d bytes: %d bytes in use, then %d", length, before, after)
		}

		d.fail()
		must(t, d.lose())
		got, err := os.ReadFile(name)
		must(t, err)
		if n := binary.BigEndian.Uint64(got); n == 0 || n >= last {
			t.Errorf("writes of %d bytes: of %d the first %d are left", length, last, n)
		}
		must(t, f.Close())
	}
}

// heap returns the number of bytes in use on the heap.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
