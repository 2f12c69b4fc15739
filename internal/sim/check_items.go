package sim

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/internal/claim/queues"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// items checks queues. An item that was put is in the queue once. One consumer takes or
// acknowledges it, and that consumer is told so. In a work queue, where items are claimed
// and not removed, only the session that holds the claim ends it. Among the items that a
// consumer has found, it takes the most urgent, and the oldest of those. What a producer or
// consumer reports about its operation is what it did.
type items struct {
	put     map[string]bool                        // data of all items ever put
	refused map[string]bool                        // data of items reported as not put
	there   map[string]string                      // data of the present items, by name
	told    map[string]bool                        // by data: a consumer was told that it has the item
	claims  map[string]wire.SessionID              // present claims, by the name of the item
	claimed bool                                   // items are claimed, not removed
	found   map[wire.SessionID]map[string][]string // the last list that the session read, by parent
	did     map[wire.SessionID][]string            // items that a session removed or acknowledged and whose operation does not know it yet
}

func newItems() *items {
	return &items{
		put: map[string]bool{}, refused: map[string]bool{}, there: map[string]string{}, told: map[string]bool{},
		claims: map[string]wire.SessionID{}, found: map[wire.SessionID]map[string][]string{}, did: map[wire.SessionID][]string{},
	}
}

func (*items) Name() string { return "Items" }

func (c *items) See(o any) string {
	switch e := o.(type) {
	case answered:
		c.listed(e)
	case check.Committed:
		return c.committed(e.Txn)
	case workEnded:
		return c.ended(e)
	}
	return ""
}

// listed records the items that a consumer has found.
func (c *items) listed(e answered) {
	r, ok := e.response.record.(*wire.ChildrenStatResponse)
	if !ok || e.call.path != queueItems && e.call.path != queueClaims {
		return
	}
	if c.found[e.call.session] == nil {
		c.found[e.call.session] = map[string][]string{}
	}
	c.found[e.call.session][e.call.path] = r.Children
}

func (c *items) committed(t *record.Txn) string {
	if t.Type == wire.OpCloseSession {
		for name, session := range c.claims {
			if session == t.Session {
				delete(c.claims, name)
			}
		}
		return ""
	}
	for _, body := range changesOf(t) {
		if wrong := c.changed(t.Session, body); wrong != "" {
			return wrong
		}
	}
	return ""
}

// changesOf returns the changes that a transaction contains.
func changesOf(t *record.Txn) []record.TxnBody {
	m, ok := t.Body.(*record.MultiTxn)
	switch {
	case !ok:
		return []record.TxnBody{t.Body}
	case m.Failed():
		return nil
	}
	var all []record.TxnBody
	for _, part := range m.Ops {
		all = append(all, part.Body)
	}
	return all
}

func (c *items) changed(session wire.SessionID, body record.TxnBody) string {
	switch b := body.(type) {
	case *record.CreateTxn:
		switch name := path.Base(b.Path); path.Dir(b.Path) {
		case queueItems:
			return c.made(name, string(b.Data))
		case queueClaims:
			return c.claim(session, name)
		}
	case *record.DeleteTxn:
		switch name := path.Base(b.Path); path.Dir(b.Path) {
		case queueItems:
			return c.removed(session, name)
		case queueClaims:
			return c.released(session, name)
		}
	}
	return ""
}

func (c *items) made(name, data string) string {
	switch {
	case c.put[data]:
		return fmt.Sprintf("item %s is put again", data)
	case c.refused[data]:
		return fmt.Sprintf("item %s is put, and was said not to be", data)
	}
	c.put[data], c.there[name] = true, data
	return ""
}

func (c *items) claim(session wire.SessionID, name string) string {
	owner, taken := c.claims[name]
	switch _, ok := c.there[name]; {
	case taken:
		return fmt.Sprintf("%s is claimed by session %v, and by %v", name, owner, session)
	case !ok:
		return fmt.Sprintf("%s is claimed, and is not there", name)
	}
	c.claims[name], c.claimed = session, true
	return c.inOrder(session, name)
}

func (c *items) released(session wire.SessionID, name string) string {
	if owner := c.claims[name]; owner != session {
		return fmt.Sprintf("session %v ends the claim of %v on %s", session, owner, name)
	}
	delete(c.claims, name)
	c.did[session] = append(c.did[session], name)
	return ""
}

// removed checks the removal of an item. A claimed item goes after its claim.
func (c *items) removed(session wire.SessionID, name string) string {
	owner, taken := c.claims[name]
	switch did := c.did[session]; {
	case taken:
		return fmt.Sprintf("%s goes while session %v claims it", name, owner)
	case c.claimed && !slices.Contains(did, name):
		return fmt.Sprintf("%s goes, and nobody had claimed it", name)
	}
	delete(c.there, name)
	if c.claimed {
		return ""
	}
	c.did[session] = append(c.did[session], name)
	return c.inOrder(session, name)
}

// inOrder checks that a consumer had found no item that comes before the one it takes.
func (c *items) inOrder(session wire.SessionID, name string) string {
	turn := func(n string) string { return n[max(strings.Index(n, "entry-"), 0):] } // the width of priority and number is fixed
	found := c.found[session]
	for _, n := range found[queueItems] {
		if turn(n) < turn(name) && !slices.Contains(found[queueClaims], n) {
			return fmt.Sprintf("session %v takes %s, and has found %s", session, name, n)
		}
	}
	return ""
}

// ended compares what an operation reports with what it did.
func (c *items) ended(e workEnded) string {
	var did []string
	for _, s := range e.w.sessions {
		did = append(did, c.did[s]...)
		delete(c.did, s)
	}
	if e.crashed || e.m.Outcome() == claim.Unclear {
		return ""
	}
	done := e.m.Outcome() == claim.Succeeded
	switch m := e.m.(type) {
	case *queues.Put:
		c.refused[e.w.data] = !done
		if done != c.put[e.w.data] {
			return fmt.Sprintf("item %s: the producer says that it has %v", e.w.data, m.Outcome())
		}
	case *queues.Take:
		return c.took(e, m, did)
	case *queues.Acknowledgement:
		if done != (len(did) == 1) {
			return fmt.Sprintf("worker %d has handed in %v, and says that it has %v (%v)", e.w.c.id, did, m.Outcome(), m.Err())
		}
	}
	return ""
}

func (c *items) took(e workEnded, m *queues.Take, did []string) string {
	item, data, _ := m.Taken()
	switch name := path.Base(item); {
	case m.Outcome() != claim.Succeeded:
		for n, s := range c.claims {
			if slices.Contains(e.w.sessions, s) {
				did = append(did, n)
			}
		}
		if len(did) > 0 {
			return fmt.Sprintf("worker %d has taken %v, and says that it has not", e.w.c.id, did)
		}
	case c.claimed: // the claim says which session may acknowledge the item
	case !slices.Equal(did, []string{name}):
		return fmt.Sprintf("worker %d has taken %v, and says that it is %s", e.w.c.id, did, name)
	case c.told[string(data)]:
		return fmt.Sprintf("item %s is taken by two", data)
	default:
		c.told[string(data)] = true
	}
	return ""
}
