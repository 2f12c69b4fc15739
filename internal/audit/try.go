package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Try returns the error that Open would return for a file, and leaves no file behind. The folder
// of the file must exist. Try opens no pipe, because a program that reads it could take the close for the end, and no
// device.
func Try(path string) error {
	info, err := os.Stat(path)
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = tryFolder(path)
	case errors.As(err, &failed):
		err = &fs.PathError{Op: "open", Path: path, Err: failed.Err}
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	case info.Mode().IsRegular():
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return openError(path, err)
	}
	return nil
}

// tryFolder creates a directory in the folder of a file and removes it.
func tryFolder(path string) error {
	made, err := os.MkdirTemp(filepath.Dir(path), "bellwether-check-")
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return &fs.PathError{Op: "open", Path: path, Err: p.Err}
	}
	if err != nil {
		return err
	}
	return os.Remove(made)
}

// openError returns the error for a file that cannot be opened: the key that names the file, the reason, and what
// to do.
func openError(path string, err error) error {
	remedy := "make the file and its folder writable for the server, or name another file"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		remedy = "create the folder " + filepath.Dir(path) + ", or name another file"
	case errors.Is(err, syscall.EISDIR):
		remedy = "name a file, not a directory"
	case errors.Is(err, syscall.ENXIO):
		remedy = "no program reads the named pipe: start that program before the server, or name a file"
	}
	return fmt.Errorf("audit.file: the audit log cannot be written: %w: %s", err, remedy)
}
