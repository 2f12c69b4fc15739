package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"bellwether/wire"
)

// LoadResult describes what Load found.
type LoadResult struct {
	// Empty: there was no history at all. If LastZxid is 0 a new history may begin: the
	// caller writes a snapshot 0 of the empty tree before the first Append. If it is -1
	// that is not allowed here (NoDBCreate): a leader must synchronise a member first,
	// and a standalone server must not start.
	Empty bool
	// Marked: Empty, and an operator's marker file confirms that there is no history.
	Marked bool
	// Snapshot is the zxid of the snapshot used, and SnapshotPath its path; -1 and "" if
	// there is none.
	Snapshot     wire.Zxid
	SnapshotPath string
	LastZxid     wire.Zxid // of the last transaction, or the snapshot's if later
	Txns         int       // replayed
	// Notes describe, one line each, what was repaired or ignored.
	Notes []string
}

// Load reads the history into sink: the newest sound snapshot and all transactions after
// it. It ends the current log, sets aside or cuts off what a crash has left unfinished at
// the end, and makes the rest durable. The caller calls it before the first Append, and
// after Truncate or InstallSnapshot to read their result.
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
	s       *Store
	sink    Sink
	res     LoadResult
	met     bool              // the logs contain the transaction that the snapshot is named after
	unsound []unsoundSnapshot // newer than the one used
	jumps   []jump            // of the logs after the snapshot
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
	if l.s.LastZxid() < 0 { // the start: what lies beside a running store is no longer asked for
		if err := l.strays(l.end()); err != nil {
			return err
		}
	}
	if err := l.mend(ends); err != nil {
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

// newest loads from the newest snapshot that can be used.
func (l *loader) newest(snapshots, logs []fileName) ([]logEnd, error) {
	for i := len(snapshots) - 1; i >= 0; i-- {
		ends, err := l.from(snapshots[i], logs)
		var unsound *UnsoundError
		if !errors.As(err, &unsound) {
			return ends, l.instead(err)
		}
		l.unsound = append(l.unsound, unsoundSnapshot{snapshots[i], unsound})
		l.note("%s is passed over for an older one: %v", snapshots[i].path, unsound)
	}
	if len(l.unsound) > 0 {
		return nil, l.unsound[0].damage("none of the snapshots is sound")
	}
	return l.withoutSnapshot(logs)
}

// instead reports a misnamed snapshot as the cause of a gap in the logs after the older
// one that was tried in its place.
func (l *loader) instead(err error) error {
	var gap *DamageError
	if !errors.As(err, &gap) || !gap.gap {
		return err
	}
	for _, u := range l.unsound {
		if u.err.misnamed {
			return u.damage(fmt.Sprintf("an older one does not reach as far, for %s: %s", gap.File, gap.What))
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
		err = l.disbelieve(file, c, logs)
	}
	if err != nil {
		return nil, err
	}
	l.res.Snapshot, l.res.SnapshotPath = file.zxid, file.path
	ends, err := l.replay(logs, file.zxid, c.digested())
	if err != nil {
		return nil, err
	}
	if err := l.enough(file, c); err != nil {
		return nil, err
	}
	return ends, l.covered()
}

// enough refuses a snapshot that has effects of transactions after the end of the logs. A
// snapshot sent by a leader of ZooKeeper has some if the server crashed before it logged
// them.
func (l *loader) enough(file fileName, c contents) error {
	knows := c.last()
	if sent, err := l.s.mayBeSent(file.zxid); err != nil {
		return err
	} else if !sent {
		knows = c.reaches()
	}
	if knows > l.res.LastZxid {
		return &UnsoundError{What: fmt.Sprintf("it knows of %v and the logs end at %v", knows, l.res.LastZxid)}
	}
	return nil
}

// replay passes the transactions above base to the sink. known is a transaction of which
// the snapshot of base has effects, so that the logs must not jump over it; 0 for none.
func (l *loader) replay(logs []fileName, base, known wire.Zxid) ([]logEnd, error) {
	l.res.Txns = 0
	h := &history{fs: l.s.fs, logs: logsFrom(logs, base), base: base, unused: []wire.Zxid{known}}
	for _, u := range l.unsound {
		h.unused = append(h.unused, u.reaches())
	}
	h.report = func(d *DamageError) error { return d }
	h.each = func(rec logRecord) error {
		t, err := rec.decode()
		if err != nil {
			return err
		}
		l.res.Txns++
		return l.sink.Txn(t)
	}
	err := h.walk()
	l.res.Notes = append(l.res.Notes, h.notes...)
	l.res.LastZxid, l.met, l.jumps = h.last, h.met, h.jumps
	return h.ends, err
}

// withoutSnapshot decides whether there may be a history without a snapshot.
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
		d.Do = fmt.Sprintf("give it back the name that it had, %s or that of a transaction shortly before; or "+
			"restore the directory from a copy", snapshotName(u.err.reaches, u.file.form))
	}
	return d
}

