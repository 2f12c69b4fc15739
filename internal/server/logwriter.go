package server

import (
	"errors"
	"fmt"
	"time"

	"bellwether/internal/metrics"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/zab"
)

// logWriter is the goroutine that owns the log.
type logWriter struct {
	srv   *Server
	room  []task
	batch []*record.Txn // memory of those that are logged together
	// void is, on a standalone server, the last generation that ended with a
	// full disk: nothing of it is logged any more. Generations start at 1.
	void  uint64
	full  bool
	said  string // what last kept a full disk from being asked for room
	snaps *snapshots
	// ahead is due some time after an epoch was saved: there may be a next one.
	ahead *time.Timer
}

// aheadAfter is how long after an epoch was adopted the files of the next one
// are written ahead: those who wait for the new leader come first.
const aheadAfter = 20 * time.Millisecond

func newLogWriter(s *Server, snaps *snapshots) *logWriter {
	return &logWriter{srv: s, snaps: snaps, ahead: time.NewTimer(aheadAfter)}
}

func (w *logWriter) run(quit <-chan struct{}) {
	probe := time.NewTicker(roomProbe)
	defer probe.Stop()
	defer w.ahead.Stop()
	for {
		select {
		case <-w.srv.journal.wake:
			w.write()
		case <-probe.C:
			w.probe()
		case <-w.ahead.C:
			w.writeAhead()
		case <-quit:
			w.write()
			return
		}
	}
}

// write does what has gathered, in order. Duties behind each other that only
// append are one write and one sync.
func (w *logWriter) write() {
	tasks, since := w.srv.journal.take(w.room)
	w.room = tasks
	defer w.srv.inbox.log(-sizes(tasks))
	for len(tasks) > 0 {
		n := together(tasks)
		if err := w.do(tasks[:n], since); err != nil {
			w.failed(err, tasks[0].Generation)
			return
		}
		tasks = tasks[n:]
	}
}

// together is how many of the first tasks can be done with one sync.
func together(tasks []task) int {
	n := 1
	for tasks[0].appends() && n < len(tasks) && tasks[n].appends() && tasks[n].Generation == tasks[0].Generation {
		n++
	}
	return n
}

// do carries out a task, or several that only append.
func (w *logWriter) do(tasks []task, since int64) error {
	if tasks[0].Generation <= w.void {
		return nil
	}
	if !tasks[0].appends() {
		if err := w.prepare(&tasks[0]); err != nil {
			return err
		}
	}
	w.batch = w.batch[:0]
	sync := false
	for i := range tasks {
		w.batch = append(w.batch, tasks[i].Append...)
		sync = sync || tasks[i].Sync
	}
	defer clear(w.batch)
	if sync || len(w.batch) > 0 {
		if err := w.extend(tasks[0].Generation, since); err != nil {
			return err
		}
	}
	if epoch := tasks[0].SaveCurrent; epoch != 0 {
		if err := w.srv.store.SetCurrentEpoch(epoch); err != nil {
			return err
		}
		w.answer(replica.Zab{Event: zab.Saved{Current: epoch, Generation: tasks[0].Generation}})
		w.ahead.Reset(aheadAfter)
	}
	return nil
}

// writeAhead makes the next change of leaders shorter. A disk that does not let
// it is told of, and no more: nothing was promised.
func (w *logWriter) writeAhead() {
	if w.srv.member == nil || w.full {
		return
	}
	if err := w.srv.store.WriteEpochsAhead(); err != nil {
		w.srv.log.Warn("the files of the next epoch could not be written ahead, so the next change of leaders will take longer", "err", err)
	}
}

// answer tells the loop.
func (w *logWriter) answer(e replica.Event) { w.srv.inbox.push(e, nil) }

// extend logs the batch: one write, one sync.
func (w *logWriter) extend(generation uint64, since int64) error {
	s, n := w.srv, len(w.batch)
	taken := s.clock()
	if err := w.log(w.batch); err != nil {
		return err
	}
	if n > 0 {
		now := s.clock()
		s.stats.logTime.Observe(micro(now-since), int64(n))
		s.stats.written(int64(n), taken-since, now-taken)
		w.durable()
	}
	w.answer(replica.Synced{Zxid: max(s.store.LastZxid(), 0), Generation: generation})
	if n == 0 {
		return nil
	}
	return w.snaps.logged(n)
}

// durable accounts for the batch being on the disk.
func (w *logWriter) durable() {
	reached := w.srv.stats.quorum.durable
	if w.srv.member == nil { // that commits it, and the loop applies it at once
		reached = w.srv.stats.quorum.shown
		w.srv.stats.commits.Add(int64(len(w.batch)))
	}
	wall := w.srv.times().Wall
	for _, t := range w.batch {
		reached.Observe((wall-t.Time)*metrics.Unit, 1)
	}
}

// failed tells the replica that a duty could not be done, or ends the server.
func (w *logWriter) failed(err error, generation uint64) {
	s := w.srv
	var full *store.FullError
	switch {
	case errors.As(err, &full) && s.member == nil:
		w.full, w.void = true, generation
		w.answer(replica.LogFull{Zxid: full.Zxid, Generation: generation})
	case errors.As(err, &full):
		w.full = true
		s.log.Error("no space on the disk: this server takes no part in its ensemble until there is, and answers clients that accept a read-only server; free some space", "zxid", full.Zxid, "err", err)
		s.inbox.log(-s.journal.refuse())
		w.answer(replica.LogFull{Zxid: full.Zxid, Generation: generation})
		w.answer(replica.Zab{Event: zab.Refused{Zxid: full.Zxid, Generation: generation, Why: err.Error()}})
	case errors.Is(err, store.ErrNotInLog) && s.member != nil:
		s.inbox.log(-s.journal.refuse())
		w.answer(replica.Zab{Event: zab.Refused{Zxid: s.store.Synced(), Generation: generation, Why: err.Error()}})
	default:
		s.stats.broken.Add(1)
		s.fail(fmt.Errorf("transaction log: %w; nothing more is acknowledged, the server stops", err))
	}
}

// log appends and syncs one batch.
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
	if limit := s.config().Storage.SyncWarning; limit > 0 && took > limit && err == nil {
		s.log.Warn(fmt.Sprintf("fsync-ing the write ahead log in the log writer took %dms which will adversely effect operation latency."+
			"File size is %d bytes. See the ZooKeeper troubleshooting guide", took.Milliseconds(), s.store.LogBytes()))
	}
	return err
}

// probe looks every second whether the data directory is still where it was,
// and asks a full disk for room.
func (w *logWriter) probe() {
	if err := w.srv.store.InPlace(); err != nil {
		w.failed(err, 0)
		return
	}
	if !w.full {
		return
	}
	err := w.srv.store.Room()
	var full *store.FullError
	switch {
	case err == nil:
		w.full, w.said = false, ""
		w.answer(replica.LogFree{})
	case !errors.As(err, &full) && err.Error() != w.said:
		w.said = err.Error()
		w.srv.log.Warn("the disk was full, and whether it still is cannot be told", "err", err)
	}
}
