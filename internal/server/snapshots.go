package server

import (
	"fmt"
	"math/rand/v2"
)

// snapshots decides when the tree is written to disk; the log writer owns it.
// Counted are transactions and bytes of the log since the last time; both
// limits have a random half, drawn anew each time, so that the servers of an
// ensemble do not write theirs in step.
type snapshots struct {
	srv   *Server
	rand  *rand.Rand
	due   chan<- struct{} // to the keeper, of one
	txns  int             // since the last roll
	count int             // the limit for txns
	bytes int64           // the limit for the bytes of the current log; 0: none
}

func newSnapshots(s *Server, seed uint64, due chan<- struct{}) *snapshots {
	p := &snapshots{srv: s, due: due, rand: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))}
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

// logged is called after each synced batch. When a snapshot is due the log
// is rolled first, so that the new one holds what the snapshot lacks.
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

// roll ends the current log file.
func (p *snapshots) roll() error {
	if err := p.srv.store.Roll(); err != nil {
		return fmt.Errorf("end of a log file: %w", err)
	}
	return nil
}

// ask has the keeper write a snapshot, unless it is still at the last one.
func (p *snapshots) ask() {
	select {
	case p.due <- struct{}{}:
	default:
		p.srv.log.Warn("Too busy to snap, skipping")
	}
}
