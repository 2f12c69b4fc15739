//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// fileID identifies a file among those that exist at the same time.
type fileID struct{ dev, ino uint64 }

// stat describes the file that name leads to. It takes less than half the time of os.Stat, which
// matters because each fsync of the log calls it.
func stat(name string) (FileInfo, error) {
	info, err := statOf(name)
	for err == syscall.EINTR {
		info, err = statOf(name)
	}
	if err != nil {
		return FileInfo{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return info, nil
}

// statWithTimes does what statOf does, with the system call that every Unix has.
func statWithTimes(name string) (FileInfo, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(name, &st); err != nil {
		return FileInfo{}, err
	}
	return infoOf(name, uint32(st.Mode), st.Size, fileID{uint64(st.Dev), uint64(st.Ino)}), nil
}

func infoOf(name string, mode uint32, size int64, id fileID) FileInfo {
	m := fileMode(mode)
	return FileInfo{Name: filepath.Base(name), Size: size, Dir: m.IsDir(), Not: notFile(m), id: id}
}

// fileMode returns the type of a file as package os has it.
func fileMode(mode uint32) fs.FileMode {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return 0
	case syscall.S_IFDIR:
		return fs.ModeDir
	case syscall.S_IFSOCK:
		return fs.ModeSocket
	case syscall.S_IFIFO:
		return fs.ModeNamedPipe
	}
	return fs.ModeDevice
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // the file system does not support fsync of directories, and has nothing to make durable
	}
	return errors.Join(err, d.Close())
}

// lockDir takes an advisory lock on the directory itself. That creates no file, and the
// lock ends with the process. If the file system does not support locks, the directory is
// not locked.
func lockDir(dir string) (io.Closer, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil, errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EBADF):
		return d, nil // EBADF: network file systems lock only files that are open for writing
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = &BusyError{Dir: dir}
	default:
		err = fmt.Errorf("lock %s: %w", dir, err)
	}
	return nil, errors.Join(err, d.Close())
}

// isFull reports whether err means that something is used up that may be free again later: the disk, the quota or the
// file descriptors.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || noDescriptor(err)
}
