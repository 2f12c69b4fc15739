package zk

import (
	"context"
	"io"
	"time"
)

// The first and the longest pause before a client that is connected to a read-only server
// asks the next server whether it has a quorum. Each pause is twice as long as the one
// before.
const (
	seekFirst = 100 * time.Millisecond
	seekMax   = time.Minute
)

// seekWritable does nothing unless the link is to a read-only server. Then it asks the
// other servers in turn whether they have a quorum, and moves the client to the first
// that does. The context must end with the link. The returned channel is closed when no
// more servers are asked.
func (c *Client) seekWritable(ctx context.Context, l *link) <-chan struct{} {
	done := make(chan struct{})
	if !l.readOnly {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		c.seek(ctx, l)
	}()
	return done
}

func (c *Client) seek(ctx context.Context, l *link) {
	for pause := seekFirst; ; pause = min(2*pause, seekMax) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		s := c.nextServer()
		if !c.asksWritable(ctx, s) {
			continue
		}
		c.mu.Lock()
		c.prefer, l.leaving = &s, true
		c.mu.Unlock()
		c.wakeWriter()
		return
	}
}

// asksWritable is like isWritable, but on a goroutine of its own, because the functions of the
// options may close the client.
func (c *Client) asksWritable(ctx context.Context, s server) bool {
	yes := make(chan bool, 1)
	c.tidying.Go(func() { yes <- c.isWritable(ctx, s) })
	select {
	case is := <-yes:
		return is
	case <-ctx.Done():
		return false
	}
}

// isWritable asks one server with the four-letter word isro, which needs no session.
func (c *Client) isWritable(ctx context.Context, s server) bool {
	ctx, cancel := context.WithTimeout(ctx, c.connectTime(1))
	defer cancel()
	addresses, err := c.resolve(ctx, s)
	if err != nil {
		return false
	}
	for _, a := range addresses {
		conn, stop, err := c.dialUntil(ctx, a)
		if err != nil {
			continue
		}
		var answer [2]byte
		if _, err = io.WriteString(conn, "isro"); err == nil {
			_, err = io.ReadFull(conn, answer[:])
		}
		stop()
		conn.Close()
		if err == nil && string(answer[:]) == "rw" {
			return true
		}
	}
	return false
}
