package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"bellwether/wire"
)

// ahead holds the epochs whose files are already written, durably and under temporary
// names, so that saving such an epoch takes a rename and one fsync. Nearly always it is
// the epoch after the last one that was saved.
type ahead struct {
	current, accepted wire.Epoch // 0: not written
}

// WriteEpochsAhead writes the files of the epoch after the last saved one, so that saving
// that epoch takes less time. The caller calls it when it has nothing else to do. If it
// fails, saving the epoch takes the usual time, and nothing else changes.
func (s *Store) WriteEpochsAhead() error {
	if err := s.usable(); err != nil {
		return err
	}
	next := max(s.epochs.Current, s.epochs.Accepted) + 1
	if err := s.writeAhead(acceptedEpochName, &s.ahead.accepted, next); err != nil {
		return err
	}
	return s.writeAhead(currentEpochName, &s.ahead.current, next)
}

func (s *Store) writeAhead(name string, written *wire.Epoch, next wire.Epoch) error {
	if *written == next {
		return nil
	}
	*written = 0
	path := s.aheadPath(name)
	if err := writeSynced(s.fs, path, strconv.FormatInt(int64(next), 10)); err != nil {
		return errors.Join(err, s.fs.Remove(path))
	}
	*written = next
	return nil
}

// removeAhead removes files that were written ahead and never used.
func (s *Store) removeAhead() error {
	return errors.Join(s.forgetAhead(acceptedEpochName, &s.ahead.accepted), s.forgetAhead(currentEpochName, &s.ahead.current))
}

func (s *Store) forgetAhead(name string, written *wire.Epoch) error {
	if *written == 0 {
		return nil
	}
	*written = 0
	if err := s.fs.Remove(s.aheadPath(name)); !errors.Is(err, fs.ErrNotExist) { // a file that another process has removed is no error
		return err
	}
	return nil
}

// aheadPath returns a temporary name, so that the next Open removes the file.
func (s *Store) aheadPath(name string) string { return filepath.Join(s.snapDir, tempPrefix+name) }
