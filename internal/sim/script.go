package sim

import "bellwether/wire"

// leader returns the established leader of the latest epoch; nil: there is none.
func (s *Sim) leader() (found *server) {
	for _, v := range s.servers {
		if v.up && v.leads() && (found == nil || v.standing.Epoch > found.standing.Epoch) {
			found = v
		}
	}
	return found
}

// ask sends a request and returns the call, which later holds the answer.
func (c *client) ask(k *call) *call {
	c.send(k)
	return k
}

// making returns a request that creates a znode.
func (c *client) making(path string) *call {
	return &call{op: wire.OpCreate, path: path, value: c.mark(), body: wire.Append(nil, &wire.CreateRequest{
		Path: path, Data: []byte(c.mark()), ACL: wire.OpenACL(),
	})}
}
