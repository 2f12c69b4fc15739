package store

import (
	"errors"
	"fmt"
	"io/fs"

	"bellwether/wire"
)

// place is a file or directory that the store holds open, with the name under which the
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
// the files that the store has open. If not, somebody has removed, renamed or replaced
// them while the server runs, and no start would find the data written from now on. Then
// the store is poisoned with a [*RemovedError]. SetCurrentEpoch and SetAcceptedEpoch make
// this check before they return, and Append before it begins a log. Sync checks the log,
// and the directory that does not contain the log. Only the goroutine that appends may
// call InPlace.
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

// check compares what the name leads to with what the store has open. If a parent
// directory cannot be searched for lack of permission, that proves nothing, because the
// history is still there.
func (p place) check(fsys FS, synced wire.Zxid) error {
	info, err := fsys.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return &RemovedError{p.path, "is gone", synced, err}
	case !info.SameFile(p.info):
		return &RemovedError{p.path, "is not the one that was opened", synced, nil}
	}
	return nil
}

// RemovedError says that a directory or the current log was removed, renamed or replaced
// while the store used it.
type RemovedError struct {
	Path   string
	What   string
	Synced wire.Zxid // the server may have acknowledged transactions up to here
	Err    error     // the file system's error; nil: the name leads to something else
}

func (e *RemovedError) Error() string {
	text := fmt.Sprintf("%s %s: it was removed, renamed or replaced while the server was running, "+
		"together with transactions that were acknowledged, up to %v", e.Path, e.What, e.Synced)
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text + "; put it back, or restore it from a copy or from the other members, before the next start"
}

func (e *RemovedError) Unwrap() error { return e.Err }
