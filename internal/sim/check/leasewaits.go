package check

import (
	"fmt"

	"bellwether/wire"
)

// leaseWaits checks that no more than one candidate of a semaphore waits for any lease, so that a
// lease that becomes free wakes one client. A candidate whose session is over does not count.
type leaseWaits struct {
	premise
	waits map[int]wire.SessionID // by client
}

func newLeaseWaits() *leaseWaits { return &leaseWaits{waits: map[int]wire.SessionID{}} }

func (*leaseWaits) Name() string { return "LeaseWaits" }

func (c *leaseWaits) See(o any) string {
	switch e := o.(type) {
	case Awaits:
		if delete(c.waits, e.Client); e.Any {
			return c.begins(e)
		}
	case Committed:
		if e.Txn.Type == wire.OpCloseSession {
			for client, session := range c.waits {
				if session == e.Txn.Session {
					delete(c.waits, client)
				}
			}
		}
	}
	return ""
}

func (c *leaseWaits) begins(e Awaits) string {
	c.count()
	for other := range c.waits {
		return fmt.Sprintf("candidates %d and %d wait for any lease at the same time, so that one lease wakes both", other, e.Client)
	}
	c.waits[e.Client] = e.Session
	return ""
}
