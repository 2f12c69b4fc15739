package store

import (
	"errors"
	"fmt"
	"io/fs"

	"bellwether/wire"
)

// place is a file or directory that the store holds open, and the name under which the
// next start looks for it.
type place struct {
	path string
	info FileInfo
}

func placesOf(fs FS, paths []string) ([]place, error) {
	places := make([]place, 0, len(paths))
	for _, path := range paths {
		info, err := fs.Stat(path)
		if err != nil {
			return nil, err
		}
		places = append(places, place{path, info})
	}
	return places, nil
}

// InPlace checks that the names of the directories and of the current log still lead to
// what the store has open. If not, somebody has removed, renamed or replaced them while
// the server runs, so that no start will find what is written. Then the store is poisoned
// with a [*RemovedError]. SetCurrentEpoch and SetAcceptedEpoch check this before they
// return, and Append before it begins a log. Sync checks the log and the directory that
// the log is not in. Only the goroutine that appends may call it.
func (s *Store) InPlace() error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.inPlace(); err != nil {
		return s.poison(err)
	}
	return nil
}

func (s *Store) inPlace() error {
	if err := s.dirsInPlace(); err != nil || s.log.f == nil {
		return err
	}
	return place{s.log.path, s.log.found}.check(s.fs, s.Synced())
}

// logInPlace is the part of InPlace that Sync needs. While the name of the log leads to
// the log, the log is in the directory that the next start reads, so that directory need
// not be checked.
func (s *Store) logInPlace() error {
	for i := range s.places {
		if s.places[i].path == s.logDir {
			continue
		}
		if err := s.places[i].check(s.fs, s.Synced()); err != nil {
			return err
		}
	}
	return place{s.log.path, s.log.found}.check(s.fs, s.Synced())
}

// dirsInPlace is the part of InPlace that WriteSnapshot needs.
func (s *Store) dirsInPlace() error {
	for i := range s.places {
		if err := s.places[i].check(s.fs, s.Synced()); err != nil {
			return err
		}
	}
	return nil
}

// check compares what the name leads to. An error of permission in a parent directory
// proves nothing, because the history is still there.
func (p place) check(fsys FS, synced wire.Zxid) error {
	info, err := fsys.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return &RemovedError{p.path, "is gone", synced, err}
	case !info.SameFile(p.info):
		return &RemovedError{p.path, "is another one than before", synced, nil}
	}
	return nil
}

// RemovedError says that a directory or the current log was removed, renamed or replaced
// while the store used it.
type RemovedError struct {
	Path   string
	What   string
	Synced wire.Zxid // clients may have got answers up to here
	Err    error     // the file system's error; nil: the name leads to something else
}

func (e *RemovedError) Error() string {
	text := fmt.Sprintf("%s %s: it was removed, renamed or replaced beside the running server, "+
		"and with it what was acknowledged up to %v", e.Path, e.What, e.Synced)
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text + "; put it back, or restore it from a copy or from the other members, before the next start"
}

func (e *RemovedError) Unwrap() error { return e.Err }
