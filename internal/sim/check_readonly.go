package sim

import (
	"fmt"

	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// onlyCommitted checks that a server without a quorum shows only states that were
// committed, and refuses writes and syncs. A server that serves in a term answers no
// read-only session. The rule that no client sees less than it has seen before, on any
// server, belongs to sessionOrder.
type onlyCommitted struct{ history *check.History }

func (onlyCommitted) Name() string { return "OnlyCommitted" }

func (c onlyCommitted) See(o any) string {
	switch e := o.(type) {
	case readAlone:
		if st := e.v.replica.Standing(); st.Serving {
			return fmt.Sprintf("server %d answers a read-only session, and is %+v", e.v.id, *st)
		}
		i, known := c.history.Place(e.zxid)
		if !known {
			return fmt.Sprintf("server %d shows %v without a quorum, which nobody has committed", e.v.id, e.zxid)
		}
		if want := c.history.Entries[i].Digest; e.digest != want {
			return fmt.Sprintf("server %d shows %v with digest %x without a quorum, others have %x", e.v.id, e.zxid, e.digest, want)
		}
	case answered:
		k := e.call
		if err := e.response.header.Err; k.client.lonely && (k.op.IsWrite() || k.op == wire.OpSync) && err != wire.ErrNotReadOnly {
			return fmt.Sprintf("client %d asked for %v without a quorum and is answered %v", k.client.id, k.op, err)
		}
	}
	return ""
}

// drawReadOnly draws Options.ReadOnly from the seed, unless it is set. It uses a random
// source of its own, so that other draws do not change.
func (o *Options) drawReadOnly() {
	if yes := (&random{o.Seed ^ 0x5ead}).chance(35); o.ReadOnly == 0 {
		o.ReadOnly = -1
		if yes {
			o.ReadOnly = 1
		}
	}
}

// renew drops the present session, which then expires, as a command does that runs again
// and again. The next session still must not see less than this one.
func (c *client) renew() { c.session, c.timeoutMS, c.watches = 0, 0, nil }
