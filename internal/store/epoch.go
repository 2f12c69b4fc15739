package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"bellwether/wire"
)

// Names of the epoch files. Each contains one decimal number and is in the directory of
// the snapshots. It is replaced as a whole, through a file with .tmp appended to its
// name.
const (
	currentEpochName  = "currentEpoch"
	acceptedEpochName = "acceptedEpoch"
)

// Epochs are the two durable promises of a member.
type Epochs struct {
	Current  wire.Epoch // the epoch of the leader whose history was adopted
	Accepted wire.Epoch // no leader of an earlier epoch is followed
}

// Epochs reads the epoch files. If there are none yet, it derives the epochs from the
// last zxid. The caller must have called Load. A standalone server has no epoch files and
// does not call Epochs. If the epochs contradict the log or each other in a way that no
// crash explains, the error is a [*DamageError].
func (s *Store) Epochs() (Epochs, error) {
	if err := s.usable(); err != nil {
		return Epochs{}, err
	}
	on, err := s.epochsOnDisk()
	if err != nil {
		return Epochs{}, err
	}
	e, err := s.settleEpochs(on, max(0, s.LastZxid()).Epoch())
	if err != nil {
		return Epochs{}, err
	}
	s.epochs = e
	// A process that was killed may have renamed a file before the new name was durable.
	// The epochs that this call returns must be durable.
	if err := s.fs.SyncDir(s.snapDir); err != nil {
		return Epochs{}, err
	}
	if !on.hasCurrent || e.Current != on.Current {
		if err := s.SetCurrentEpoch(e.Current); err != nil {
			return Epochs{}, err
		}
	}
	if !on.hasAccepted {
		return e, s.SetAcceptedEpoch(e.Accepted)
	}
	return e, nil
}

// epochsOnDisk holds what the epoch files contain.
type epochsOnDisk struct {
	Epochs
	hasCurrent, hasAccepted bool
}

func (s *Store) epochsOnDisk() (on epochsOnDisk, err error) {
	if on.Current, on.hasCurrent, err = s.readEpoch(currentEpochName); err != nil {
		return on, err
	}
	on.Accepted, on.hasAccepted, err = s.readEpoch(acceptedEpochName)
	return on, err
}

// settleEpochs decides what the epochs are, given the epoch of the log's end.
//
// If the log is ahead of currentEpoch, the member crashed between two steps: it had made
// durable what a new leader sent, and had not yet adopted that leader's epoch. Its log is
// then a prefix of that leader's history, so the epoch of the log's end counts as the
// current one.
func (s *Store) settleEpochs(on epochsOnDisk, floor wire.Epoch) (Epochs, error) {
	e := on.Epochs
	switch {
	case !on.hasCurrent && e.Accepted > floor:
		return e, s.epochDamage(currentEpochName, fmt.Sprintf("it is missing, and %s is %d", acceptedEpochName, e.Accepted))
	case !on.hasAccepted && e.Current > floor:
		return e, s.epochDamage(acceptedEpochName, fmt.Sprintf("it is missing, and %s is %d", currentEpochName, e.Current))
	}
	if !on.hasAccepted {
		e.Accepted = floor
	}
	if !on.hasCurrent {
		e.Current = floor
	}
	if e.Current < floor {
		tmp, ok, err := s.readEpoch(currentEpochName + ".tmp")
		switch {
		case err == nil && ok && tmp >= floor && tmp <= e.Accepted:
			e.Current = tmp
		case e.Accepted >= floor:
			e.Current = floor
		default:
			return e, s.epochDamage(currentEpochName, fmt.Sprintf("it says %d, %s says %d, and the log has transactions of epoch %d",
				e.Current, acceptedEpochName, e.Accepted, floor))
		}
	}
	if e.Accepted < e.Current {
		return e, s.epochDamage(acceptedEpochName, fmt.Sprintf("it says %d, less than %s with %d", e.Accepted, currentEpochName, e.Current))
	}
	return e, nil
}

func (s *Store) epochDamage(name, what string) error {
	return damageAt(filepath.Join(s.snapDir, name), 0, what)
}

// SetCurrentEpoch makes the current epoch durable. It returns a [*FullError] if there is
// no space; then the old epoch holds.
func (s *Store) SetCurrentEpoch(e wire.Epoch) error {
	err := s.setEpoch(currentEpochName, &s.ahead.current, e)
	if err == nil {
		s.epochs.Current = e
	}
	return err
}

// SetAcceptedEpoch makes the accepted epoch durable. Its errors are those of
// SetCurrentEpoch.
func (s *Store) SetAcceptedEpoch(e wire.Epoch) error {
	err := s.setEpoch(acceptedEpochName, &s.ahead.accepted, e)
	if err == nil {
		s.epochs.Accepted = e
	}
	return err
}

// setEpoch replaces an epoch file. It uses the file that was written ahead, if that file
// has the right epoch.
func (s *Store) setEpoch(name string, ahead *wire.Epoch, e wire.Epoch) error {
	if err := s.usable(); err != nil {
		return err
	}
	path := filepath.Join(s.snapDir, name)
	err := fs.ErrNotExist
	if *ahead == e && e != 0 {
		err = replaceBy(s.fs, s.aheadPath(name), path)
		*ahead = 0
	}
	if errors.Is(err, fs.ErrNotExist) { // not written ahead, or another process has removed it
		err = writeAtomic(s.fs, path, strconv.FormatInt(int64(e), 10))
	}
	if isFull(err) {
		return &FullError{File: path, Zxid: s.Synced(), Err: err}
	}
	if err == nil {
		err = s.InPlace()
	}
	return err
}

// readEpoch reads one file; ok is false if it does not exist.
func (s *Store) readEpoch(name string) (e wire.Epoch, ok bool, err error) {
	text, err := readSmall(s.fs, filepath.Join(s.snapDir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	line, _, _ := strings.Cut(text, "\n")
	n, err := strconv.ParseInt(strings.TrimSuffix(line, "\r"), 10, 64)
	if err != nil || n < 0 {
		return 0, false, s.epochDamage(name, fmt.Sprintf("%q is not an epoch", line))
	}
	return wire.Epoch(n), true, nil
}

// writeAtomic replaces a small file as a whole, durably.
func writeAtomic(fs FS, path, text string) error {
	temp := path + ".tmp"
	if err := writeSynced(fs, temp, text); err != nil {
		return err
	}
	return replaceBy(fs, temp, path)
}

// writeSynced writes a file and makes its content durable, but not its name. The errors of
// the file system name the file.
func writeSynced(fs FS, path, text string) error {
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt([]byte(text), 0); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// replaceBy renames a durable file over another one, durably. Once the file has its name, no error says that something is full,
// because that would mean that nothing has changed.
func replaceBy(fs FS, temp, path string) error {
	if err := fs.Rename(temp, path); err != nil {
		return err
	}
	err := fs.SyncDir(filepath.Dir(path))
	if isFull(err) {
		return fmt.Errorf("fsync %s: %v", filepath.Dir(path), err)
	}
	return err
}

// smallMax limits how much of a small file is read, in bytes.
const smallMax = 4096

func readSmall(fs FS, path string) (text string, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, smallMax))
	return string(b), err
}
