package server

import (
	"slices"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/driver"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/wire"
)

// waits reports whether an event of a kind is in the inbox.
func (b *inbox) waits(is func(event) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.events, is)
}

// TestRequestBeforeARefusal: a leader's disk refuses a proposal in the same batch in
// which a later request arrives. The proposal of that request is void too, and does not
// reach the log after a gap.
func TestRequestBeforeARefusal(t *testing.T) {
	g := newTestEnsemble(t, 1, 0, false)
	g.change = func(c *config.Config) { c.Ensemble.StandaloneEnabled = false }
	m := g.servers[0]
	disk := m.fs.(*store.Mem)
	fs := &stallFS{FS: disk}
	m.fs = fs
	g.start(m)
	g.settled()
	c := m.connect()
	c.create("/a", "")

	before, release := fs.count(), fs.stall()
	c.send(wire.OpCreate, create("/fits", ""))
	eventually(t, "the first write is at the disk", func() bool { return fs.count() > before })
	disk.SetSpace(0)
	made := m.stats.proposals.Value()
	c.send(wire.OpCreate, create("/big", string(make([]byte, 4000))))
	eventually(t, "a write that does not fit waits behind it", func() bool { return m.stats.proposals.Value() > made })
	thaw := m.Freeze()
	c.send(wire.OpCreate, create("/late", ""))
	eventually(t, "a request waits for the loop", func() bool { return m.inbox.waits(asks) })
	release()
	eventually(t, "the refusal waits behind it", func() bool { return m.inbox.waits(func(e event) bool { return driver.Refuses(e.event) }) })
	thaw()

	eventually(t, "it knows that its disk is full", func() bool { return m.Status().ReadOnly })
	disk.SetSpace(-1)
	g.settled()
	m.connect().create("/again", "")
	g.stopped(m)
	if r, err := store.Check(fs, store.Options{DataDir: m.dir, LogDir: m.dir}); err != nil || len(r.Damage) > 0 {
		t.Errorf("the disk: %v, %+v", err, r)
	}
}

// asks reports whether an event is a request of a client.
func asks(e event) bool {
	_, ok := e.event.(*replica.Request)
	return ok
}
