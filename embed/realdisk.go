package embed

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"bellwether/internal/store"
)

// realDisk is the operating system's file system. For each change that was not fsynced, it keeps a note that
// says how to undo the change; a loss of power undoes these changes. If the notes take more than notesMax bytes,
// it drops the oldest ones. Their changes are then durable, because an operating system also writes changes to
// the disk by itself after some time.
type realDisk struct {
	store.FS

	mu    sync.Mutex // held while files and notes are changed
	down  bool
	hangs bool
	// answers uses mu. It signals that the disk answers again, or that a waiting call must fail.
	answers sync.Cond
	life    int
	files   map[string]*inode
	notes   []note // the oldest note first
	size    int    // size of all notes, in bytes
}

// notesMax is the largest total size of the notes in bytes. noteLen is the approximate size of a note without
// the old content that it keeps.
const (
	notesMax = 4 << 20
	noteLen  = 128
)

// inode identifies a file, also after it was renamed.
type inode struct{ name string }

// note is a change that is not durable yet: of the content of a file, or of a name in a directory.
type note struct {
	file *inode // the changed file; nil: a name was changed
	dir  string // the directory of the changed name
	size int
	undo func() error
}

func newRealDisk() *realDisk {
	d := &realDisk{FS: store.OS(), files: map[string]*inode{}}
	d.answers.L = &d.mu
	return d
}

func (d *realDisk) fs() store.FS { return d }

func (d *realDisk) fail() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = true
	d.answers.Broadcast()
}

func (d *realDisk) hang(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hangs = on
	d.answers.Broadcast()
}

func (d *realDisk) abandon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life++
	d.answers.Broadcast()
}

func (d *realDisk) lose() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, n := range slices.Backward(d.notes) {
		errs = append(errs, n.undo())
	}
	d.notes, d.size, d.down = nil, 0, false
	d.life++
	return errors.Join(errs...)
}

func (d *realDisk) keep() error { return nil }

// inode returns the inode of a name. The caller holds d.mu.
func (d *realDisk) inode(name string) *inode {
	name = filepath.Clean(name)
	if d.files[name] == nil {
		d.files[name] = &inode{name}
	}
	return d.files[name]
}

// note records how to undo a change of a file's content. before is the old content. The caller holds d.mu.
func (d *realDisk) note(file *inode, before []byte, undo func() error) {
	d.remember(note{file: file, size: noteLen + len(before), undo: undo})
}

func (d *realDisk) noteName(name string, before []byte, undo func() error) {
	d.remember(note{dir: filepath.Dir(name), size: noteLen + len(before), undo: undo})
}

func (d *realDisk) remember(n note) {
	d.notes = append(d.notes, n)
	d.size += n.size
	for d.size > notesMax {
		d.size -= d.notes[0].size
		d.notes[0] = note{} // the array keeps its elements, so clear this one to free its memory
		d.notes = d.notes[1:]
	}
}

// settle removes the notes of changes that are now durable. The caller holds d.mu.
func (d *realDisk) settle(durable func(n note) bool) {
	d.notes = slices.DeleteFunc(d.notes, func(n note) bool {
		if !durable(n) {
			return false
		}
		d.size -= n.size
		return true
	})
}

// enter locks the disk for a change. It waits while the disk hangs, and returns an error if the power has
// failed.
func (d *realDisk) enter(life int) error {
	d.mu.Lock()
	for d.hangs && !d.down && life == d.life {
		d.answers.Wait()
	}
	if d.down || life != d.life {
		d.mu.Unlock()
		return store.ErrCrashed
	}
	return nil
}

func (d *realDisk) now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.life
}

// content returns the content of a file, or nil if there is no such file.
func (d *realDisk) content(name string) []byte {
	f, err := d.FS.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	size, _ := f.Size()
	b := make([]byte, size)
	n, _ := f.ReadAt(b, 0)
	return b[:n]
}

// restore writes the old content of a file back.
func (d *realDisk) restore(name string, content []byte) error {
	f, err := d.FS.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	return errors.Join(err, f.Close())
}

// Open opens a file for reading.
func (d *realDisk) Open(name string) (store.File, error) { return d.FS.Open(name) }

// Append opens a file for writing.
func (d *realDisk) Append(name string) (store.File, error) {
	if err := d.enter(d.now()); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	f, err := d.FS.Append(name)
	return d.wrap(f, name, err)
}

