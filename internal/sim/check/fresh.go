package check

import (
	"fmt"

	"bellwether/wire"
)

// fresh checks that a client's sync, and a read behind it, show everything that any server had applied when the
// client sent the sync, whether its writer had got an answer or not. Servers of ZooKeeper do not promise that,
// because their leader does not ask whether it still leads.
type fresh struct {
	premise
	present Present
	history *History
	floors  map[int64]wire.Zxid // the end of the history when a request was sent, by the number of the request
}

func newFresh(p Present, h *History) *fresh {
	return &fresh{present: p, history: h, floors: map[int64]wire.Zxid{}}
}

func (*fresh) Name() string { return "Fresh" }

func (c *fresh) See(o any) string {
	switch e := o.(type) {
	case Issued:
		if e.Op == wire.OpSync || e.Synced {
			c.floors[e.N] = c.history.Last().Zxid
		}
	case Lost:
		delete(c.floors, e.N)
	case Answered:
		floor, asked := c.floors[e.N]
		delete(c.floors, e.N)
		known := e.Header.Err == wire.OK || e.Header.Err == wire.ErrNoNode
		if !asked || !known || e.NoQuorum || mixed(c.present) {
			return ""
		}
		c.count()
		if e.Header.Zxid < floor {
			return fmt.Sprintf("client %d sent %v %s when %v was committed, but the answer shows %v", e.Client, e.Op, e.Path, floor, e.Header.Zxid)
		}
	}
	return ""
}

// mixed reports whether servers of ZooKeeper take part.
func mixed(p Present) bool {
	for _, v := range p.Servers() {
		if v.Compatible {
			return true
		}
	}
	return false
}
