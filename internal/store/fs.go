package store

import (
	"io"
	"os"
)

// FS is the part of a file system that a Store needs. [OS] is the real one; [Mem] is the
// one of tests and of the simulator. If a file is missing errors.Is(err, fs.ErrNotExist)
// holds.
type FS interface {
	// MkdirAll makes dir and its parents. Their names are durable when it returns, even
	// if a process that was killed in between had made them.
	MkdirAll(dir string) error
	// ReadDir lists dir, sorted by name. A symbolic link is listed as what it leads to.
	// For an entry that is no file [FileInfo.Not] is set.
	ReadDir(dir string) ([]FileInfo, error)
	// Stat describes what a name leads to now.
	Stat(name string) (FileInfo, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create makes an empty file for writing; it empties an existing one.
	Create(name string) (File, error)
	// Append opens an existing file for writing (at any offset).
	Append(name string) (File, error)
	// Rename replaces to, if it exists, in one step.
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes the names in dir durable: created, renamed, removed.
	SyncDir(dir string) error
	// Lock keeps other processes out of dir until it is closed or the process ends. It
	// leaves nothing behind that could prevent a later Lock.
	Lock(dir string) (io.Closer, error)
}

// File is an open file. Each call gives the offset.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Truncate sets the length; added bytes read as zeros.
	Truncate(size int64) error
	// Allocate makes the file at least size long. If the file system can, it reserves the
	// space, so that writing there needs no more. Added bytes read as zeros.
	Allocate(size int64) error
	// Sync makes the content and the length durable.
	Sync() error
	Size() (int64, error)
}

// FileInfo describes a file or a directory.
type FileInfo struct {
	Name string // the last element
	Size int64
	Dir  bool
	Not  string // what it is if it is no file, such as "a directory"; "" for a file

	id any // its identity, of a type of the file system; set by Stat
}

// SameFile reports whether two results of Stat describe the same file or directory,
// whatever its names are. That is certain only if it was held open between the two calls,
// because a system may reuse the identity of a removed file.
func (i FileInfo) SameFile(other FileInfo) bool {
	a, ok := i.id.(os.FileInfo)
	b, both := other.id.(os.FileInfo)
	if ok && both {
		return os.SameFile(a, b)
	}
	return i.id == other.id
}
