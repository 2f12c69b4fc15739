//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // a file system without it has nothing to make durable
	}
	return errors.Join(err, d.Close())
}

// lockDir takes an advisory lock on the directory itself: no file is made,
// and the lock goes with the process. File systems without locks go unlocked.
func lockDir(dir string) (io.Closer, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil, errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EBADF):
		return d, nil // EBADF: network file systems lock only what is open for writing
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = &BusyError{Dir: dir}
	default:
		err = fmt.Errorf("lock %s: %w", dir, err)
	}
	return nil, errors.Join(err, d.Close())
}

// isFull reports whether err means that the disk or the quota is used up.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
