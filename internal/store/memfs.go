package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Mem is a file system in memory. At [Mem.Crash] it loses everything that was not
// fsynced: content by sectors of 512 bytes, lengths, and names (created, renamed,
// removed) of directories without SyncDir. A truncation that was not fsynced may be lost too,
// and what it removed may come back. A seed decides what is lost, so that a run can
// be repeated. It is safe for concurrent use.
type Mem struct {
	mu    sync.Mutex
	rng   *rand.Rand
	dirs  map[string]*memDir
	locks map[string]bool
	life  int  // incremented by each crash: handles that were opened before are invalid
	down  bool // a planned crash has happened
	lost  Losses

	faults  faults
	lies    func(path string) bool // fsyncs of these files report success and do nothing; nil: of none
	hangs   bool
	waiting int       // calls that wait for a disk that hangs
	answers sync.Cond // on mu: the disk does not hang any more
}

// NewMem returns an empty file system; seed decides what its crashes keep.
func NewMem(seed uint64) *Mem {
	m := &Mem{
		rng:    rand.New(rand.NewPCG(seed, 0)),
		dirs:   map[string]*memDir{},
		locks:  map[string]bool{},
		faults: faults{space: -1},
	}
	m.answers.L = &m.mu
	return m
}

// memDir maps names to files, as programs see them and as they are on the disk, and holds
// the changes between the two. Directories themselves are always durable.
type memDir struct {
	live, disk map[string]*memInode
	pending    []map[string]*memInode // each change is lost as a whole or not at all; a nil value removes a name
}

// change records a change of names that is not durable yet.
func (d *memDir) change(names map[string]*memInode) {
	d.pending = append(d.pending, names)
	applyNames(d.live, names)
}

func applyNames(m map[string]*memInode, names map[string]*memInode) {
	for name, ino := range names {
		if ino == nil {
			delete(m, name)
		} else {
			m[name] = ino
		}
	}
}

func (m *Mem) dir(name string) (*memDir, string, error) {
	name = filepath.Clean(name)
	d := m.dirs[filepath.Dir(name)]
	if d == nil {
		return nil, "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return d, filepath.Base(name), nil
}

// find returns the file called name.
func (m *Mem) find(name string) (*memInode, error) {
	d, base, err := m.dir(name)
	if err == nil && d.live[base] == nil {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	return d.live[base], nil
}

// MkdirAll makes dir and its parents, durably.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return ErrCrashed
	}
	for d := filepath.Clean(dir); m.dirs[d] == nil; d = filepath.Dir(d) {
		m.dirs[d] = &memDir{live: map[string]*memInode{}, disk: map[string]*memInode{}}
	}
	return nil
}

// RemoveAll removes a directory and everything in it, durably. It simulates another
// process that does so while the server runs. Open files stay open.
func (m *Mem) RemoveAll(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.dirs, func(name string, _ *memDir) bool { return within(name, filepath.Clean(dir)) })
}

// RenameDir renames a directory and everything in it, durably.
func (m *Mem) RenameDir(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to = filepath.Clean(from), filepath.Clean(to)
	for name, d := range maps.Clone(m.dirs) {
		if within(name, from) {
			delete(m.dirs, name)
			m.dirs[to+strings.TrimPrefix(name, from)] = d
		}
	}
}

// within reports whether name is dir or lies in it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+string(filepath.Separator))
}

// ReadDir lists dir.
func (m *Mem) ReadDir(dir string) ([]FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dirs[filepath.Clean(dir)]
	if m.down {
		return nil, ErrCrashed
	}
	if d == nil {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	var out []FileInfo
	for name, ino := range d.live {
		out = append(out, FileInfo{Name: name, Size: ino.live.size})
	}
	for name := range m.dirs {
		if filepath.Dir(name) == filepath.Clean(dir) && name != filepath.Clean(dir) {
			out = append(out, FileInfo{Name: filepath.Base(name), Dir: true, Not: "a directory"})
		}
	}
	slices.SortFunc(out, func(a, b FileInfo) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Stat describes a file or a directory.
func (m *Mem) Stat(name string) (FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return FileInfo{}, ErrCrashed
	}
	if d := m.dirs[filepath.Clean(name)]; d != nil {
		return FileInfo{Name: filepath.Base(name), Dir: true, Not: "a directory", id: d}, nil
	}
	ino, err := m.find(name)
	if err != nil {
		return FileInfo{}, err
	}
	return FileInfo{Name: filepath.Base(name), Size: ino.live.size, id: ino}, nil
}

// Open opens for reading.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// Append opens for writing.
func (m *Mem) Append(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, writable bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, ErrCrashed
	}
	ino, err := m.find(name)
	if err != nil {
		return nil, err
	}
	return &memFile{m: m, ino: ino, name: name, life: m.life, writable: writable}, nil
}

// Create makes or empties a file.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.dir(name)
	if err != nil {
		return nil, err
	}
	crash, err := m.step(OpCreate)
	if err != nil {
		return nil, err
	}
	ino := d.live[base]
	if ino != nil {
		m.resize(ino, 0)
	} else {
		ino = newMemInode()
		d.change(map[string]*memInode{base: ino})
	}
	return &memFile{m: m, ino: ino, name: name, life: m.life, writable: true}, crash
}

// CopyMode does nothing: the files have no permissions.
func (m *Mem) CopyMode(string, string) error { return nil }

// Resolve returns name: there are no symbolic links.
func (m *Mem) Resolve(name string) (string, error) { return name, nil }

// Rename renames a file within its directory.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if filepath.Dir(filepath.Clean(from)) != filepath.Dir(filepath.Clean(to)) {
		return fmt.Errorf("rename %s to %s: the two are in different directories", from, to)
	}
	ino, err := m.find(from)
	if err != nil {
		return err
	}
	crash, err := m.step(OpRename)
	if err != nil {
		return err
	}
	d, base, _ := m.dir(from)
	d.change(map[string]*memInode{base: nil, filepath.Base(to): ino})
	return crash
}

// Remove removes a name.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ino, err := m.find(name)
	if err != nil {
		return err
	}
	crash, err := m.step(OpRemove)
	if err != nil {
		return err
	}
	d, base, _ := m.dir(name)
	d.change(map[string]*memInode{base: nil})
	m.free(int64(len(ino.live.sectors)))
	return crash
}

// SyncDir makes the names of dir durable.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.dirs[filepath.Clean(dir)]
	if d == nil {
		return &fs.PathError{Op: "sync", Path: dir, Err: fs.ErrNotExist}
	}
	if crash, err := m.step(OpSyncDir); err != nil || crash != nil {
		return errors.Join(err, crash)
	}
	d.settle(func(name string) bool { return m.liesAbout(filepath.Join(dir, name)) })
	return nil
}

// Lock takes the lock of dir; a crash releases it.
func (m *Mem) Lock(dir string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks[dir] {
		return nil, &BusyError{Dir: dir}
	}
	m.locks[dir] = true
	return &memLock{m: m, dir: dir, life: m.life}, nil
}

type memLock struct {
	m    *Mem
	dir  string
	life int
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.life == l.m.life {
		delete(l.m.locks, l.dir)
	}
	return nil
}
