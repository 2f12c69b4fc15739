package store

import (
	"io"
	"path/filepath"
	"strings"
)

// CallObserver observes each call that has to wait for the disk. Begin is called before
// the call; End is called after it, with the value that Begin returned. Calls run on
// several goroutines.
type CallObserver interface {
	Begin(op Op, path string) (call int)
	End(call int)
}

// Observe returns a file system that passes all calls to fs and reports them to o.
func Observe(fs FS, o CallObserver) FS { return &observedFS{fs, o} }

type observedFS struct {
	FS
	o CallObserver
}

// observedFile reports the calls on one open file.
type observedFile struct {
	File
	o    CallObserver
	path string
}

func (f *observedFS) do(op Op, path string, call func() error) error {
	id := f.o.Begin(op, path)
	defer f.o.End(id)
	return call()
}

func (f *observedFS) open(op Op, path string, open func(string) (File, error)) (File, error) {
	id := f.o.Begin(op, path)
	defer f.o.End(id)
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	return &observedFile{file, f.o, path}, nil
}

func (f *observedFS) Stat(name string) (FileInfo, error) {
	id := f.o.Begin(OpStat, name)
	defer f.o.End(id)
	return f.FS.Stat(name)
}

func (f *observedFS) MkdirAll(dir string) error {
	return f.do(OpCreate, dir, func() error { return f.FS.MkdirAll(dir) })
}

func (f *observedFS) ReadDir(dir string) ([]FileInfo, error) {
	id := f.o.Begin(OpRead, dir)
	defer f.o.End(id)
	return f.FS.ReadDir(dir)
}

func (f *observedFS) Open(name string) (File, error)   { return f.open(OpRead, name, f.FS.Open) }
func (f *observedFS) Create(name string) (File, error) { return f.open(OpCreate, name, f.FS.Create) }
func (f *observedFS) Append(name string) (File, error) { return f.open(OpCreate, name, f.FS.Append) }

func (f *observedFS) Rename(from, to string) error {
	return f.do(OpRename, to, func() error { return f.FS.Rename(from, to) })
}

func (f *observedFS) Remove(name string) error {
	return f.do(OpRemove, name, func() error { return f.FS.Remove(name) })
}

func (f *observedFS) SyncDir(dir string) error {
	return f.do(OpSyncDir, dir, func() error { return f.FS.SyncDir(dir) })
}

func (f *observedFS) Lock(dir string) (io.Closer, error) {
	id := f.o.Begin(OpCreate, dir)
	defer f.o.End(id)
	return f.FS.Lock(dir)
}

func (f *observedFile) ReadAt(b []byte, off int64) (int, error) {
	id := f.o.Begin(OpRead, f.path)
	defer f.o.End(id)
	return f.File.ReadAt(b, off)
}

func (f *observedFile) WriteAt(b []byte, off int64) (int, error) {
	id := f.o.Begin(OpWrite, f.path)
	defer f.o.End(id)
	return f.File.WriteAt(b, off)
}

func (f *observedFile) Truncate(size int64) error {
	id := f.o.Begin(OpTruncate, f.path)
	defer f.o.End(id)
	return f.File.Truncate(size)
}

func (f *observedFile) Allocate(size int64) error {
	id := f.o.Begin(OpAllocate, f.path)
	defer f.o.End(id)
	return f.File.Allocate(size)
}

func (f *observedFile) Sync() error {
	id := f.o.Begin(OpSync, f.path)
	defer f.o.End(id)
	return f.File.Sync()
}

// nextData calls nextData of the file, if the file has that method.
func (f *observedFile) nextData(off int64) int64 {
	if h, ok := f.File.(holeFinder); ok {
		return h.nextData(off)
	}
	return off
}

func (f *observedFile) Close() error {
	id := f.o.Begin(OpWrite, f.path)
	defer f.o.End(id)
	return f.File.Close()
}

// Verb says what the call does to the file, for messages.
func (o Op) Verb() string {
	switch o {
	case OpSync, OpSyncDir:
		return "fsync of"
	case OpWrite:
		return "write to"
	case OpTruncate:
		return "truncation of"
	case OpAllocate:
		return "allocation for"
	case OpCreate:
		return "creation of"
	case OpRename:
		return "renaming to"
	case OpRemove:
		return "removal of"
	case OpRead:
		return "read of"
	case OpStat:
		return "lookup of"
	}
	return "call for"
}

// IsSnapshot reports whether a path is that of a snapshot, finished or not.
func IsSnapshot(path string) bool {
	return strings.HasPrefix(strings.TrimPrefix(filepath.Base(path), tempPrefix), snapshotPrefix)
}
