package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/internal/claim/queues"
	"bellwether/internal/record"
	"bellwether/wire"
)

// items checks queues. An item that was put is in the queue once. One consumer takes or
// acknowledges it, and that consumer is told so. In a work queue, where items are claimed
// and not removed, only the session that holds the claim ends it, a consumer asks for no item
// that it has found claimed, and it has no other claim when it has taken one. Among the items that a
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
	did     map[wire.SessionID][]string            // items that a session has removed or acknowledged and that its operation has not reported yet
	over    map[wire.SessionID]bool                // sessions whose clients were told that they are over
}

func newItems() *items {
	return &items{
		put: map[string]bool{}, refused: map[string]bool{}, there: map[string]string{}, told: map[string]bool{},
		claims: map[string]wire.SessionID{}, found: map[wire.SessionID]map[string][]string{}, did: map[wire.SessionID][]string{}, over: map[wire.SessionID]bool{},
	}
}

func (*items) Name() string { return "Items" }

func (c *items) See(o any) string {
	switch e := o.(type) {
	case Issued:
		return c.asked(e)
	case Answered:
		c.listed(e)
	case Committed:
		return c.committed(e.Txn)
	case TurnedAway:
		c.over[e.Session] = true
	case WorkEnded:
		return c.ended(e)
	}
	return ""
}

// asked checks the request by which a consumer takes an item.
func (c *items) asked(e Issued) string {
	if e.Op != wire.OpMulti || ParentOf(e.Path) != QueueItems {
		return ""
	}
	if name := path.Base(e.Path); slices.Contains(c.found[e.Session][QueueClaims], name) {
		return fmt.Sprintf("session %v asks for %s, but has found it claimed", e.Session, name)
	}
	return ""
}

// listed records the items that a consumer has found.
func (c *items) listed(e Answered) {
	r, ok := e.Record.(*wire.ChildrenStatResponse)
	if !ok || e.Path != QueueItems && e.Path != QueueClaims {
		return
	}
	if c.found[e.Session] == nil {
		c.found[e.Session] = map[string][]string{}
	}
	c.found[e.Session][e.Path] = r.Children
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
		case QueueItems:
			return c.made(name, string(b.Data))
		case QueueClaims:
			return c.claim(session, name)
		}
	case *record.DeleteTxn:
		switch name := path.Base(b.Path); path.Dir(b.Path) {
		case QueueItems:
			return c.removed(session, name)
		case QueueClaims:
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
		return fmt.Sprintf("item %s is put, but its producer had reported that it was not", data)
	}
	c.put[data], c.there[name] = true, data
	return ""
}

func (c *items) claim(session wire.SessionID, name string) string {
	owner, taken := c.claims[name]
	switch _, ok := c.there[name]; {
	case taken:
		return fmt.Sprintf("%s is claimed by session %v and by session %v", name, owner, session)
	case !ok:
		return fmt.Sprintf("%s is claimed, but no such item exists", name)
	}
	c.claims[name], c.claimed = session, true
	return c.inOrder(session, name)
}

func (c *items) released(session wire.SessionID, name string) string {
	if owner := c.claims[name]; owner != session {
		return fmt.Sprintf("session %v ends the claim of session %v on %s", session, owner, name)
	}
	delete(c.claims, name)
	c.did[session] = append(c.did[session], name)
	return ""
}

// removed checks the removal of an item. In a work queue, the claim on the item must be removed
// first.
func (c *items) removed(session wire.SessionID, name string) string {
	owner, taken := c.claims[name]
	switch did := c.did[session]; {
	case taken:
		return fmt.Sprintf("%s is removed while session %v claims it", name, owner)
	case c.claimed && !slices.Contains(did, name):
		return fmt.Sprintf("%s is removed, but no session had claimed it", name)
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
	for _, n := range found[QueueItems] {
		if turn(n) < turn(name) && !slices.Contains(found[QueueClaims], n) {
			return fmt.Sprintf("session %v takes %s, but has found %s, which comes first", session, name, n)
		}
	}
	return ""
}

// ended compares what an operation reports with what it did.
func (c *items) ended(e WorkEnded) string {
	var did []string
	for _, s := range e.Sessions {
		did = append(did, c.did[s]...)
		delete(c.did, s)
	}
	if e.Crashed || e.Operation.Outcome() == claim.Unclear {
		return ""
	}
	done := e.Operation.Outcome() == claim.Succeeded
	switch m := e.Operation.(type) {
	case *queues.Put:
		c.refused[e.Item] = !done
		if done != c.put[e.Item] {
			return fmt.Sprintf("the producer of item %s reports the outcome %v, which is not what happened", e.Item, m.Outcome())
		}
	case *queues.Take:
		return c.took(e, m, did)
	case *queues.Acknowledgement:
		if done != (len(did) == 1) {
			return fmt.Sprintf("worker %d has acknowledged %v, but reports the outcome %v (%v)", e.Worker, did, m.Outcome(), m.Err())
		}
	}
	return ""
}

func (c *items) took(e WorkEnded, m *queues.Take, did []string) string {
	item, data, session := m.Taken()
	switch name := path.Base(item); {
	case m.Outcome() != claim.Succeeded:
		// A claim ends with its session, which may be over for its client before its end is committed.
		if !c.over[e.Session] {
			did = append(did, c.claimsOf([]wire.SessionID{e.Session})...)
		}
		if len(did) > 0 {
			return fmt.Sprintf("worker %d has taken %v, but reports that it has not", e.Worker, did)
		}
	case c.claimed: // the claim says which session may acknowledge the item
		if all := c.claimsOf([]wire.SessionID{session}); len(all) > 1 {
			return fmt.Sprintf("worker %d reports that it has taken %s, but has claimed %v", e.Worker, name, all)
		}
	case !slices.Equal(did, []string{name}):
		return fmt.Sprintf("worker %d has taken %v, but reports %s", e.Worker, did, name)
	case c.told[string(data)]:
		return fmt.Sprintf("item %s is taken by two consumers", data)
	default:
		c.told[string(data)] = true
	}
	return ""
}

// claimsOf returns the items that sessions claim at present, in order.
func (c *items) claimsOf(sessions []wire.SessionID) (names []string) {
	for n, s := range c.claims {
		if slices.Contains(sessions, s) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}
