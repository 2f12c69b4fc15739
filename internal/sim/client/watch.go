package client

import (
	"bellwether/internal/sim/check"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// watch is a one-shot watch of a client that has not fired yet.
type watch struct {
	check.Watch
	tell func(wire.EventType) // nil: no state machine is told
	// connectionOnly says that the watch ends with its connection and is not set again.
	connectionOnly bool
}

// setAgain sets the watches of the session again on a new connection.
func (c *Client) setAgain() {
	if len(c.watches) == 0 {
		return
	}
	q := wire.SetWatchesRequest{RelativeZxid: c.Seen, Data: []string{}, Exist: []string{}, Child: []string{}}
	for _, w := range c.watches {
		switch {
		case w.Children:
			q.Child = append(q.Child, w.Path)
		case w.Missing:
			q.Exist = append(q.Exist, w.Path)
		default:
			q.Data = append(q.Data, w.Path)
		}
	}
	c.group.Reach(WatchesAgain)
	c.Send(&Call{Op: wire.OpSetWatches, Body: wire.Append(nil, &q)})
}

// setWatch records a watch that the server has set with a read.
func (c *Client) setWatch(k *Call) {
	w := *k.watch
	w.Zxid = k.Zxid
	switch {
	case k.Err == wire.OK:
	case k.Err == wire.ErrNoNode && k.Op == wire.OpExists:
		w.Missing = true
	default:
		return
	}
	for _, o := range c.watches {
		if o.Path == w.Path && o.Children == w.Children && o.tell == nil && w.tell == nil {
			return // the server keeps only one watch for the two requests
		}
	}
	c.watches = append(c.watches, w)
}

// takeEvent takes an event and removes the watches that it ends.
func (c *Client) takeEvent(e tree.Event) {
	if c.group.Detailed() {
		c.group.Detail("client %d is told %v of %s at %v", c.ID, e.Type, e.Path, e.Zxid)
	}
	c.group.See(check.Notified{Watching: c.watching(), Client: c.ID, Connection: c.Connections, Event: e})
	var tells []func(wire.EventType)
	kept := c.watches[:0]
	for _, w := range c.watches {
		if !w.Meets(e) {
			kept = append(kept, w)
		} else if w.tell != nil {
			tells = append(tells, w.tell)
		}
	}
	c.watches, c.lastEvent = kept, max(c.lastEvent, e.Zxid)
	for _, tell := range tells {
		tell(e.Type)
	}
	for _, w := range c.treeWatches {
		w.take(e)
	}
}

// watching returns what the client watches, as the checkers see it.
func (c *Client) watching() check.Watching {
	w := &c.shown
	w.Watches, w.Trees = w.Watches[:0], w.Trees[:0]
	for i := range c.watches {
		w.Watches = append(w.Watches, c.watches[i].Watch)
	}
	for _, s := range c.treeWatches {
		w.Trees = append(w.Trees, s.TreeWatch)
	}
	return *w
}
