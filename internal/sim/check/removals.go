package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// removals checks that a leader removes unused containers, and znodes whose TTL is over, at no more than the
// configured rate: so many for each minute that has passed.
type removals struct {
	present Present
	leaders map[ensemble.ServerID]*remover
	several int // how often a leader has removed another znode in its term
}

// remover is a server that leads.
type remover struct {
	epoch   wire.Epoch
	mono    int64 // ms of its clock when it ticked last
	owing   int64 // what it may still remove, in ms times the rate
	removed bool  // it has removed something
}

func newRemovals(p Present) *removals {
	return &removals{present: p, leaders: map[ensemble.ServerID]*remover{}}
}

func (*removals) Name() string { return "Removals" }

// Met returns the count.
func (c *removals) Met() []Count {
	return []Count{{"a leader removes several znodes", c.several}}
}

// minuteMS is a minute in ms, and the price of one removal.
const minuteMS = 60_000

func (c *removals) See(o any) string {
	switch e := o.(type) {
	case Ticked:
		v := c.leaders[e.Server]
		if v == nil || v.epoch != e.Epoch {
			v = &remover{epoch: e.Epoch, mono: e.Mono}
			c.leaders[e.Server] = v
		}
		v.owing = min(v.owing, minuteMS) + (e.Mono-v.mono)*c.present.Recipe().RemovalsPerMinute // at most one removal is saved up
		v.mono = e.Mono
	case Restarted:
		delete(c.leaders, e.Server)
	case Standing:
		if !e.Serves {
			delete(c.leaders, e.Server) // it may log what it has removed as a leader
		}
	case Ordered:
		return c.ordered(&e)
	}
	return ""
}

// ordered takes what a leader logs.
func (c *removals) ordered(e *Ordered) string {
	v := c.leaders[e.Server]
	if v == nil {
		return ""
	}
	rate := c.present.Recipe().RemovalsPerMinute
	for _, t := range e.Duty.Append {
		if t.Type != wire.OpDeleteContainer || t.Zxid.Epoch() != v.epoch {
			continue
		}
		if v.removed {
			c.several++
		}
		v.removed = true
		if v.owing -= minuteMS; v.owing < 0 {
			return fmt.Sprintf("leader %d removes an unused znode by %v, but may remove only %d in a minute", e.Server, t.Zxid, rate)
		}
	}
	return ""
}
