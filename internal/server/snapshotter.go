package server

import (
	"fmt"
	"time"

	"bellwether/internal/store"
)

// snapshotter is the goroutine for work that takes long and is not urgent: it writes snapshots,
// purges old files, and lets metrics drop old values. It never writes a snapshot and purges
// at the same time.
type snapshotter struct {
	srv *Server
	due chan struct{} // a value says that a snapshot is to be written

	quit <-chan struct{}
}

// forgetEvery is the period of metric quantiles: a value counts for one to two periods.
const forgetEvery = time.Minute

func (k *snapshotter) run(quit <-chan struct{}) {
	k.quit = quit
	forget := time.NewTicker(forgetEvery)
	defer forget.Stop()
	purge := time.NewTimer(0)
	defer purge.Stop()
	for {
		select {
		case <-k.due:
			_, _ = k.snapshot() // it logs an error
		case q := <-k.srv.wanted:
			file, err := k.snapshot()
			q.answer <- snapshotAnswer{file, err}
		case <-purge.C:
			if every := k.purge(); every > 0 {
				purge.Reset(every)
			}
		case <-k.srv.reloaded:
			purge.Reset(0)
		case <-forget.C:
			k.srv.stats.registry.Rotate()
		case <-quit:
			return
		}
	}
}

// snapshot writes one snapshot. A failure is harmless: the log has everything, and the next
// snapshot is written when it is due.
func (k *snapshotter) snapshot() (store.SnapshotFile, error) {
	s := k.srv
	s.historyLock.mu.RLock()
	defer s.historyLock.mu.RUnlock()
	start := time.Now()
	snap := &source{Snapshot: s.historyLock.tree.Snapshot(), historyLock: &s.historyLock, store: s.store, quit: k.quit}
	s.log.Info(fmt.Sprintf("Snapshotting: %v to %s", snap.Zxid(), s.config().DataDir))
	file, err := s.store.WriteSnapshot(snap.Zxid(), snap)
	if err != nil && s.historyLock.urgent.Load() {
		s.log.Info("snapshot is cancelled: the history is being changed", "zxid", snap.Zxid())
		return file, err
	}
	if err != nil {
		s.log.Error("snapshot could not be written; the transaction log is kept, and the next snapshot is tried when it is due",
			"zxid", snap.Zxid(), "err", err)
		return file, err
	}
	took := time.Since(start)
	s.stats.snapshot(took)
	s.noteSnapshot(file)
	s.log.Info(fmt.Sprintf("Snapshot taken in %d ms", took.Milliseconds()), "zxid", file.Zxid, "file", file.Path, "bytes", file.Size)
	return file, nil
}

// purge removes old snapshots and logs if the configuration asks for that. It returns the time
// until the next purge; 0: there is none.
func (k *snapshotter) purge() time.Duration {
	s := k.srv
	o := s.config().Autopurge
	if o.Interval <= 0 {
		return 0
	}
	s.historyLock.mu.RLock()
	defer s.historyLock.mu.RUnlock()
	s.log.Info("Purge task started.")
	gone, err := s.store.Purge(o.Retain)
	for _, f := range gone {
		s.log.Info("Removing file: " + f)
	}
	if err != nil {
		s.log.Error("some old snapshots and logs could not be removed", "err", err)
	}
	s.log.Info("Purge task completed.")
	return o.Interval
}
