package embed

import (
	"sync/atomic"

	"bellwether/internal/store"
)

// processFS is the file system that one process uses. A goroutine of a process that has ended can change nothing
// any more, even if it still waits for the disk.
type processFS struct {
	store.FS
	ended *atomic.Bool
}

func (f processFS) alive() error {
	if f.ended.Load() {
		return store.ErrCrashed
	}
	return nil
}

func (f processFS) Create(name string) (store.File, error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	return f.FS.Create(name)
}

func (f processFS) Append(name string) (store.File, error) {
	if err := f.alive(); err != nil {
		return nil, err
	}
	return f.FS.Append(name)
}

func (f processFS) Rename(from, to string) error {
	if err := f.alive(); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f processFS) Remove(name string) error {
	if err := f.alive(); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f processFS) SyncDir(dir string) error {
	if err := f.alive(); err != nil {
		return err
	}
	return f.FS.SyncDir(dir)
}
