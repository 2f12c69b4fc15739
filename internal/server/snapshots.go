package server

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// snapshots decides when the tree is written to disk, and has it written
// beside everything else. Counted are transactions and bytes of the log since
// the last one; both limits have a random half, drawn anew each time, so that
// the servers of an ensemble do not pause together.
type snapshots struct {
	srv     *Server
	rand    *rand.Rand
	txns    int   // since the last roll
	count   int   // the limit for txns
	bytes   int64 // the limit for the bytes of the current log; 0: none
	writing atomic.Bool
	group   sync.WaitGroup
}

func newSnapshots(s *Server, seed uint64) *snapshots {
	p := &snapshots{srv: s, rand: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
	p.draw()
	return p
}

// draw chooses when the next one is due.
func (p *snapshots) draw() {
	o := &p.srv.config().Storage
	half := max(o.SnapCount/2, 1)
	p.txns, p.count, p.bytes = 0, half+p.rand.IntN(half), 0
	if b := o.SnapSizeBytes / 2; b > 0 {
		p.bytes = b + p.rand.Int64N(b)
	}
}

// atStart has a snapshot written after a start that had to replay much, so
// that the next one has less to do. (ZooKeeper writes one at every start,
// even if nothing has changed.)
func (p *snapshots) atStart(replayed int) {
	if replayed > p.srv.config().Storage.SnapCount/2 {
		p.write()
	}
}

// logged is called by the log writer after each batch.
func (p *snapshots) logged(txns int) {
	p.txns += txns
	size := p.srv.store.LogBytes()
	if p.txns > p.count || p.bytes > 0 && size > p.bytes {
		p.draw()
		p.roll()
		p.write()
		return
	}
	if limit := p.srv.config().Storage.LogSizeBytes; limit > 0 && size > limit {
		p.roll()
	}
}

// roll ends the current log file.
func (p *snapshots) roll() {
	if err := p.srv.store.Roll(); err != nil {
		p.srv.fail(fmt.Errorf("transaction log: %w; the server stops", err))
	}
}

// write starts writing a snapshot, unless one is being written.
func (p *snapshots) write() {
	if !p.writing.CompareAndSwap(false, true) {
		p.srv.log.Warn("Too busy to snap, skipping")
		return
	}
	p.group.Add(1)
	go func() {
		defer p.group.Done()
		defer p.writing.Store(false)
		p.writeNow()
	}()
}

// writeNow writes one snapshot. One that fails is no harm: the log has
// everything, and the next one is tried when it is due.
func (p *snapshots) writeNow() {
	s := p.srv
	start := time.Now()
	snap := s.tree.Snapshot()
	file, err := s.store.WriteSnapshot(snap.Zxid(), snap)
	if err != nil {
		s.log.Error("snapshot could not be written; the transaction log is kept, the next one is tried when it is due",
			"zxid", snap.Zxid(), "err", err)
		return
	}
	took := time.Since(start)
	s.stats.snapshot(took)
	s.log.Info(fmt.Sprintf("Snapshot taken in %d ms", took.Milliseconds()), "zxid", file.Zxid, "file", file.Path, "bytes", file.Size)
}

// wait returns when no snapshot is being written.
func (p *snapshots) wait() { p.group.Wait() }
