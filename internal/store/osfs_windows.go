package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

func stat(name string) (FileInfo, error) {
	info, err := os.Stat(name)
	if err != nil {
		return FileInfo{}, err
	}
	return FileInfo{Name: info.Name(), Size: info.Size(), Dir: info.IsDir(), Not: notFile(info.Mode()), id: info}, nil
}

// syncDir does nothing, because on Windows names are durable together with their files.
func syncDir(string) error { return nil }

// lockName is a file that is held open without sharing. The system removes it when the
// process ends in any way.
const lockName = "in-use"

func lockDir(dir string) (io.Closer, error) {
	name := filepath.Join(dir, lockName)
	p, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	const deleteOnClose = 0x04000000
	h, err := syscall.CreateFile(p, syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS,
		syscall.FILE_ATTRIBUTE_NORMAL|deleteOnClose, 0)
	const sharingViolation = syscall.Errno(32)
	if errors.Is(err, sharingViolation) {
		return nil, &BusyError{Dir: dir}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return os.NewFile(uintptr(h), name), nil
}

// isFull reports whether err means that the disk is used up.
func isFull(err error) bool {
	const handleDiskFull, diskFull = syscall.Errno(39), syscall.Errno(112)
	return errors.Is(err, handleDiskFull) || errors.Is(err, diskFull) || errors.Is(err, syscall.ENOSPC)
}
