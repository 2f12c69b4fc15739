package sim

import "bellwether/wire"

// RunUntil lets things happen until a condition holds, for so many µs at most.
// It reports whether the condition holds and no rule is broken.
func (s *Sim) RunUntil(holds func() bool, within int64) bool {
	for end := s.now + within; !holds(); {
		if s.now > end || !s.step() {
			return false
		}
	}
	return s.failed == nil
}

// RunFor lets things happen for so many µs.
func (s *Sim) RunFor(d int64) bool {
	end := s.now + d
	return s.RunUntil(func() bool { return s.now >= end }, d+second)
}

// Failed is the rule that was broken, nil if none is.
func (s *Sim) Failed() error {
	if s.failed == nil {
		return nil
	}
	return s.failed
}

// leader is the established leader of the latest epoch, nil if there is none.
func (s *Sim) leader() (found *server) {
	for _, v := range s.servers {
		if v.up && v.leads() && (found == nil || v.standing.Epoch > found.standing.Epoch) {
			found = v
		}
	}
	return found
}

// scripted adds a client that connects to one server alone and does nothing by
// itself; nil: to any.
func (s *Sim) scripted(only *server) *client {
	c := &client{sim: s, id: len(s.clients) + 1, dice: s.dice.fork(), script: true, only: only}
	c.host = host{name: "scripted client", on: true, clock: newClock(0)}
	s.net.add(&c.host)
	s.clients = append(s.clients, c)
	c.connect()
	return c
}

// ask sends a request and returns the call, to see what becomes of it.
func (c *client) ask(k *call) *call {
	c.send(k)
	return k
}

// setting is a request to write.
func (c *client) setting(path string) *call {
	v := c.mark()
	return &call{op: wire.OpSetData, path: path, value: v, body: wire.Append(nil, &wire.SetDataRequest{Path: path, Data: []byte(v), Version: -1})}
}

// making is a request to create a znode.
func (c *client) making(path string) *call {
	return &call{op: wire.OpCreate, path: path, value: c.mark(), body: wire.Append(nil, &wire.CreateRequest{
		Path: path, Data: []byte(c.mark()), ACL: wire.OpenACL(),
	})}
}

// syncing is a request for the present.
func syncing(path string) *call {
	return &call{op: wire.OpSync, path: path, body: wire.Append(nil, &wire.PathRequest{Path: path})}
}
