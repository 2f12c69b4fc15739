package server

import (
	"testing"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// TestEventsAllocateOneRecord: an event of a fan-out costs one allocation on each connection: the record
// that the connection keeps until it sends the event. Encoding it allocates nothing.
func TestEventsAllocateOneRecord(t *testing.T) {
	c := &conn{srv: &Server{stats: newStats()}}
	c.out.budget, c.out.listed = testBudget(), true // listed: the loop sends it
	c.out.writeEnded.L = &c.out.mu
	event := tree.Event{Type: wire.EventNodeDataChanged, Path: "/service/candidates/n_0000000001", Zxid: 7}
	deliver := func() {
		for range 8 {
			c.Notify(event)
		}
		c.out.mu.Lock()
		defer c.out.mu.Unlock()
		if b := c.out.take(); b != nil {
			c.out.written(b)
		}
	}
	for range 3 {
		deliver()
	}
	if c.out.closed {
		t.Fatal("the connection takes no events")
	}
	if n := testing.AllocsPerRun(100, deliver); n > 8 {
		t.Errorf("%v allocations for 8 events", n)
	}
}
