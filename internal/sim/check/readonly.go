package check

import (
	"fmt"

	"bellwether/wire"
)

// onlyCommitted checks that a server without a quorum shows only states that were
// committed, and refuses writes and syncs. A server that serves in a term answers no
// read-only session. The rule that no client sees less than it has seen before, on any
// server, belongs to sessionOrder.
type onlyCommitted struct{ history *History }

func (onlyCommitted) Name() string { return "OnlyCommitted" }

func (c onlyCommitted) See(o any) string {
	switch e := o.(type) {
	case ReadAlone:
		if e.Standing.Serving {
			return fmt.Sprintf("server %d answers a read-only session, but serves: %+v", e.Server, e.Standing)
		}
		i, known := c.history.Place(e.Zxid)
		if !known {
			return fmt.Sprintf("server %d shows %v without a quorum, which is not committed", e.Server, e.Zxid)
		}
		if want := c.history.Entries[i].Digest; e.Digest != want {
			return fmt.Sprintf("server %d shows %v with digest %x without a quorum, others have %x", e.Server, e.Zxid, e.Digest, want)
		}
	case Answered:
		if err := e.Header.Err; e.NoQuorum && (e.Op.IsWrite() || e.Op == wire.OpSync) && err != wire.ErrNotReadOnly {
			return fmt.Sprintf("client %d asked for %v without a quorum and is answered %v", e.Client, e.Op, err)
		}
	}
	return ""
}
