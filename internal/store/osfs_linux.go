package store

import (
	"errors"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// statOf describes the file that name leads to without asking for its times. Since Linux 6.13 a question for the time of the last
// change has the next write note a new one, for which an fsync on some file systems (ext4 without a journal) writes the inode, too.
func statOf(name string) (FileInfo, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_SIZE, &st)
	if err == syscall.ENOSYS || err == syscall.EPERM { // before Linux 4.11, and in some containers
		return statWithTimes(name)
	}
	if err != nil {
		return FileInfo{}, err
	}
	return infoOf(name, uint32(st.Mode), int64(st.Size), fileID{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}), nil
}

// allocate reserves space, so that a full disk shows here and not in the middle of a
// batch. If the file system cannot do that, the file gets a hole.
func allocate(f *os.File, size int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EINVAL):
			return grow(f, size)
		case err != nil:
			return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
		}
		return nil
	}
}

// dataSync makes content and length durable, but not the times.
func dataSync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
		return nil
	}
}

// nextData asks the file system where the hole that begins at off ends.
func (f osFile) nextData(off int64) int64 {
	const seekData = 3
	at, err := syscall.Seek(int(f.Fd()), off, seekData)
	if errors.Is(err, syscall.ENXIO) {
		return math.MaxInt64
	}
	if err != nil || at < off {
		return off
	}
	return at
}
