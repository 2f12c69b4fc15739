package store

import (
	"errors"
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
	var err error
	if s.ahead.accepted != 0 {
		err = s.fs.Remove(s.aheadPath(acceptedEpochName))
	}
	if s.ahead.current != 0 {
		err = errors.Join(err, s.fs.Remove(s.aheadPath(currentEpochName)))
	}
	s.ahead = ahead{}
	return err
}

// aheadPath is of a kind that the next Open removes.
func (s *Store) aheadPath(name string) string { return filepath.Join(s.snapDir, tempPrefix+name) }
