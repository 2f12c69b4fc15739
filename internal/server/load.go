package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// errEmptyNotAllowed says that there is no history, and that the configuration does not allow a new one.
var errEmptyNotAllowed = errors.New("the data directory has no history and db.autocreate is false; " +
	"create an empty file named initialize in dataDir, or check that dataDir is the right one")

// load reads a new tree from the disk and makes it the server's. The admin port reads the former one,
// which is empty, in the meantime. If the disk has no snapshot that the log continues, load writes one.
func (s *Server) load() error {
	defer s.disk.whole()()
	start := time.Now()
	t := s.newTree()
	loader := t.Loader()
	var sink store.Sink = loader
	var tail *logTail
	if s.member != nil {
		tail = &logTail{Loader: loader, keep: s.member.keep, tree: t}
		sink = tail
	}
	timed := &timedSink{Sink: sink}
	reported := s.reportLoad(loadReportEvery)
	res, err := s.loadInto(timed)
	reported()
	if err != nil {
		return err
	}
	for _, n := range res.Notes {
		s.log.Warn(n)
	}
	removed := s.closeLoader(loader)
	s.tree.Store(t)
	s.logObservations(t)
	s.describe(t)
	if res.LastZxid < 0 && s.member == nil {
		return errEmptyNotAllowed
	}
	if s.member != nil && res.Empty {
		if err := s.member.withoutHistory(s.store); err != nil {
			return err
		}
	}
	// The directory was empty, or had only logs (snapshot.trust.empty), or the tree differs
	// from what snapshot and log give.
	if res.LastZxid >= 0 && (res.Snapshot < 0 || len(removed) > 0) {
		file, err := s.store.WriteSnapshot(res.LastZxid, t.Snapshot())
		if err != nil {
			return fmt.Errorf("cannot write a snapshot at the start: %w", err)
		}
		res.Snapshot, res.SnapshotPath = file.Zxid, file.Path
	}
	s.recordLoaded(res, time.Since(start), timed.snapshotTook(start))
	s.noteLoaded(res.Snapshot, res.SnapshotPath)
	s.historyLock.tree = t
	if s.member != nil {
		return s.member.loaded(s.store, res, tail)
	}
	return nil
}

// closeLoader ends the loading of the tree. On a standalone server it also removes the
// ephemerals of sessions that do not exist, and returns their paths.
func (s *Server) closeLoader(loader *tree.Loader) (removed []string) {
	if s.member != nil {
		loader.Close()
		return nil
	}
	removed = loader.Finish()
	for _, p := range removed {
		s.log.Warn("ephemeral of a session that does not exist is removed", "path", p)
	}
	return removed
}

// recordLoaded counts and logs what was loaded, and how long that took in all and for the snapshot.
func (s *Server) recordLoaded(res store.LoadResult, took, snapshot time.Duration) {
	zxid, digest := s.Tree().Digest()
	s.stats.loaded(took, snapshot, res.Txns)
	s.log.Info(fmt.Sprintf("%d txns loaded in %d ms", res.Txns, took.Milliseconds()))
	s.log.Info(fmt.Sprintf("Snapshot loaded in %d ms, highest zxid is %v, digest is %d", took.Milliseconds(), zxid, digest),
		"file", res.SnapshotPath)
	s.replayed = res.Txns
}

// loadReportEvery is the time between two lines of the log about a long load.
const loadReportEvery = 5 * time.Second

// reportLoad logs how far the load is, now and then, until the returned function is called.
func (s *Server) reportLoad(every time.Duration) (stop func()) {
	before, total := s.bytesRead.Load(), s.store.LoadBytes()
	over := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				s.log.Info(loadText(s.bytesRead.Load()-before, total))
			}
		}
	})
	return func() {
		close(over)
		reporter.Wait()
	}
}

// loadText says how far a load is. Files may be read twice or in part, so it never says that
// the load is done.
func loadText(read, total int64) string {
	const mib = 1 << 20
	if total <= 0 {
		return fmt.Sprintf("loading: %d MiB read", read/mib)
	}
	return fmt.Sprintf("loading: %d%% of %d MiB read", min(99, read*100/total), (total+mib-1)/mib)
}

// logObservations logs what a tree observed while it was filled.
func (s *Server) logObservations(t *tree.Tree) {
	for _, h := range t.Observations() {
		s.log.Warn(h.String())
	}
}

// describe gives a new tree the membership for its configuration znode. A ZooKeeper server
// without reconfig does the same, whatever its snapshot or its leader says
// (ZOOKEEPER-2819). With reconfig the replica does it.
func (s *Server) describe(t *tree.Tree) {
	if s.member != nil && !s.changesMembers() {
		m := s.config().Ensemble.Members
		t.Describe(m.String(), m.Version(), time.Now().UnixMilli())
	}
}

