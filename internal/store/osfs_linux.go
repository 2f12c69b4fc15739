package store

import (
	"errors"
	"math"
	"os"
	"syscall"
)

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
