package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bellwether/wire"
)

// cutName is a file that contains, in hex, the zxid above which everything is being
// removed from the history. The file exists only during a truncation. If a crash
// interrupts the truncation, the next open completes it, so that no server sees a history
// with a gap in the middle.
const cutName = "cutting"

// ErrNotInLog says that the history does not contain the transaction asked for.
var ErrNotInLog = errors.New("the wanted transaction is not in the log on disk")

// notInLog reports damage as ErrNotInLog, with the damage as the reason.
func notInLog(d *DamageError) error { return fmt.Errorf("%w: %w", ErrNotInLog, d) }

// Truncate durably removes everything after zxid from the history. It sets aside the
// later logs and the snapshots that contain effects of later transactions, and cuts the
// log that contains zxid. If zxid cannot be reached from a sound snapshot, it changes
// nothing and returns ErrNotInLog. It must not run concurrently with any other call. The
// caller calls Load afterwards.
func (s *Store) Truncate(zxid wire.Zxid) error {
	if err := s.Roll(); err != nil {
		return err
	}
	if err := s.reachable(zxid); err != nil {
		return fmt.Errorf("truncate to %v: %w", zxid, err)
	}
	if err := s.beginCut(zxid); err != nil {
		if _, begun, unknown := s.pendingCut(); begun || unknown != nil {
			return s.poison(fmt.Errorf("truncate to %v: %w", zxid, err)) // the next start may continue the truncation
		}
		if isFull(err) {
			err = &FullError{File: filepath.Join(s.logDir, cutName), Zxid: s.Synced(), Err: err}
		}
		return fmt.Errorf("truncate to %v: %w", zxid, err)
	}
	if err := s.cut(zxid); err != nil {
		return s.poison(fmt.Errorf("truncate to %v: %w", zxid, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = false
	s.last, s.synced = zxid, zxid
	return nil
}

// reachable checks that Truncate would leave the history up to zxid: a sound snapshot and
// every transaction from there on.
func (s *Store) reachable(zxid wire.Zxid) error {
	snapshots, _, err := listFiles(s.fs, s.snapDir, snapshotPrefix)
	if err != nil {
		return err
	}
	logs, _, err := listFiles(s.fs, s.logDir, logPrefix)
	if err != nil {
		return err
	}
	var unused []wire.Zxid
	for _, file := range slices.Backward(snapshots) {
		knows, err := s.newestEffect(file)
		if err != nil {
			return err
		}
		if knows < 0 {
			unused = append(unused, file.zxid)
		}
		if knows > zxid || knows < 0 {
			continue
		}
		if file.zxid == zxid {
			return nil
		}
		return s.reachableFrom(file.zxid, unused, logs, zxid)
	}
	return fmt.Errorf("no sound snapshot is old enough: %w", ErrNotInLog)
}

// errFound ends a walk early.
var errFound = errors.New("found")

func (s *Store) reachableFrom(base wire.Zxid, unused []wire.Zxid, logs []fileName, zxid wire.Zxid) error {
	h := &history{fs: s.fs, logs: logsFrom(logs, base), base: base, unused: unused}
	h.report = notInLog
	h.eachRecord = func(rec logRecord) error {
		if rec.zxid == zxid {
			return errFound
		}
		if rec.zxid > zxid {
			return fmt.Errorf("the log continues with %v: %w", rec.zxid, ErrNotInLog)
		}
		return nil
	}
	switch err := h.walk(); {
	case err == nil:
		return fmt.Errorf("the log ends at %v: %w", h.last, ErrNotInLog)
	case errors.Is(err, errFound):
		return nil
	default:
		return err
	}
}

// newestEffect returns the last transaction whose effects a snapshot contains, as far as
// the snapshot says; -1 if it is misnamed or not sound.
func (s *Store) newestEffect(file fileName) (wire.Zxid, error) {
	c, err := readSnapshot(s.fs, file, Discard{})
	var unsound *UnsoundError
	switch {
	case errors.As(err, &unsound):
		return -1, nil
	case err != nil:
		return -1, err
	case c.misnamed(file.zxid) != "":
		return -1, nil
	}
	return max(file.zxid, c.last()), nil
}

// beginCut writes the file that tells cut and the next start what to remove. If it fails,
// pendingCut tells whether the file exists nevertheless.
func (s *Store) beginCut(zxid wire.Zxid) error {
	return writeAtomic(s.fs, filepath.Join(s.logDir, cutName), strconv.FormatInt(int64(zxid), 16))
}

// cut removes everything above zxid from the history. Once beginCut has returned, a crash
// during cut does no harm: the next open completes the cut.
func (s *Store) cut(zxid wire.Zxid) error {
	if err := s.cutSnapshots(zxid); err != nil {
		return err
	}
	if err := s.cutLogs(zxid); err != nil {
		return err
	}
	if err := s.fs.Remove(filepath.Join(s.logDir, cutName)); err != nil {
		return err
	}
	return s.fs.SyncDir(s.logDir)
}

// finishCut continues a cut that a crash has interrupted.
func (s *Store) finishCut() error {
	zxid, pending, err := s.pendingCut()
	if err != nil || !pending {
		return err
	}
	s.opened = append(s.opened, fmt.Sprintf("continued an interrupted truncation: removed the transactions after %v", zxid))
	return s.cut(zxid)
}

// pendingCut returns the zxid of an unfinished cut, if there is one.
func (s *Store) pendingCut() (zxid wire.Zxid, pending bool, err error) {
	path := filepath.Join(s.logDir, cutName)
	text, err := readSmall(s.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	z, err := strconv.ParseInt(strings.TrimSpace(text), 16, 64)
	if err != nil || z < 0 {
		return 0, false, damageAt(path, 0, fmt.Sprintf("%q is not a zxid", text))
	}
	return wire.Zxid(z), true, nil
}

// cutSnapshots sets aside the snapshots that contain effects of transactions above zxid.
// It also sets aside snapshots that cannot be read, because they may contain such
// effects.
func (s *Store) cutSnapshots(zxid wire.Zxid) error {
	files, _, err := listFiles(s.fs, s.snapDir, snapshotPrefix)
	if err != nil {
		return err
	}
	for _, file := range slices.Backward(files) {
		knows := file.zxid
		if knows <= zxid {
			if knows, err = s.newestEffect(file); err != nil {
				return err
			}
		}
		if 0 <= knows && knows <= zxid {
			continue
		}
		if _, err := setAside(s.fs, file.path); err != nil {
			return err
		}
		s.setSound(file.path, false)
	}
	return nil
}

// cutLogs removes the records above zxid from the logs, the newest log first.
func (s *Store) cutLogs(zxid wire.Zxid) error {
	logs, _, err := listFiles(s.fs, s.logDir, logPrefix)
	if err != nil {
		return err
	}
	for _, log := range slices.Backward(logs) {
		if log.zxid > zxid {
			if _, err := setAside(s.fs, log.path); err != nil {
				return err
			}
			continue
		}
		return s.cutLog(log, zxid)
	}
	return nil
}

// cutLog shortens one log to the records up to zxid.
func (s *Store) cutLog(log fileName, zxid wire.Zxid) error {
	end, err := endUpTo(s.fs, log, zxid)
	if err != nil {
		return err
	}
	f, err := s.fs.Append(log.path)
	if err != nil {
		return err
	}
	err = f.Truncate(end)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// endUpTo returns the offset after the last record of a log whose zxid is not above zxid.
// If there is none, it returns the end of the header.
func endUpTo(fs FS, log fileName, zxid wire.Zxid) (end int64, err error) {
	s, err := openLog(fs, log.path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	v, err := s.header()
	for err == nil && v.ending == endNone {
		end = s.off
		var rec logRecord
		rec, v, err = s.next()
		if v.ending == endNone && err == nil && rec.zxid > zxid {
			return end, nil
		}
	}
	if err == nil && v.ending == endDamaged {
		err = damageAt(log.path, v.off, v.what)
	}
	return end, err
}
