package server

import (
	"errors"
	"fmt"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/metrics"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// logWriter is the goroutine that owns the log.
type logWriter struct {
	srv     *Server
	answers []replica.Event // answers of the present action; its memory is reused
	full    bool            // the disk is full and is checked every roomProbe
	noRoom  bool            // the loop was told that there is no room for another log
	said    string          // the error of the last check, so that it is logged once
	snaps   *snapshots
	// ahead fires some time after an epoch was saved, to prepare for the next one.
	ahead *time.Timer
}

// aheadAfter is how long after the adoption of an epoch the files of the next epoch are
// written. The pause lets the log writer first do what other servers wait for.
const aheadAfter = 20 * time.Millisecond

func newLogWriter(s *Server, snaps *snapshots) *logWriter {
	return &logWriter{srv: s, snaps: snaps, ahead: time.NewTimer(aheadAfter)}
}

func (w *logWriter) run(quit <-chan struct{}) {
	probe := time.NewTicker(roomProbe)
	defer probe.Stop()
	defer w.ahead.Stop()
	w.srv.lookAtDisk()
	for {
		select {
		case <-w.srv.journal.wake:
			w.write()
		case <-probe.C:
			w.probe()
		case q := <-w.srv.restores:
			w.write()
			q.done <- w.restore(&q)
		case <-w.ahead.C:
			w.writeAhead()
		case <-quit:
			w.write()
			return
		}
	}
}

// write carries out the waiting actions, in order. Tasks that arrive meanwhile wait for the
// next call.
func (w *logWriter) write() {
	j := w.srv.journal
	j.take()
	for {
		a, freed := j.next()
		w.srv.inbox.log(-freed)
		if a.Kind == driver.Idle {
			return
		}
		if err := w.do(&a); err != nil {
			w.failed(err)
			return
		}
	}
}

// do carries out an action and answers it.
func (w *logWriter) do(a *driver.Action) error {
	s := w.srv
	switch a.Kind {
	case driver.SaveAccepted:
		if err := w.saveAccepted(a.Epoch); err != nil {
			return err
		}
	case driver.SaveProposed, driver.SaveCommitted:
		w.saveMembers(a)
	case driver.Rebuild:
		return w.rebuild(a)
	case driver.Install:
		return w.install(a)
	case driver.Append:
		return w.extend(a)
	case driver.SaveCurrent:
		if err := s.store.SetCurrentEpoch(a.Epoch); err != nil {
			return err
		}
		w.ahead.Reset(aheadAfter)
	}
	w.answer(a, nil)
	return nil
}

// saveAccepted saves the epoch that this server promises.
func (w *logWriter) saveAccepted(epoch wire.Epoch) error {
	defer w.srv.disk.whole()()
	return w.srv.store.SetAcceptedEpoch(epoch)
}

// writeAhead writes files that make the next change of leaders shorter. A failure is only
// logged, because nothing was promised.
func (w *logWriter) writeAhead() {
	if w.srv.member == nil || w.full {
		return
	}
	if err := w.srv.store.WriteEpochsAhead(); err != nil {
		w.srv.log.Warn("the files of the next epoch could not be prepared, so the next change of leaders will take longer", "err", err)
	}
}

// answer tells the loop that an action is done. made is the tree that the action has made,
// if any.
func (w *logWriter) answer(a *driver.Action, made *tree.Tree) {
	w.answers = a.Answers(w.answers[:0], w.srv.store.LastZxid(), made)
	w.tell(w.answers)
	clear(w.answers)
}

// tell passes events to the loop.
func (w *logWriter) tell(events []replica.Event) {
	for _, e := range events {
		w.srv.inbox.push(e, nil)
	}
}

// extend logs transactions with one write and one fsync.
func (w *logWriter) extend(a *driver.Action) error {
	s, n := w.srv, len(a.Txns)
	taken := s.clock()
	if err := w.log(a.Txns); err != nil {
		return err
	}
	if n > 0 {
		now := s.clock()
		s.stats.logTime.Observe(micro(now-a.At), int64(n))
		s.stats.written(int64(n), taken-a.At, now-taken)
		w.durable(a.Txns)
	}
	w.answer(a, nil)
	if n == 0 {
		return nil
	}
	return w.snaps.logged(n)
}

// durable accounts for transactions that have become durable.
func (w *logWriter) durable(txns []*record.Txn) {
	reached := w.srv.stats.quorum.durable
	if w.srv.member == nil { // on a standalone server they are now committed, and the loop applies them at once
		reached = w.srv.stats.quorum.shown
		w.srv.stats.commits.Add(int64(len(txns)))
	}
	wall := w.srv.times().Wall
	for _, t := range txns {
		reached.Observe((wall-t.Time)*metrics.Unit, 1)
	}
}

// failed tells the replica that an action has failed, or ends the server.
func (w *logWriter) failed(err error) {
	s := w.srv
	var full *store.FullError
	switch {
	case errors.As(err, &full):
		w.full = true
		if s.member != nil {
			s.log.Error("no space on the disk: this server takes no part in its ensemble until there is, and answers only clients that accept a read-only server; free some space", "zxid", full.Zxid, "err", err)
		}
		w.tell(s.journal.full(full.Zxid, err.Error()))
	case errors.Is(err, store.ErrNotInLog) && s.member != nil:
		w.tell(s.journal.refuse(s.store.Synced(), err.Error()))
	default:
		w.broken(err)
	}
}

// broken ends the server, because the state of the log is unknown.
func (w *logWriter) broken(err error) {
	w.srv.journal.abandon()
	w.srv.stats.broken.Add(1)
	w.srv.fail(fmt.Errorf("transaction log: %w; nothing more is acknowledged, the server stops", err))
}

// log appends one batch and fsyncs it.
func (w *logWriter) log(txns []*record.Txn) error {
	s := w.srv
	if len(txns) == 0 {
		return s.store.Sync()
	}
	if s.store.LastZxid() < 0 {
		if err := w.beginHistory(); err != nil {
			return err
		}
	}
	if err := s.store.Append(txns); err != nil {
		return err
	}
	start := s.clock()
	err := s.store.Sync()
	took := time.Duration(s.clock() - start)
	s.stats.synced(took, len(txns))
	if err == nil {
		s.milestones.fsynced(txns[len(txns)-1].Zxid, start, start+int64(took))
	}
	if limit := s.config().Storage.SyncWarning; limit > 0 && took > limit && err == nil {
		s.stats.slowSyncs.Add(1)
		s.log.Warn(fmt.Sprintf("fsync-ing the write ahead log in the log writer took %dms which will adversely effect operation latency."+
			"File size is %d bytes. See the ZooKeeper troubleshooting guide", took.Milliseconds(), s.store.LogBytes()))
	}
	return err
}

// roomMin is the free space, in bytes, below which there is no room for another log. From twice that
// space on there is room again.
const roomMin = 1 << 20

// watchRoom tells the loop of an ensemble's server whether there is room for another log. A log may have
// space reserved for a long time after the disk is full.
func (w *logWriter) watchRoom() {
	free := w.srv.diskBytes().free // NaN if it is not known
	switch {
	case w.srv.member == nil:
	case !w.noRoom && free < roomMin:
		w.noRoom = true
		w.srv.log.Warn("the disk has no room for another log; while this lasts, another server leads if one can: free some space", "dir", w.srv.config().DataLogDir, "free", free)
		w.srv.inbox.push(replica.NoRoom{}, nil)
	case w.noRoom && free >= 2*roomMin:
		w.noRoom = false
		w.srv.log.Warn("the disk has room for another log again", "dir", w.srv.config().DataLogDir)
		w.srv.inbox.push(replica.Room{}, nil)
	}
}

// probe checks every second that the data directory is still in its place, and whether a
// full disk has space.
func (w *logWriter) probe() {
	if err := w.srv.store.InPlace(); err != nil {
		w.broken(err)
		return
	}
	w.srv.lookAtDisk()
	w.watchRoom()
	if !w.full {
		return
	}
	err := w.srv.store.Room()
	var full *store.FullError
	switch {
	case err == nil:
		w.full, w.said = false, ""
		w.srv.inbox.push(replica.LogFree{}, nil)
	case !errors.As(err, &full) && err.Error() != w.said:
		w.said = err.Error()
		w.srv.log.Warn("the disk was full, and checking for free space failed; the server checks again", "err", err)
	}
}
