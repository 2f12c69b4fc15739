package store

import (
	"io"
	"os"
)

// FS is the part of a file system that a Store needs. [OS] is the real one,
// [Mem] the twin of the tests and the simulator. Missing files are reported
// so that errors.Is(err, fs.ErrNotExist) holds.
type FS interface {
	// MkdirAll makes dir and its parents. Their names are durable after it,
	// also if a process made them before that was killed meanwhile.
	MkdirAll(dir string) error
	// ReadDir lists dir, sorted by name. A symbolic link is listed as what it
	// leads to. What is no file has [FileInfo.Not].
	ReadDir(dir string) ([]FileInfo, error)
	// Stat describes what a name leads to at this moment.
	Stat(name string) (FileInfo, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create makes an empty file for writing; an existing one is emptied.
	Create(name string) (File, error)
	// Append opens an existing file for writing (at any offset).
	Append(name string) (File, error)
	// Rename replaces to, if there is one, in one step.
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes the names in dir durable: created, renamed, removed.
	SyncDir(dir string) error
	// Lock keeps other processes out of dir until it is closed or the process
	// ends. It leaves nothing behind that could prevent a later Lock.
	Lock(dir string) (io.Closer, error)
}

// File is an open file. Offsets are given with each call.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Truncate sets the length; what is added reads as zeros.
	Truncate(size int64) error
	// Allocate makes the file at least size long, if it can with space of its
	// own, so that writing inside needs no more. What is added reads as zeros.
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
	Not  string // what it is instead of a file, such as "a directory"; "" for a file

	id any // its identity, of the file system's own type; set by Stat
}

// SameFile reports whether two results of Stat describe one file or directory,
// whatever its names are. That is certain only while it is held open in
// between: a system may give the identity of a removed file to a new one.
func (i FileInfo) SameFile(other FileInfo) bool {
	a, ok := i.id.(os.FileInfo)
	b, both := other.id.(os.FileInfo)
	if ok && both {
		return os.SameFile(a, b)
	}
	return i.id == other.id
}
