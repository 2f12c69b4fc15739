package server

import (
	"fmt"
	"math/rand/v2"
)

// snapshots decides when the tree is written to disk. The log writer owns it. It counts
// the transactions and bytes logged since the last snapshot. Both limits are partly
// random and drawn again each time, so that the servers of an ensemble do not write their
// snapshots at the same time.
type snapshots struct {
	srv   *Server
	rand  *rand.Rand
	due   chan<- struct{} // sends requests to the snapshotter; capacity 1
	txns  int             // since the last snapshot
	count int             // the limit for txns
	bytes int64           // the limit for the bytes of the current log; 0: none
}

func newSnapshots(s *Server, seed uint64, due chan<- struct{}) *snapshots {
	p := &snapshots{srv: s, due: due, rand: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
	p.draw()
	return p
}

// draw draws the limits for the next snapshot.
func (p *snapshots) draw() {
	o := &p.srv.config().Storage
	half := max(o.SnapCount/2, 1)
	p.txns, p.count, p.bytes = 0, half+p.rand.IntN(half), 0
	if b := o.SnapSizeBytes / 2; b > 0 {
		p.bytes = b + p.rand.Int64N(b)
	}
}

// logged must be called after each batch that is durable. When a snapshot is due it first
// starts a new log file, so that the new file holds what the snapshot lacks.
func (p *snapshots) logged(txns int) error {
	p.txns += txns
	size := p.srv.store.LogBytes()
	if p.txns > p.count || p.bytes > 0 && size > p.bytes {
		p.draw()
		p.ask()
		return p.roll()
	}
	if limit := p.srv.config().Storage.LogSizeBytes; limit > 0 && size > limit {
		return p.roll()
	}
	return nil
}

// roll starts a new log file.
func (p *snapshots) roll() error {
	if err := p.srv.store.Roll(); err != nil {
		return fmt.Errorf("cannot start a new log file: %w", err)
	}
	return nil
}

// ask requests a snapshot, unless one is still being written.
func (p *snapshots) ask() {
	select {
	case p.due <- struct{}{}:
	default:
		p.srv.log.Warn("Too busy to snap, skipping")
	}
}
