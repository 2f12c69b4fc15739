package sim

import (
	"fmt"

	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// onlyCommitted: what a server without a quorum shows is what servers with one
// have shown before, and nothing of it is shown any more once it serves in a
// term. That no client sees less than it has seen before, on whichever
// servers, is sessionOrder's.
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

// drawReadOnly lets the seed decide, beside the random source of everything else.
func (o *Options) drawReadOnly() {
	if yes := (&random{o.Seed ^ 0x5ead}).chance(35); o.ReadOnly == 0 {
		o.ReadOnly = -1
		if yes {
			o.ReadOnly = 1
		}
	}
}

// renew leaves the session of before to expire, as a command does that is run
// again and again: what was seen counts for the next one too.
func (c *client) renew() { c.session, c.timeoutMS, c.watches = 0, 0, nil }
