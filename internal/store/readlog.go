package store

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"bellwether/internal/record"
	"bellwether/wire"
)

// ReadLog yields the synced transactions after zxid, up to the last that was
// synced when it began, in order and without a gap; each is the caller's own.
// Where the log cannot prove that (it does not reach back to zxid, or has a
// gap, as behind an installed snapshot, or is purged meanwhile) it yields an
// error that is [ErrNotInLog], and ends; what came before the error is no
// whole answer. May run beside everything but Truncate and InstallSnapshot.
func (s *Store) ReadLog(after wire.Zxid) iter.Seq2[*record.Txn, error] {
	return func(yield func(*record.Txn, error) bool) {
		err := s.readLog(after, s.Synced(), yield)
		switch {
		case err == nil, errors.Is(err, errFound):
			return
		case errors.Is(err, fs.ErrNotExist): // Purge ran beside
			err = fmt.Errorf("%w: %w", ErrNotInLog, err)
		}
		yield(nil, fmt.Errorf("read the log after %v: %w", after, err))
	}
}

func (s *Store) readLog(after, synced wire.Zxid, yield func(*record.Txn, error) bool) error {
	logs, _, err := listFiles(s.fs, s.logDir, logPrefix)
	if err != nil {
		return err
	}
	snapshots, _, err := listFiles(s.fs, s.snapDir, snapshotPrefix)
	if err != nil {
		return err
	}
	if after == synced {
		return nil
	}
	h := &history{fs: s.fs, logs: logsFrom(logs, after), base: after}
	for _, f := range snapshots {
		h.unused = append(h.unused, f.zxid)
	}
	h.report = func(d *DamageError) error { return fmt.Errorf("%w: %w", ErrNotInLog, d) }
	proved := false
	h.each = func(rec logRecord) error {
		if proved = proved || h.met || rec.zxid == after+1; !proved {
			return fmt.Errorf("it goes on with %v: %w", rec.zxid, ErrNotInLog)
		}
		t, err := rec.decode()
		if err != nil {
			return err
		}
		if !yield(t, nil) || rec.zxid >= synced {
			return errFound
		}
		return nil
	}
	if err := h.walk(); err != nil {
		return err
	}
	return fmt.Errorf("it ends at %v, %v was expected: %w", h.last, synced, ErrNotInLog)
}