// timedSink records when the snapshot has been read. What follows it is the log.
type timedSink struct {
	store.Sink
	read time.Time
}

// SnapshotDone records the time.
func (l *timedSink) SnapshotDone(zxid wire.Zxid, digest *record.SnapshotDigest) error {
	l.read = time.Now()
	return l.Sink.SnapshotDone(zxid, digest)
}

// snapshotTook returns how long it took from start until the snapshot had been read; 0: there
// was none.
func (l *timedSink) snapshotTook(start time.Time) time.Duration {
	if l.read.IsZero() {
		return 0
	}
	return l.read.Sub(start)
}

// logTail fills a tree and keeps the last transactions of the log.
type logTail struct {
	*tree.Loader
	keep   int
	tree   *tree.Tree
	logged driver.Logged
	before wire.Zxid // zxid before the first of txns
	txns   []*record.Txn
}

// Reset drops everything loaded so far, because the load begins anew.
func (l *logTail) Reset() {
	l.Loader.Reset()
	l.before, l.txns = 0, nil
}

// SnapshotDone records the zxid at which the log continues.
func (l *logTail) SnapshotDone(zxid wire.Zxid, digest *record.SnapshotDigest) error {
	l.before = zxid
	err := l.Loader.SnapshotDone(zxid, digest)
	l.logged.Snapshot(l.tree)
	return err
}

// Txn replays a transaction and keeps it.
func (l *logTail) Txn(t *record.Txn) error {
	if len(l.txns) >= 2*l.keep {
		drop := len(l.txns) - l.keep
		l.before = l.txns[drop-1].Zxid
		n := copy(l.txns, l.txns[drop:])
		clear(l.txns[n:])
		l.txns = l.txns[:n]
	}
	l.txns = append(l.txns, t)
	l.logged.Txn(t)
	return l.Loader.Txn(t)
}

// log returns the part of the log that a replica begins with in memory.
func (l *logTail) log() *zab.Log {
	g := zab.NewLog(l.before, l.keep)
	for _, t := range l.txns {
		if g.Append(t) != nil { // an old log with a gap: only the part after the gap counts
			g = zab.NewLog(t.Zxid, l.keep)
		}
	}
	g.MarkApplied(g.Last())
	return g
}

// rebuild truncates the log, and makes a new tree if the action asks for one.
func (w *logWriter) rebuild(a *driver.Action) error {
	s := w.srv
	defer s.disk.whole()() // the change of the history also waits for the snapshotter
	made, err := s.historyLock.revise(func() (*tree.Tree, error) {
		if a.Truncate != nil {
			if err := s.store.Truncate(a.Truncate.Zxid); err != nil {
				return nil, err
			}
		}
		if !a.Anew {
			_, err := s.store.Load(store.Discard{})
			return nil, err
		}
		made := s.newTree()
		loader := made.Loader()
		if _, err := s.loadInto(loader); err != nil {
			return nil, err
		}
		loader.Close()
		return made, nil
	})
	if err != nil {
		return err
	}
	if made != nil {
		s.logObservations(made)
		s.describe(made)
	}
	w.answer(a, made)
	return nil
}

// install replaces the history by a leader's snapshot.
func (w *logWriter) install(a *driver.Action) error {
	s := w.srv
	defer s.disk.whole()() // the change of the history also waits for the snapshotter
	if a.Received == nil {
		return fmt.Errorf("the snapshot %v that a leader sent is missing", a.Snapshot.Zxid)
	}
	_, err := s.historyLock.revise(func() (*tree.Tree, error) {
		for _, txn := range a.Snapshot.Txns {
			a.Received.Replay(txn)
		}
		file, err := s.store.InstallSnapshot(a.Snapshot.Zxid, a.Received.Snapshot())
		if err == nil {
			s.noteSnapshot(file)
		}
		return a.Received, err
	})
	if err != nil {
		return err
	}
	s.logObservations(a.Received)
	w.snaps.draw()
	w.answer(a, nil)
	return nil
}

// beginHistory writes the snapshot of the empty tree, on a server that was not allowed to
// begin a history by itself. The log of a leader continues this snapshot.
func (w *logWriter) beginHistory() error {
	s := w.srv
	defer s.disk.whole()()
	_, err := s.historyLock.revise(func() (*tree.Tree, error) {
		_, err := s.store.InstallSnapshot(0, s.newTree().Snapshot())
		return nil, err
	})
	return err
}
