package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/wire"
)

// journal is the queue in front of the log writer. While one sync runs the
// next batch gathers, so that commits are grouped without any timer. It is
// bounded as the inbox is.
type journal struct {
	mu         sync.Mutex
	txns       []*wire.Txn
	generation uint64
	since      int64         // the server's clock when the first of txns came
	wake       chan struct{} // of one
}

func newJournal() *journal { return &journal{wake: make(chan struct{}, 1)} }

// push queues transactions. Those of an older generation are void.
func (j *journal) push(txns []*wire.Txn, generation uint64, now int64) {
	j.mu.Lock()
	if generation != j.generation {
		clear(j.txns)
		j.txns, j.generation = j.txns[:0], generation
	}
	first := len(j.txns) == 0
	if first {
		j.since = now
	}
	j.txns = append(j.txns, txns...)
	j.mu.Unlock()
	if first {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
}

// take returns what is queued, in room's memory next time.
func (j *journal) take(room []*wire.Txn) (txns []*wire.Txn, generation uint64, since int64) {
	clear(room)
	j.mu.Lock()
	defer j.mu.Unlock()
	txns = j.txns
	j.txns = room[:0]
	return txns, j.generation, j.since
}

// roomProbe is how often a full disk is asked whether there is room again.
const roomProbe = time.Second

// logWriter is the goroutine that owns the log.
type logWriter struct {
	srv  *Server
	room []*wire.Txn
	// void is the last generation that ended with a full disk: nothing of it
	// is logged any more. Generations start at 1.
	void  uint64
	full  bool
	said  string // what last kept a full disk from being asked for room
	snaps *snapshots
}

func (w *logWriter) run(quit <-chan struct{}) {
	probe := time.NewTicker(roomProbe)
	defer probe.Stop()
	for {
		select {
		case <-w.srv.journal.wake:
			w.write()
		case <-probe.C:
			w.probe()
		case <-quit:
			w.write()
			return
		}
	}
}

// write logs what has gathered: one write, one sync.
func (w *logWriter) write() {
	txns, generation, since := w.srv.journal.take(w.room)
	w.room = txns
	if len(txns) == 0 || generation <= w.void {
		return
	}
	err := w.log(txns)
	if err == nil {
		w.srv.stats.logTime.Observe(micro(w.srv.clock()-since), int64(len(txns)))
		w.srv.inbox.push(replica.Synced{Zxid: txns[len(txns)-1].Zxid, Generation: generation}, nil)
		err = w.snaps.logged(len(txns))
	}
	var full *store.FullError
	switch {
	case errors.As(err, &full):
		w.full, w.void = true, generation
		w.srv.inbox.push(replica.LogFull{Zxid: full.Zxid, Generation: generation}, nil)
	case err != nil:
		w.srv.stats.broken.Add(1)
		w.srv.fail(fmt.Errorf("transaction log: %w; nothing more is acknowledged, the server stops", err))
	}
}

// log appends and syncs one batch.
func (w *logWriter) log(txns []*wire.Txn) error {
	s := w.srv
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

// probe asks a full disk for room.
func (w *logWriter) probe() {
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
		w.srv.log.Warn("the disk was full, and whether it still is cannot be told", "err", err)
	}
}
