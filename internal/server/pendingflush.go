package server

import "sync"

// pendingFlush lists the connections whose output the loop must flush at the end of its
// batch.
type pendingFlush struct {
	mu    sync.Mutex
	conns []*conn
}

// add puts a connection on the list.
func (d *pendingFlush) add(c *conn) {
	d.mu.Lock()
	d.conns = append(d.conns, c)
	d.mu.Unlock()
}

// flush starts a goroutine for each listed connection, which writes its output. So a
// client that does not read delays no other client.
func (d *pendingFlush) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.conns {
		d.conns[i] = nil
		c.srv.writers.Add(1)
		go c.flushAside()
	}
	d.conns = d.conns[:0]
}

// flushAside runs flush as a goroutine that the end of the server waits for.
func (c *conn) flushAside() {
	defer c.srv.writers.Done()
	c.flush()
}
