package store

import (
	"io"
	"os"
)

// FS is the part of a file system that a Store needs. [OS] is the real file system; [Mem]
// is the one for tests and the simulator. If a file is missing, the error satisfies
// errors.Is(err, fs.ErrNotExist).
type FS interface {
	// MkdirAll creates dir and its parents. When it returns their names are durable, even
	// those that a killed process had created before.
	MkdirAll(dir string) error
	// ReadDir lists dir, sorted by name. A symbolic link is listed as the file that it
	// leads to. For an entry that is not a file, [FileInfo.Not] is set.
	ReadDir(dir string) ([]FileInfo, error)
	// Stat describes the file that name leads to now.
	Stat(name string) (FileInfo, error)
	// Resolve returns the path of the file that name leads to: name itself, unless it is a
	// symbolic link.
	Resolve(name string) (string, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create makes an empty file for writing; it empties an existing one.
	Create(name string) (File, error)
	// Append opens an existing file for writing (at any offset).
	Append(name string) (File, error)
	// Rename renames from to to in one step. An existing file named to is replaced.
	Rename(from, to string) error
	Remove(name string) error
	// CopyMode gives to the permissions of from, so that nobody else can read a copy.
	CopyMode(from, to string) error
	// SyncDir makes all changes of names in dir durable: names that were created, renamed
	// or removed.
	SyncDir(dir string) error
	// Lock keeps other processes out of dir until the returned Closer is closed or the
	// process ends. It leaves nothing behind that could prevent a later Lock.
	Lock(dir string) (io.Closer, error)
}

// File is an open file. It has no position: ReadAt and WriteAt take an offset.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Truncate sets the length; added bytes read as zeros.
	Truncate(size int64) error
	// Allocate makes the file at least size long; added bytes read as zeros. If the file
	// system can reserve space, it does, so that writing there later cannot fail for lack
	// of space.
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
	Not  string // what the entry is if it is not a file, such as "a directory"; "" for a file

	id any // the file's identity, of a type that the file system chooses; set by Stat
}

// SameFile reports whether two results of Stat describe the same file or directory,
// whatever its names are. The answer is certain only if the file was held open between
// the two calls, because a system may reuse the identity of a removed file.
func (i FileInfo) SameFile(other FileInfo) bool {
	a, ok := i.id.(os.FileInfo)
	b, both := other.id.(os.FileInfo)
	if ok && both {
		return os.SameFile(a, b)
	}
	return i.id == other.id
}
