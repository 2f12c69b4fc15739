package check

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/record"
)

// barrierPasses checks barriers. A client that passes or has opened a barrier does so only if
// the barrier was open at some moment since the client began. A client that has closed it
// does so only if it was closed at such a moment.
type barrierPasses struct {
	n                int // number of transactions so far
	closed           bool
	wasOpen, wasShut int // the number of the last transaction after which the barrier was open, or closed
	began            map[int]int
}

func newBarrierPasses() *barrierPasses { return &barrierPasses{wasShut: -1, began: map[int]int{}} }

func (*barrierPasses) Name() string { return "BarrierPasses" }

func (c *barrierPasses) See(o any) string {
	switch e := o.(type) {
	case Committed:
		c.n++
		for _, body := range changesOf(e.Txn) {
			c.change(body)
		}
		if c.closed {
			c.wasShut = c.n
		} else {
			c.wasOpen = c.n
		}
	case WorkBegan:
		c.began[e.Worker] = c.n
	case WorkEnded:
		if m, ok := e.Operation.(*barrier.Barrier); ok && !e.Crashed && m.Outcome() == claim.Succeeded {
			return c.ended(e.Worker, m.Act())
		}
	}
	return ""
}

func (c *barrierPasses) change(body record.TxnBody) {
	switch b := body.(type) {
	case *record.CreateTxn:
		c.closed = c.closed || b.Path == BarrierPath
	case *record.DeleteTxn:
		c.closed = c.closed && b.Path != BarrierPath
	}
}

func (c *barrierPasses) ended(worker int, act barrier.Act) string {
	was, want := c.wasOpen, "open"
	if act == barrier.CloseBarrier {
		was, want = c.wasShut, "closed"
	}
	if was < c.began[worker] {
		return fmt.Sprintf("worker %d has done operation %d, but the barrier was not %s since transaction %d", worker, act, want, c.began[worker])
	}
	return ""
}
