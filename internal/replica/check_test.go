package replica

import (
	"cmp"
	"errors"
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// check reports the first invariant of the connections that does not hold. The tests
// call it after each step.
func (r *Replica) check() error {
	for id, c := range r.conns {
		switch {
		case c.id != id || c.ended:
			return fmt.Errorf("connection %d is kept as %d, ended: %v", c.id, id, c.ended)
		case c.session == 0 && c.waiting.Len() > 0 && r.member == nil:
			return fmt.Errorf("connection %d has %d requests and no session", id, c.waiting.Len())
		}
		for i := range c.waiting.Len() {
			if q := *c.waiting.At(i); q.Conn != id {
				return fmt.Errorf("connection %d holds request %d of connection %d", id, q.Xid, q.Conn)
			}
		}
		if f := c.waiting.First(); f != nil && !(*f).pending() {
			return fmt.Errorf("connection %d: request %d waits for nothing", id, (*f).Xid)
		}
	}
	for session, c := range r.owners {
		if c.session != session || r.conns[c.id] != c {
			return fmt.Errorf("session %v belongs to connection %d, which has session %v", session, c.id, c.session)
		}
	}
	count := 0
	for session, list := range r.abandoned.requests {
		if len(list) == 0 || session == 0 {
			return fmt.Errorf("session %v has %d abandoned requests", session, len(list))
		}
		count += len(list)
	}
	if count != r.abandoned.count {
		return fmt.Errorf("%d abandoned requests are counted as %d", count, r.abandoned.count)
	}
	return cmp.Or(r.checkExpiry(), r.checkMasters())
}

// checkExpiry reports a session whose end nobody decides about, or whose end was decided before.
func (r *Replica) checkExpiry() (err error) {
	waiting := map[wire.SessionID]bool{}
	for _, b := range r.locals.expiry.Buckets() {
		for _, id := range b.Sessions {
			if waiting[id] = true; !r.locals.has(id) {
				err = fmt.Errorf("the local session %v expires, and is not open", id)
			}
		}
	}
	for id, l := range r.locals.open {
		if !l.upgrading && !waiting[id] {
			err = fmt.Errorf("the local session %v never expires", id)
		}
	}
	if !r.decides() {
		return err
	}
	waiting = map[wire.SessionID]bool{}
	for _, b := range r.expiry.Buckets() {
		for _, id := range b.Sessions {
			if _, open := r.tree.Session(id); !open {
				err = fmt.Errorf("session %v expires, and is not open", id)
			}
			waiting[id] = true
		}
	}
	turns := map[wire.SessionID]bool{}
	for i := range r.turns.Len() {
		turns[*r.turns.At(i)] = true
	}
	for id := range r.doomed {
		if waiting[id] || r.ending[id] || !turns[id] {
			err = fmt.Errorf("session %v has expired; it expires again: %v; its end is proposed: %v; it has a turn: %v", id, waiting[id], r.ending[id], turns[id])
		}
	}
	r.tree.Sessions(func(id wire.SessionID, _ int32) {
		if !waiting[id] && !r.ending[id] && !r.isDoomed(id) {
			err = fmt.Errorf("session %v never expires", id)
		}
	})
	return err
}

// checkMasters reports a learner of this term that is connected to another server than the one that it has chosen.
func (r *Replica) checkMasters() error {
	m := r.member
	if m == nil || m.role == peerwire.Looking || m.usesMasters() || m.masters.at == peerwire.NoServer {
		return nil
	}
	return fmt.Errorf("the server is %v, and has chosen server %d to observe", m.role, m.masters.at)
}

// resting reports what is left of requests and faults on a server of an ensemble that serves while no client asks anything.
func (r *Replica) resting() error {
	m := r.member
	var errs []error
	for what, n := range map[string]int{
		"requests for sessions": len(r.creating), "ends of sessions under way": len(r.ending), "ends of sessions to propose": len(r.doomed),
		"abandoned requests": r.abandoned.count, "outputs": r.outputs.Len(), "effects": m.effects.Len(), "postponed events": len(m.postponed),
		"connections that wait for a leader": len(m.held), "connections that wait for the leader's answer": len(m.asking),
		"connections that wait for their sync": len(m.moved), "syncs": len(m.syncs), "held pings": m.pings.Len(), "failed terms": len(m.failed),
	} {
		if n != 0 {
			errs = append(errs, fmt.Errorf("%d %s are left", n, what))
		}
	}
	for id, c := range r.conns {
		if c.waiting.Len() > 0 {
			errs = append(errs, fmt.Errorf("%d requests of connection %d are left", c.waiting.Len(), id))
		}
	}
	if r.stall.active() || r.health.noRoom || m.disabled != "" || m.told != "" || m.joining != Never || m.unsettled {
		errs = append(errs, fmt.Errorf("stall %+v, no room: %v, disabled: %q, told the leader %q, joining since %d, unsettled: %v",
			r.stall, r.health.noRoom, m.disabled, m.told, m.joining, m.unsettled))
	}
	if e := m.epoch; m.accepted != e || m.current != e || m.saved.accepted != e || m.saved.current != e || m.leader != nil && m.learner != nil {
		errs = append(errs, fmt.Errorf("epoch %d: accepted %d, current %d, saved %+v; leads: %v, follows: %v", e, m.accepted, m.current, m.saved, m.leader != nil, m.learner != nil))
	}
	return errors.Join(errs...)
}
