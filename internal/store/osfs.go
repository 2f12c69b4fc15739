package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// OS is the operating system's file system.
func OS() FS { return osFS{} }

type osFS struct{}

// filePerm lets the owner write and others read, as ZooKeeper's files do.
const filePerm = 0o644

func (osFS) MkdirAll(dir string) error {
	unsure, found := unsureNames(dir)
	// Create them from the top, each durable before the next. Then of the directories
	// that exist, at most the lowest can be not durable.
	for _, d := range slices.Backward(unsure) {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
		err := syncDir(filepath.Dir(d))
		if d == found && errors.Is(err, fs.ErrPermission) {
			continue // this server may not read the parent, so another user made the directory
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unsureNames returns the directories of a path that a power failure may remove: those that do
// not exist yet, and the lowest one that exists, which a killed process may have made without an
// fsync.
func unsureNames(dir string) (unsure []string, found string) {
	for d := filepath.Clean(dir); d != filepath.Dir(d) && d != "."; d = filepath.Dir(d) {
		unsure = append(unsure, d)
		if _, err := os.Stat(d); err == nil {
			return unsure, d
		}
	}
	return unsure, ""
}

func (osFS) ReadDir(dir string) ([]FileInfo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := make([]FileInfo, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if os.IsNotExist(err) {
			continue // another process has removed it
		}
		if err != nil {
			return nil, err
		}
		out = append(out, entry(dir, info))
	}
	return out, nil
}

// entry describes an entry of dir. If the entry is a link, it describes the target.
func entry(dir string, info os.FileInfo) FileInfo {
	e := FileInfo{Name: info.Name()}
	if info.Mode()&os.ModeSymlink != 0 {
		if to, err := os.Stat(filepath.Join(dir, e.Name)); err == nil {
			info = to
		}
	}
	if e.Dir, e.Not = info.IsDir(), notFile(info.Mode()); e.Not == "" {
		e.Size = info.Size()
	}
	return e
}

// notFile describes what an entry is if it is not a file; "" for a file.
func notFile(mode os.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeSymlink != 0:
		return "a symbolic link that leads to nothing"
	case mode&os.ModeSocket != 0:
		return "a socket"
	case mode&os.ModeNamedPipe != 0:
		return "a named pipe"
	}
	return "a device"
}

func (osFS) Stat(name string) (FileInfo, error)  { return stat(name) }
func (osFS) Resolve(name string) (string, error) { return filepath.EvalSymlinks(name) }
func (osFS) Open(name string) (File, error)      { return osOpen(name, os.O_RDONLY) }
func (osFS) Create(name string) (File, error) {
	return osOpen(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}
func (osFS) Append(name string) (File, error)   { return osOpen(name, os.O_RDWR) }
func (osFS) Rename(from, to string) error       { return os.Rename(from, to) }
func (osFS) Remove(name string) error           { return os.Remove(name) }
func (osFS) SyncDir(dir string) error           { return syncDir(dir) }
func (osFS) Lock(dir string) (io.Closer, error) { return lockDir(dir) }

func (osFS) CopyMode(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return os.Chmod(to, info.Mode().Perm())
}

func osOpen(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, filePerm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Allocate(size int64) error { return allocate(f.File, size) }
func (f osFile) Sync() error               { return dataSync(f.File) }

// grow makes f at least size long with a hole.
func grow(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return f.Truncate(size)
}
