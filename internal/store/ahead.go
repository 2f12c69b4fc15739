package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"bellwether/wire"
)

// ahead holds the epochs for which a file is already written, durably and under a
// temporary name, so that saving the epoch takes a rename and one fsync. Nearly always
// that is the epoch after the last one.
type ahead struct {
	current, accepted wire.Epoch // 0: not written
}

// WriteEpochsAhead makes saving an epoch shorter, if it is the one after the last saved.
// The caller uses it when there is nothing else to do. An error has no other effect than
// that.
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

// removeAhead removes files that were written ahead and not used.
func (s *Store) removeAhead() error {
	return errors.Join(s.forgetAhead(acceptedEpochName, &s.ahead.accepted), s.forgetAhead(currentEpochName, &s.ahead.current))
}

func (s *Store) forgetAhead(name string, written *wire.Epoch) error {
	if *written == 0 {
		return nil
	}
	*written = 0
	if err := s.fs.Remove(s.aheadPath(name)); !errors.Is(err, fs.ErrNotExist) { // another process has removed it
		return err
	}
	return nil
}

// aheadPath returns a temporary name, so that the next Open removes the file.
func (s *Store) aheadPath(name string) string { return filepath.Join(s.snapDir, tempPrefix+name) }
