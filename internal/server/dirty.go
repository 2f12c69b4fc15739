package server

import "sync"

// dirty lists the connections with output that the loop has queued.
type dirty struct {
	mu    sync.Mutex
	conns []*conn
}

// add puts a connection on the list.
func (d *dirty) add(c *conn) {
	d.mu.Lock()
	d.conns = append(d.conns, c)
	d.mu.Unlock()
}

// flush writes what the listed connections are owed, each on a goroutine of
// its own that lives no longer than that: a client that does not read holds up
// nobody else.
func (d *dirty) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.conns {
		d.conns[i] = nil
		c.srv.writers.Add(1)
		go c.flushAside()
	}
	d.conns = d.conns[:0]
}

// flushAside is flush on a goroutine of its own.
func (c *conn) flushAside() {
	defer c.srv.writers.Done()
	c.flush()
}
