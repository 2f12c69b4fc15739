package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"bellwether/wire"
)

// ahead is the number that the next file of an epoch is written with already,
// durably and under a name of its own, so that saving it takes a rename and one
// sync. Which it will be is known nearly always: the next.
type ahead struct {
	current, accepted wire.Epoch // 0: not written
}

// WriteEpochsAhead makes the saving of the next epoch short, if that is the one
// after the last saved. It is for when there is nothing else to do, and an
// error costs nothing but that.
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

// removeAhead leaves nothing behind that was written in vain.
func (s *Store) removeAhead() error {
	return errors.Join(s.forgetAhead(acceptedEpochName, &s.ahead.accepted), s.forgetAhead(currentEpochName, &s.ahead.current))
}

func (s *Store) forgetAhead(name string, written *wire.Epoch) error {
	if *written == 0 {
		return nil
	}
	*written = 0
	if err := s.fs.Remove(s.aheadPath(name)); !errors.Is(err, fs.ErrNotExist) { // taken away by somebody
		return err
	}
	return nil
}

// aheadPath is of a kind that the next Open removes.
func (s *Store) aheadPath(name string) string { return filepath.Join(s.snapDir, tempPrefix+name) }
