package check

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
	"bellwether/internal/record"
	"bellwether/wire"
)

// counts checks that a number grows by exactly the changes that were reported as counted.
// No two clients that count get the same sum, no id is given out twice, and a client that
// is told that nothing was counted has not counted.
type counts struct {
	sums map[string]map[int64]bool // by path, all sums so far; true: a client was told this sum
	last map[string]int64
	did  map[wire.SessionID][]string // paths that a session has changed and that its operation has not reported yet
	ids  map[int64]bool
}

func newCounts() *counts {
	return &counts{
		sums: map[string]map[int64]bool{CountPath: {}, IDsPath: {}}, last: map[string]int64{},
		did: map[wire.SessionID][]string{}, ids: map[int64]bool{},
	}
}

func (*counts) Name() string { return "Counts" }

func (c *counts) See(o any) string {
	switch e := o.(type) {
	case Committed:
		for _, body := range changesOf(e.Txn) {
			set, ok := body.(*record.SetDataTxn)
			if !ok || c.sums[set.Path] == nil {
				continue
			}
			if wrong := c.set(e.Txn.Session, set); wrong != "" {
				return wrong
			}
		}
	case WorkEnded:
		if m, ok := e.Operation.(*value.Change); ok {
			return c.ended(e, m)
		}
	case IDGiven:
		if c.ids[e.ID] {
			return fmt.Sprintf("id %d is given out twice", e.ID)
		}
		c.ids[e.ID] = true
	}
	return ""
}

// set checks that the number grows by one step.
func (c *counts) set(session wire.SessionID, set *record.SetDataTxn) string {
	sum, err := value.ParseCounter(value.DecimalCounter, set.Data)
	step := int64(1)
	if set.Path == IDsPath {
		step = IDBlock
	}
	if err != nil || sum != c.last[set.Path]+step {
		return fmt.Sprintf("%s changes from %d to %q, which is not one step", set.Path, c.last[set.Path], set.Data)
	}
	c.last[set.Path], c.sums[set.Path][sum] = sum, false
	c.did[session] = append(c.did[session], set.Path)
	return ""
}

// ended compares what an operation reports with what it did. It may have reserved more ids
// than it gives out.
func (c *counts) ended(e WorkEnded, m *value.Change) string {
	var did []string
	for _, s := range e.Sessions {
		did = append(did, c.did[s]...)
		delete(c.did, s)
	}
	ids := m.Path() == IDsPath
	switch {
	case len(did) > 1 && !ids:
		return fmt.Sprintf("worker %d has changed %v by one operation", e.Worker, did)
	case e.Crashed, m.Outcome() == claim.Unclear, ids && m.Outcome() != claim.Succeeded:
		return ""
	case (m.Outcome() == claim.Succeeded) != (len(did) > 0):
		return fmt.Sprintf("worker %d has changed %v, but reports the outcome %v", e.Worker, did, m.Outcome())
	case len(did) == 0:
		return ""
	}
	sum, err := value.ParseCounter(value.DecimalCounter, m.Value())
	told, there := c.sums[m.Path()][sum]
	if err != nil || told || !there {
		return fmt.Sprintf("worker %d gets the sum %q of %s, which another worker got or which never existed", e.Worker, m.Value(), m.Path())
	}
	c.sums[m.Path()][sum] = true
	return ""
}
