package sim

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// counts checks that a number grows by exactly the changes that were reported as counted.
// No two clients that count get the same sum, no id is given out twice, and a client that
// is told that nothing was counted has not counted.
type counts struct {
	sums map[string]map[int64]bool // by path, all sums so far; true: a client was told this sum
	last map[string]int64
	did  map[wire.SessionID][]string // paths changed by a session whose operation does not know it yet
	ids  map[int64]bool
}

func newCounts() *counts {
	return &counts{
		sums: map[string]map[int64]bool{countPath: {}, idsPath: {}}, last: map[string]int64{},
		did: map[wire.SessionID][]string{}, ids: map[int64]bool{},
	}
}

func (*counts) Name() string { return "Counts" }

func (c *counts) See(o any) string {
	switch e := o.(type) {
	case check.Committed:
		for _, body := range changesOf(e.Txn) {
			set, ok := body.(*record.SetDataTxn)
			if !ok || c.sums[set.Path] == nil {
				continue
			}
			if wrong := c.set(e.Txn.Session, set); wrong != "" {
				return wrong
			}
		}
	case workEnded:
		if m, ok := e.m.(*value.Change); ok {
			return c.ended(e, m)
		}
	case idGiven:
		if c.ids[e.id] {
			return fmt.Sprintf("id %d is given out twice", e.id)
		}
		c.ids[e.id] = true
	}
	return ""
}

// set checks that the number grows by one step.
func (c *counts) set(session wire.SessionID, set *record.SetDataTxn) string {
	sum, err := value.DecimalCounter.Parse(set.Data)
	step := int64(1)
	if set.Path == idsPath {
		step = idBlock
	}
	if err != nil || sum != c.last[set.Path]+step {
		return fmt.Sprintf("%s goes from %d to %q", set.Path, c.last[set.Path], set.Data)
	}
	c.last[set.Path], c.sums[set.Path][sum] = sum, false
	c.did[session] = append(c.did[session], set.Path)
	return ""
}

// ended compares what an operation reports with what it did. It may have reserved more ids
// than it gives out.
func (c *counts) ended(e workEnded, m *value.Change) string {
	var did []string
	for _, s := range e.w.sessions {
		did = append(did, c.did[s]...)
		delete(c.did, s)
	}
	ids := m.Path() == idsPath
	switch {
	case len(did) > 1 && !ids:
		return fmt.Sprintf("worker %d has counted %v, by one change", e.w.c.id, did)
	case e.crashed, m.Outcome() == claim.Unclear, ids && m.Outcome() != claim.Succeeded:
		return ""
	case (m.Outcome() == claim.Succeeded) != (len(did) > 0):
		return fmt.Sprintf("worker %d has counted %v, and says that it has %v", e.w.c.id, did, m.Outcome())
	case len(did) == 0:
		return ""
	}
	sum, err := value.DecimalCounter.Parse(m.Value())
	told, there := c.sums[m.Path()][sum]
	if err != nil || told || !there {
		return fmt.Sprintf("worker %d is told the sum %q of %s, as another is, or it never was", e.w.c.id, m.Value(), m.Path())
	}
	c.sums[m.Path()][sum] = true
	return ""
}
