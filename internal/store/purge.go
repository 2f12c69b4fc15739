package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"bellwether/wire"
)

// retainMin is the least number of snapshots that Purge keeps.
const retainMin = 3

// Purge removes everything that the keep newest sound snapshots (at least 3) do not need:
// older snapshots, logs that end before the oldest of these snapshots, and older files
// that were set aside. It counts only snapshots that are known to be sound and durable.
// It returns the removed paths, even if it also returns an error. It may run concurrently
// with Append, Sync and WriteSnapshot.
func (s *Store) Purge(keep int) ([]string, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	snapshots, strays, err := listFiles(s.fs, s.snapDir, snapshotPrefix)
	if err != nil {
		return nil, err
	}
	oldest, err := s.oldestKept(snapshots, max(keep, retainMin))
	if err != nil || oldest < 0 {
		return nil, err
	}
	var old []string
	for _, f := range snapshots {
		if f.zxid < oldest {
			old = append(old, f.path)
		}
	}
	for _, misplaced := range strays {
		if z, ok := looseZxid(filepath.Base(misplaced.path)); ok && z < oldest && misplaced.not == "" {
			old = append(old, misplaced.path)
		}
	}
	logs, _, err := listFiles(s.fs, s.logDir, logPrefix)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(logs) && logs[i+1].zxid <= oldest; i++ {
		old = append(old, logs[i].path)
	}
	aside, err := s.setAsideBefore(oldest)
	if err != nil {
		return nil, err
	}
	return s.remove(append(old, aside...))
}

// oldestKept returns the zxid of the nth newest sound snapshot. If there are fewer, it
// returns that of the oldest one; -1 if there is none.
func (s *Store) oldestKept(snapshots []fileName, n int) (wire.Zxid, error) {
	oldest := wire.Zxid(-1)
	for i := len(snapshots) - 1; i >= 0 && n > 0; i-- {
		ok, err := s.reliable(snapshots[i])
		if err != nil {
			return -1, err
		}
		if ok {
			oldest = snapshots[i].zxid
			n--
		}
	}
	return oldest, nil
}

// reliable reports whether a snapshot is sound and the log has all transactions that it
// needs. It makes the snapshot durable, because ZooKeeper writes its snapshots without an
// fsync.
func (s *Store) reliable(file fileName) (bool, error) {
	s.mu.Lock()
	known, synced := s.sound[file.path], s.synced
	s.mu.Unlock()
	if known {
		return true, nil
	}
	knows, err := s.newestEffect(file)
	if err != nil || knows < 0 || knows > synced {
		return false, err
	}
	f, err := s.fs.Append(file.path)
	if err != nil {
		return false, err
	}
	if err := errors.Join(f.Sync(), f.Close(), s.fs.SyncDir(s.snapDir)); err != nil {
		return false, fmt.Errorf("fsync %s: %w", file.path, err)
	}
	s.setSound(file.path, true)
	return true, nil
}

// setSound records whether a snapshot is known to be sound and durable.
func (s *Store) setSound(path string, sound bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sound {
		s.sound[path] = true
	} else {
		delete(s.sound, path)
	}
}

// setAsideBefore lists the files set aside that belong to the time before z.
func (s *Store) setAsideBefore(z wire.Zxid) ([]string, error) {
	var old []string
	for _, dir := range s.dirs() {
		entries, err := s.fs.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			name, aside := strings.CutPrefix(e.Name, asidePrefix)
			if at, ok := looseZxid(name); aside && ok && at < z && e.Not == "" {
				old = append(old, filepath.Join(dir, e.Name))
			}
		}
	}
	return old, nil
}

// looseZxid parses the zxid in a name as ZooKeeper does: it is the text between the first
// two dots, whatever follows.
func looseZxid(name string) (wire.Zxid, bool) {
	for _, prefix := range []string{logPrefix, snapshotPrefix} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			hex, _, _ := strings.Cut(rest, ".")
			z, _, ok := parseName(prefix+hex, prefix, false)
			return z, ok
		}
	}
	return 0, false
}

func (s *Store) remove(paths []string) (removed []string, err error) {
	for _, path := range paths {
		if err := s.fs.Remove(path); err != nil {
			return removed, fmt.Errorf("purge: %w", err)
		}
		removed = append(removed, path)
		s.setSound(path, false)
	}
	for _, dir := range s.dirs() {
		if err := s.fs.SyncDir(dir); err != nil {
			return removed, fmt.Errorf("purge: %w", err)
		}
	}
	return removed, nil
}