// Create creates a file, or empties an existing one.
func (d *realDisk) Create(name string) (store.File, error) {
	if err := d.enter(d.now()); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if _, err := d.FS.Stat(name); err == nil {
		before, ino := d.content(name), d.inode(name)
		d.note(ino, before, func() error { return d.restore(ino.name, before) })
	} else {
		d.noteName(name, nil, func() error { return d.FS.Remove(name) })
	}
	f, err := d.FS.Create(name)
	return d.wrap(f, name, err)
}

// wrap returns a file that records its changes. The caller holds d.mu.
func (d *realDisk) wrap(f store.File, name string, err error) (store.File, error) {
	if err != nil {
		return nil, err
	}
	seen, err := d.FS.Open(name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &realFile{File: f, d: d, seen: seen, ino: d.inode(name), life: d.life}, nil
}

// Rename gives a file another name.
func (d *realDisk) Rename(from, to string) error {
	if err := d.enter(d.now()); err != nil {
		return err
	}
	defer d.mu.Unlock()
	from, to = filepath.Clean(from), filepath.Clean(to)
	_, missing := d.FS.Stat(to)
	before, replaced, moved := d.content(to), d.files[to], d.inode(from)
	if err := d.FS.Rename(from, to); err != nil {
		return err
	}
	delete(d.files, from)
	d.files[to], moved.name = moved, to
	d.noteName(to, before, func() error {
		err := d.FS.Rename(to, from)
		d.files[from], moved.name = moved, from
		delete(d.files, to)
		if missing == nil {
			d.files[to] = replaced
			err = errors.Join(err, d.restore(to, before))
		}
		return err
	})
	return nil
}

// Remove removes a name.
func (d *realDisk) Remove(name string) error {
	if err := d.enter(d.now()); err != nil {
		return err
	}
	defer d.mu.Unlock()
	name = filepath.Clean(name)
	before, gone := d.content(name), d.files[name]
	if err := d.FS.Remove(name); err != nil {
		return err
	}
	delete(d.files, name)
	d.noteName(name, before, func() error {
		if gone != nil {
			d.files[name] = gone
		}
		return d.restore(name, before)
	})
	return nil
}

// SyncDir makes the names in dir durable.
func (d *realDisk) SyncDir(dir string) error {
	if err := d.enter(d.now()); err != nil {
		return err
	}
	defer d.mu.Unlock()
	err := d.FS.SyncDir(dir)
	if err == nil {
		dir = filepath.Clean(dir)
		d.settle(func(n note) bool { return n.file == nil && n.dir == dir })
	}
	return err
}

// realFile is a file open for writing.
type realFile struct {
	store.File
	d    *realDisk
	seen store.File // the same file, open for reading
	ino  *inode
	life int
}

// change carries out do, which changes n bytes at off, and records the bytes that were there before.
func (f *realFile) change(off, n int64, do func() error) error {
	if err := f.d.enter(f.life); err != nil {
		return err
	}
	defer f.d.mu.Unlock()
	size, err := f.seen.Size()
	if err != nil {
		return err
	}
	old := make([]byte, max(min(n, size-off), 0))
	if _, err := f.seen.ReadAt(old, off); err != nil && err != io.EOF {
		return err
	}
	f.d.note(f.ino, old, func() error {
		w, err := f.d.FS.Append(f.ino.name)
		if err != nil {
			return err
		}
		_, err = w.WriteAt(old, off)
		return errors.Join(err, w.Truncate(size), w.Close())
	})
	return do()
}

func (f *realFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.change(off, int64(len(p)), func() error {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

func (f *realFile) Truncate(size int64) error {
	now, err := f.Size()
	if err != nil {
		return err
	}
	return f.change(min(size, now), max(now-size, 0), func() error { return f.File.Truncate(size) })
}

func (f *realFile) Allocate(size int64) error {
	return f.change(size, 0, func() error { return f.File.Allocate(size) })
}

// Sync makes the content durable. Other changes wait meanwhile.
func (f *realFile) Sync() error {
	if err := f.d.enter(f.life); err != nil {
		return err
	}
	defer f.d.mu.Unlock()
	err := f.File.Sync()
	if err == nil {
		f.d.settle(func(n note) bool { return n.file == f.ino })
	}
	return err
}

func (f *realFile) Close() error { return errors.Join(f.File.Close(), f.seen.Close()) }
