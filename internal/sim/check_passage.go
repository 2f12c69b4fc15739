package sim

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
)

// passages checks barriers. A client that passes or has opened a barrier does so only if
// the barrier was open at some moment since the client began. A client that has closed it
// does so only if it was closed at such a moment.
type passages struct {
	n                int // number of transactions so far
	closed           bool
	wasOpen, wasShut int // the number of the last transaction after which the barrier was open, or closed
	began            map[*worker]int
}

func newPassages() *passages { return &passages{wasShut: -1, began: map[*worker]int{}} }

func (*passages) Name() string { return "Passages" }

func (c *passages) See(o any) string {
	switch e := o.(type) {
	case check.Committed:
		c.n++
		for _, body := range changesOf(e.Txn) {
			c.change(body)
		}
		if c.closed {
			c.wasShut = c.n
		} else {
			c.wasOpen = c.n
		}
	case workBegan:
		c.began[e.w] = c.n
	case workEnded:
		if m, ok := e.m.(*barrier.Barrier); ok && !e.crashed && m.Outcome() == claim.Succeeded {
			return c.ended(e.w, m.Act())
		}
	}
	return ""
}

func (c *passages) change(body record.TxnBody) {
	switch b := body.(type) {
	case *record.CreateTxn:
		c.closed = c.closed || b.Path == barrierPath
	case *record.DeleteTxn:
		c.closed = c.closed && b.Path != barrierPath
	}
}

func (c *passages) ended(w *worker, act barrier.BarrierAct) string {
	was, want := c.wasOpen, "open"
	if act == barrier.CloseBarrier {
		was, want = c.wasShut, "closed"
	}
	if was < c.began[w] {
		return fmt.Sprintf("worker %d has done %d, and the barrier was not %s since transaction %d", w.c.id, act, want, c.began[w])
	}
	return ""
}
