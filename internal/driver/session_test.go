package driver

import (
	"bytes"
	"sync/atomic"
	"testing"

	"bellwether/internal/replica"
	"bellwether/wire"
)

// tick steps a Tick in which one session was heard from, and returns what the replica was
// told.
func tick(b *Batch, core *fakeCore, h *Heard, now int64) string {
	core.out.Reset()
	b.Begin(replica.Time{Mono: now}, 0, true)
	for s := b.Next(); s != BatchDone; s = b.Next() {
		if s == Tick {
			b.Hear(h, 7, 100)
			b.Tick()
		}
	}
	return core.out.String()
}

// TestExpiringSessionIsSealed: a session whose timeout is over is sealed until the Tick has decided about
// it. If the Tick ends the session, the session stays sealed. If that end is taken back, it is unsealed.
func TestExpiringSessionIsSealed(t *testing.T) {
	core := &fakeCore{out: new(bytes.Buffer), ends: map[wire.SessionID]bool{}}
	core.readys = []replica.Ready{{Wake: replica.Never}} // the Readys that follow contain no Wake
	b := NewBatch(core, nil)
	cell := new(atomic.Int64)
	h := &Heard{LastHeard: cell}
	tick(b, core, h, 0)
	for _, c := range []struct {
		name       string
		heard, now int64
		ends       bool
		told       string
		left       int64
	}{
		{name: "heard from", heard: 5, now: 20, told: "    replica: touched [{0x7 5}]\n    replica: Tick\n", left: 5},
		{name: "nothing new", heard: 5, now: 40, told: "    replica: touched []\n    replica: Tick\n", left: 5},
		{name: "late, but the replica lets it live", heard: 5, now: 200, told: "    replica: touched []\n    replica: Tick\n", left: 5},
		{name: "it expires", heard: 5, now: 300, ends: true, told: "    replica: touched []\n    replica: Tick\n", left: Sealed},
		{name: "its end is on its way", heard: Sealed, now: 320, ends: true, told: "    replica: touched []\n    replica: Tick\n", left: Sealed},
		{name: "its end was taken back", heard: Sealed, now: 340, told: "    replica: touched [{0x7 340}]\n    replica: Tick\n", left: 340},
	} {
		cell.Store(c.heard)
		core.ends[7] = c.ends
		if got := tick(b, core, h, c.now); got != c.told {
			t.Errorf("%s: the replica was told\n%s, want\n%s", c.name, got, c.told)
		}
		if got := cell.Load(); got != c.left {
			t.Errorf("%s: the cell holds %d, want %d", c.name, got, c.left)
		}
		if at, ok := h.Unreported(); ok {
			t.Errorf("%s: %d is not reported", c.name, at)
		}
	}
	cell.Store(400)
	if at, ok := h.Unreported(); !ok || at != 400 {
		t.Errorf("unreported: %d, %v", at, ok)
	}
}

// racingCell is a LastHeard that a reader raises just before the loop seals it.
type racingCell struct {
	atomic.Int64
	raise int64
}

// CompareAndSwap lets the reader act first.
func (c *racingCell) CompareAndSwap(old, now int64) bool {
	c.Store(c.raise)
	return c.Int64.CompareAndSwap(old, now)
}

// TestHeardJustBeforeTheSeal: a reader that hears from a client just before the session is sealed extends
// the session.
func TestHeardJustBeforeTheSeal(t *testing.T) {
	core := &fakeCore{out: new(bytes.Buffer)}
	core.readys = []replica.Ready{{Wake: replica.Never}}
	b := NewBatch(core, nil)
	h := &Heard{LastHeard: &racingCell{raise: 450}}
	tick(b, core, h, 0)
	if got := tick(b, core, h, 460); got != "    replica: touched [{0x7 450}]\n    replica: Tick\n" {
		t.Errorf("the replica was told\n%s", got)
	}
	if h.LastHeard.Load() != 450 {
		t.Errorf("the cell holds %d", h.LastHeard.Load())
	}
}

// TestSealedCellIsNotRaised: while a session is sealed, readers do not raise its LastHeard. They leave the
// requests of its client to the loop.
func TestSealedCellIsNotRaised(t *testing.T) {
	for _, c := range []struct {
		old, now, want int64
		ok             bool
	}{{5, 7, 7, true}, {7, 5, 7, true}, {0, 0, 0, true}} {
		if got, ok := Later(c.old, c.now); got != c.want || ok != c.ok {
			t.Errorf("%d at %d: %d, %v", c.old, c.now, got, ok)
		}
	}
	if _, ok := Later(Sealed, 7); ok {
		t.Error("a sealed cell may be raised")
	}
}

// TestRequestsThatWait: a request is answered without the loop only if it changes nothing, if its
// connection has no unanswered request, and while the server serves.
func TestRequestsThatWait(t *testing.T) {
	serving := Access{Serving: true}
	for _, c := range []struct {
		name   string
		access Access
		op     wire.OpCode
		waits  bool
	}{
		{"read", serving, wire.OpGetData, false},
		{"ping", serving, wire.OpPing, false},
		{"write", serving, wire.OpSetData, true},
		{"sync", serving, wire.OpSync, true},
		{"end of a session", serving, wire.OpCloseSession, true},
		{"read behind a write", Access{Serving: true, Unanswered: true}, wire.OpGetData, true},
		{"read behind the end of the session", Access{Serving: true, Closing: true}, wire.OpGetData, true},
		{"read while the session may expire", Access{Serving: true, Sealed: true}, wire.OpGetData, true},
		{"read without a leader", Access{}, wire.OpGetData, true},
		{"read of a read-only session", Access{ReadOnly: true}, wire.OpGetData, false},
		{"write of a read-only session", Access{ReadOnly: true}, wire.OpSetData, true},
	} {
		if got := c.access.Waits(c.op); got != c.waits {
			t.Errorf("%s: waits %v", c.name, got)
		}
	}
}

// TestLeaseNeedsBothClocks: a lease holds only while neither clock has passed its end.
func TestLeaseNeedsBothClocks(t *testing.T) {
	l := LeaseOf(1500, replica.Time{Mono: 1000, Wall: 90_000})
	for _, c := range []struct {
		now   replica.Time
		holds bool
	}{
		{replica.Time{Mono: 1500, Wall: 90_500}, true},
		{replica.Time{Mono: 1501, Wall: 90_500}, false},
		{replica.Time{Mono: 1500, Wall: 90_501}, false},
	} {
		if l.Holds(c.now) != c.holds {
			t.Errorf("at %+v it holds: %v", c.now, !c.holds)
		}
	}
	if !(Lease{Mono: replica.Never}).Holds(replica.Time{Mono: 1 << 40, Wall: 1 << 41}) {
		t.Error("the lease of a standalone server ends")
	}
}
