package replica

import "fmt"

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
	return nil
}