// reaches returns the last transaction that a history must have if it is loaded without
// the newest snapshot.
func (u unsoundSnapshot) reaches() wire.Zxid {
	if u.err.misnamed {
		return u.err.reaches
	}
	return u.file.zxid
}

// covered refuses a history that ends before an unsound snapshot: transactions of that
// snapshot are missing, and continuing would take back what clients have seen.
func (l *loader) covered() error {
	for _, u := range l.unsound {
		if u.reaches() > l.res.LastZxid {
			return u.damage(fmt.Sprintf("the logs end at %v, before it", l.res.LastZxid))
		}
	}
	return nil
}

// mend makes the logs that were read durable and cuts unfinished ends, and makes the
// names of everything that was read durable. A killed process may have left some of it
// only in the system's memory, and from now on this server relies on it.
func (l *loader) mend(ends []logEnd) error {
	for i := len(ends) - 1; i >= 0 && ends[i].records == 0; i-- {
		to, err := setAside(l.s.fs, ends[i].file.path)
		if err != nil {
			return err
		}
		l.note("%s holds no transaction; set aside as %s", ends[i].file.path, filepath.Base(to))
		ends = ends[:i]
	}
	for i, e := range ends {
		if err := l.settle(e, i == len(ends)-1); err != nil {
			return fmt.Errorf("mend %s: %w", e.file.path, err)
		}
	}
	for _, dir := range l.s.dirs() {
		if err := l.s.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// settle makes one log durable, and cuts the last log behind its last record. It writes
// again what an fsync of an earlier process may have failed to write: the system may
// regard it as written, so that an fsync alone would not bring it to the disk.
func (l *loader) settle(e logEnd, last bool) (err error) {
	f, err := l.s.fs.Append(e.file.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if last && e.how.ending == endTorn {
		l.note("%s at offset %d: %s; cut off there, behind %v", e.file.path, e.how.off, e.how.what, e.last)
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

// keepTail copies what will be cut off, in case somebody needs it. It ignores errors,
// because a server with a full disk must be able to start.
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

// begin decides, if nothing was found, whether a history may begin.
func (l *loader) begin() error {
	if l.res.Snapshot >= 0 {
		if err := l.s.removeMarker(); err != nil {
			l.note("the marker that allows an empty history stays: %v", err)
		}
		return nil
	}
	if l.res.Txns > 0 {
		return nil
	}
	l.res.Empty, l.res.LastZxid = true, 0
	l.res.Marked = slices.ContainsFunc(l.s.markers(), l.s.there)
	if l.s.opts.NoDBCreate && !l.res.Marked {
		l.res.LastZxid = -1
	}
	return nil
}

func (s *Store) markers() []string {
	return []string{filepath.Join(s.opts.DataDir, markerName), filepath.Join(s.opts.LogDir, markerName)}
}

// removeMarker removes the marker once there is a snapshot, not before: a crash in
// between must not leave an empty directory in which no history may begin.
func (s *Store) removeMarker() error {
	for _, path := range s.markers() {
		if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
