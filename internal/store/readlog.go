package store

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"bellwether/internal/record"
	"bellwether/wire"
)

// ReadLog yields the transactions after zxid that were durable when it began, in order
// and without a gap. The caller may keep each transaction. If the log cannot prove that
// there is no gap, ReadLog yields an error that is [ErrNotInLog], and ends; the
// transactions before the error are then incomplete. That happens if the log does not
// reach back to zxid, has a gap (for instance after an installed snapshot), or is purged
// meanwhile. ReadLog may run concurrently with everything but Truncate and
// InstallSnapshot.
func (s *Store) ReadLog(after wire.Zxid) iter.Seq2[*record.Txn, error] {
	return func(yield func(*record.Txn, error) bool) {
		err := s.readLog(after, s.Synced(), yield)
		switch {
		case err == nil, errors.Is(err, errFound):
			return
		case errors.Is(err, fs.ErrNotExist): // Purge ran meanwhile
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
	h.report = notInLog
	var decoder record.TxnDecoder
	proved := false
	h.eachRecord = func(rec logRecord) error {
		if proved = proved || h.baseSeen || rec.zxid == after+1; !proved {
			return fmt.Errorf("the log continues with %v: %w", rec.zxid, ErrNotInLog)
		}
		t, err := rec.decode(&decoder)
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
	return fmt.Errorf("the log ends at %v instead of %v: %w", h.last, synced, ErrNotInLog)
}
