package tree

import (
	"fmt"

	"bellwether/internal/quota"
	"bellwether/wire"
)

// Observation is something that operators should know: QuotaExceeded, QuotaUnreadable,
// DigestMismatch or DigestNotReached. String returns the text that the log prints.
type Observation interface{ String() string }

// observationsMax limits what is kept between two calls of Observations. Further ones are
// dropped.
const observationsMax = 256

func (t *Tree) observe(h Observation) {
	if len(t.observations) < observationsMax {
		t.observations = append(t.observations, h)
	}
}

// Observations returns what was observed since the last call. Only the goroutine that
// prepares and applies may call it.
func (t *Tree) Observations() []Observation {
	h := t.observations
	t.observations = nil
	return h
}

// DigestMismatch reports that the tree's digest after a transaction differs from the one
// that the leader or the snapshot gives.
type DigestMismatch struct {
	Zxid       wire.Zxid
	Ours, Told uint64
}

func (h DigestMismatch) String() string {
	return fmt.Sprintf("digests are not matching at zxid %v: %d here, %d expected; this server's tree differs from its leader's",
		h.Zxid, int64(h.Ours), int64(h.Told))
}

// DigestNotReached reports that the log ends before the transaction at which the snapshot
// was complete.
type DigestNotReached struct{ Last, Want wire.Zxid }

func (h DigestNotReached) String() string {
	return fmt.Sprintf("the log ends at zxid %v, before %v at which the snapshot was complete: the tree may hold parts of lost transactions",
		h.Last, h.Want)
}

// QuotaExceeded reports a write that took the usage below Path over a limit. If Hard is
// set and quotas are enforced the write was refused.
type QuotaExceeded struct {
	Path        string
	Bytes       bool // the limit is one of bytes of data; otherwise of znodes
	Hard        bool
	Used, Limit int64
}

func (h QuotaExceeded) String() string {
	what, kind := "znodes", "soft"
	if h.Bytes {
		what = "bytes"
	}
	if h.Hard {
		kind = "hard"
	}
	return fmt.Sprintf("quota exceeded: %s has %d %s, %s limit %d", h.Path, h.Used, what, kind, h.Limit)
}

// QuotaUnreadable reports a write below Path that was refused because the text of the
// quota's limits cannot be parsed.
type QuotaUnreadable struct{ Path, Limits string }

func (h QuotaUnreadable) String() string {
	const shown = 100 // bytes of the text
	return fmt.Sprintf("quota of %s cannot be read: %s/%s holds %.*q; writes below %s are refused until it is set anew or deleted",
		h.Path, quota.Root+h.Path, quota.LimitsName, shown, h.Limits, h.Path)
}
