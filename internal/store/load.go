package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"bellwether/internal/record"
	"bellwether/wire"
)

// LoadResult describes what Load found.
type LoadResult struct {
	// Empty: no history was found. If LastZxid is 0, a new history may begin: the caller
	// writes a snapshot 0 of the empty tree before the first Append. If LastZxid is -1, a
	// new history must not begin here (NoDBCreate): a member must first be synchronised
	// by a leader, and a standalone server must not start.
	Empty bool
	// Marked: Empty is true, and an operator's marker file confirms that there is no
	// history.
	Marked bool
	// Snapshot is the zxid of the snapshot used, and SnapshotPath its path; -1 and "" if
	// there is none.
	Snapshot     wire.Zxid
	SnapshotPath string
	LastZxid     wire.Zxid // zxid of the last transaction, or of the snapshot if that is later
	Txns         int       // number of replayed transactions
	// Notes describe, one line each, what was repaired or ignored.
	Notes []string
}

// Load reads the history into sink: the newest sound snapshot and all transactions after
// it. It closes the current log, sets aside or cuts off whatever a crash has left
// unfinished at the end, and makes the rest durable. The caller calls it before the first
// Append, and again after Truncate or InstallSnapshot to read the changed history.
//
// Damage that no crash causes is a [*DamageError]; then nothing is changed. An error of
// sink for a transaction is returned unchanged.
func (s *Store) Load(sink Sink) (LoadResult, error) {
	if err := s.Roll(); err != nil {
		return LoadResult{}, err
	}
	l := loader{s: s, sink: sink}
	l.res.Notes, s.opened = s.opened, nil
	if err := l.load(); err != nil {
		return LoadResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.haveAny = true, l.res.Snapshot >= 0
	s.last, s.synced = l.res.LastZxid, l.res.LastZxid
	return l.res, nil
}

// loader is one run of Load.
type loader struct {
	s        *Store
	sink     Sink
	res      LoadResult
	nameSeen bool              // the logs contain the transaction that the snapshot is named after
	unsound  []unsoundSnapshot // unsound snapshots that are newer than the one used
	jumps    []jump            // where the logs after the snapshot continue with a later epoch
}

type unsoundSnapshot struct {
	file fileName
	err  *UnsoundError
}

func (l *loader) note(format string, args ...any) {
	l.res.Notes = append(l.res.Notes, fmt.Sprintf(format, args...))
}

func (l *loader) load() error {
	snapshots, _, err := listFiles(l.s.fs, l.s.snapDir, snapshotPrefix)
	if err != nil {
		return err
	}
	logs, _, err := listFiles(l.s.fs, l.s.logDir, logPrefix)
	if err != nil {
		return err
	}
	ends, err := l.newest(snapshots, logs)
	if err != nil {
		return err
	}
	if l.s.LastZxid() < 0 { // only at the start: later, files beside the history of a running store do not matter
		if err := l.checkStrays(l.end()); err != nil {
			return err
		}
	}
	if err := l.makeDurable(ends); err != nil {
		return err
	}
	if err := l.setAsideMisnamed(); err != nil {
		return err
	}
	if err := l.begin(); err != nil {
		return err
	}
	return l.suspect()
}

// newest loads the newest snapshot that can be used, and the logs after it.
func (l *loader) newest(snapshots, logs []fileName) ([]logEnd, error) {
	for i := len(snapshots) - 1; i >= 0; i-- {
		ends, err := l.from(snapshots[i], logs)
		var unsound *UnsoundError
		if !errors.As(err, &unsound) {
			return ends, l.blameMisnamed(err)
		}
		l.unsound = append(l.unsound, unsoundSnapshot{snapshots[i], unsound})
		l.note("%s is skipped, and an older one is used: %v", snapshots[i].path, unsound)
	}
	if len(l.unsound) > 0 {
		return nil, l.unsound[0].damage("none of the snapshots is sound")
	}
	return l.withoutSnapshot(logs)
}

// blameMisnamed looks for the cause of a gap in the logs after an older snapshot: if a
// newer snapshot was skipped because of its wrong name, that snapshot is reported as the
// cause.
func (l *loader) blameMisnamed(err error) error {
	var gap *DamageError
	if !errors.As(err, &gap) || !gap.gap {
		return err
	}
	for _, u := range l.unsound {
		if u.err.misnamed {
			return u.damage(fmt.Sprintf("an older snapshot cannot be used in its place, because of %s: %s", gap.File, gap.What))
		}
	}
	return err
}

// end returns where the loaded history ends; -1 if there was none.
func (l *loader) end() wire.Zxid {
	if l.res.Snapshot < 0 && l.res.Txns == 0 {
		return -1
	}
	return l.res.LastZxid
}

// from loads one snapshot and the logs after it. An [*UnsoundError] means that an older
// snapshot should be tried.
func (l *loader) from(file fileName, logs []fileName) ([]logEnd, error) {
	l.sink.Reset()
	c, err := readSnapshot(l.s.fs, file, l.sink)
	if err == nil {
		err = l.checkName(file, c, logs)
	}
	if err != nil {
		return nil, err
	}
	l.res.Snapshot, l.res.SnapshotPath = file.zxid, file.path
	ends, err := l.replay(logs, file.zxid, c.digested())
	if err != nil {
		return nil, err
	}
	if err := l.checkEffects(file, c); err != nil {
		return nil, err
	}
	return ends, l.checkUnsound()
}

// checkEffects refuses a snapshot that has effects of transactions after the end of the logs. A
// snapshot sent by a leader of ZooKeeper has some if the server crashed before it logged
// them.
func (l *loader) checkEffects(file fileName, c contents) error {
	knows := c.last()
	if sent, err := l.s.mayBeSent(file.zxid); err != nil {
		return err
	} else if !sent {
		knows = c.reaches()
	}
	if knows > l.res.LastZxid {
		return &UnsoundError{What: fmt.Sprintf("it has changes up to %v, but the logs end at %v", knows, l.res.LastZxid)}
	}
	return nil
}

// replay passes the transactions above base to the sink. The snapshot of base contains the
// effects of the transaction known; 0: no such transaction is known. If the logs continue
// after known without containing it, transactions are missing.
func (l *loader) replay(logs []fileName, base, known wire.Zxid) ([]logEnd, error) {
	l.res.Txns = 0
	h := &history{fs: l.s.fs, logs: logsFrom(logs, base), base: base, unused: []wire.Zxid{known}}
	for _, u := range l.unsound {
		h.unused = append(h.unused, u.reaches())
	}
	h.report = func(d *DamageError) error { return d }
	var decoder record.TxnDecoder
	h.eachRecord = func(rec logRecord) error {
		t, err := rec.decode(&decoder)
		if err != nil {
			return err
		}
		l.res.Txns++
		return l.sink.Txn(t)
	}
	err := h.walk()
	l.res.Notes = append(l.res.Notes, h.notes...)
	l.res.LastZxid, l.nameSeen, l.jumps = h.last, h.baseSeen, h.jumps
	return h.ends, err
}

// withoutSnapshot loads a history from the logs alone, if that is allowed without a
// snapshot.
func (l *loader) withoutSnapshot(logs []fileName) ([]logEnd, error) {
	l.sink.Reset()
	l.res.Snapshot = -1
	if i, err := lastHolding(l.s.fs, logs); err != nil {
		return nil, err
	} else if i >= 0 && !l.s.opts.TrustEmpty {
		return nil, &DamageError{File: logs[i].path, What: "there are transactions but no snapshot to which they belong",
			Do: "restore the snapshots; or, if this directory is of a release that wrote none, " +
				"start once with snapshot.trust.empty=true"}
	}
	return l.replay(logs, 0, 0)
}

func (u unsoundSnapshot) damage(what string) *DamageError {
	d := damageAt(u.file.path, u.err.Offset, fmt.Sprintf("%v; %s", u.err, what))
	if u.err.misnamed {
		d.Do = fmt.Sprintf("rename it to what it was named, %s or the zxid of a transaction shortly before; or "+
			"restore the directory from a copy", snapshotName(u.err.reaches, u.file.form))
	}
	return d
}

// reaches returns the last transaction that the history must contain if this snapshot is
// not used.
func (u unsoundSnapshot) reaches() wire.Zxid {
	if u.err.misnamed {
		return u.err.reaches
	}
	return u.file.zxid
}

// checkUnsound refuses a history that ends before an unsound snapshot. Transactions of
// that snapshot are missing, so continuing would undo changes that clients have seen.
func (l *loader) checkUnsound() error {
	for _, u := range l.unsound {
		if u.reaches() > l.res.LastZxid {
			return u.damage(fmt.Sprintf("the logs end at %v, before it", l.res.LastZxid))
		}
	}
	return nil
}

// makeDurable makes the logs that were read and the names of all files that were read
// durable, and cuts off unfinished ends. A killed process may have left some of the data
// only in the system's memory, and from now on this server relies on that data.
func (l *loader) makeDurable(ends []logEnd) error {
	for i := len(ends) - 1; i >= 0 && ends[i].records == 0; i-- {
		to, err := setAside(l.s.fs, ends[i].file.path)
		if err != nil {
			return err
		}
		l.note("%s holds no transaction; set aside as %s", ends[i].file.path, filepath.Base(to))
		ends = ends[:i]
	}
	for i, e := range ends {
		if err := l.repairEnd(e, i == len(ends)-1); err != nil {
			return fmt.Errorf("repair %s: %w", e.file.path, err)
		}
	}
	for _, dir := range l.s.dirs() {
		if err := l.s.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// repairEnd makes one log durable; it also cuts the last log after its last record. It
// rewrites the data that an fsync of an earlier process may have failed to write: the
// system may regard that data as written, so another fsync alone would not write it.
func (l *loader) repairEnd(e logEnd, last bool) (err error) {
	f, err := l.s.fs.Append(e.file.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if last && e.verdict.ending == endTorn {
		l.note("%s at offset %d: %s; the log was cut off there, after %v", e.file.path, e.verdict.off, e.verdict.what, e.last)
		keepTail(l.s.fs, f, e)
	}
	if last && e.size > e.end {
		if err := f.Truncate(e.end); err != nil {
			return err
		}
	}
	if last {
		if err := rewrite(f, max(0, e.end-syncMax), e.end); err != nil {
			return err
		}
	}
	return f.Sync()
}

// rewriteLen is how much rewrite writes at a time, in bytes.
const rewriteLen = 1 << 20

// rewrite writes a part of a file again, unchanged.
func rewrite(f File, from, to int64) error {
	b := make([]byte, min(to-from, rewriteLen))
	for ; from < to; from += int64(len(b)) {
		b = b[:min(to-from, rewriteLen)]
		if n, err := f.ReadAt(b, from); n < len(b) {
			return err
		}
		if _, err := f.WriteAt(b, from); err != nil {
			return err
		}
	}
	return nil
}

// keepTail copies the bytes that will be cut off, in case an operator needs them. It
// ignores errors, because a server with a full disk must be able to start.
func keepTail(fs FS, f File, e logEnd) {
	tail := make([]byte, min(e.size-e.end, syncMax))
	if n, err := f.ReadAt(tail, e.end); n < len(tail) || err != nil || allZero(tail) {
		return
	}
	dir, base := filepath.Split(e.file.path)
	to, err := fs.Create(filepath.Join(dir, fmt.Sprintf("%s%s.from-%d", asidePrefix, base, e.end)))
	if err != nil {
		return
	}
	_, err = to.WriteAt(tail, 0)
	if errors.Join(err, to.Close()) != nil {
		_ = fs.Remove(filepath.Join(dir, fmt.Sprintf("%s%s.from-%d", asidePrefix, base, e.end)))
	}
}

// markerName is the file that allows an empty history. It may be in either directory,
// above version-2: ZooKeeper's script puts it into one of them, and its server looks into
// the other.
const markerName = "initialize"

// begin decides whether a new history may begin when no history was found.
func (l *loader) begin() error {
	if l.res.Snapshot >= 0 {
		if err := l.s.removeMarker(); err != nil {
			l.note("the file initialize, which allows an empty history, could not be removed: %v", err)
		}
		return nil
	}
	if l.res.Txns > 0 {
		return nil
	}
	l.res.Empty, l.res.LastZxid = true, 0
	l.res.Marked = slices.ContainsFunc(l.s.markers(), l.s.exists)
	if l.s.opts.NoDBCreate && !l.res.Marked {
		l.res.LastZxid = -1
	}
	return nil
}

func (s *Store) markers() []string {
	return []string{filepath.Join(s.opts.DataDir, markerName), filepath.Join(s.opts.LogDir, markerName)}
}

// removeMarker removes the marker once there is a snapshot. It must not be removed
// earlier, because a crash in between would leave an empty directory in which no history
// may begin.
func (s *Store) removeMarker() error {
	for _, path := range s.markers() {
		if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
