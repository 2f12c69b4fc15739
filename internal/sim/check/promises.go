package check

import (
	"fmt"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/record"
	"bellwether/wire"
)

// promises checks each term against what is promised for it, whether it has a proof or not.
//
//   - The token is the zxid of the transaction by which the holder's session made its bid.
//   - A term does not begin after its deadline, and does not go on after it, whatever arrives then.
//   - A term does not begin with a bid that was deleted before the lease of its session had lapsed: a candidate looks
//     again behind a sync after a lapse.
//   - A term has a proof only if the session timeout allows one.
//   - A term lasts no longer than its window after the client has sent the latest ping that was answered, or after it
//     has got its session: T - D - 1% with a proof, and two thirds of T without. T is the smallest timeout of
//     the session that its client was ever told.
//   - The time for which a bid is known to exist lasts no longer than a term, ends with the session, and does not
//     begin again when it has ended.
//   - A write that the bid guards is carried out only while the bid exists.
//
// Claims and PossibleLeaders check what only a proof promises.
type promises struct {
	present Present
	history *History
	alive   map[wire.SessionID]int64         // µs at which the client sent the latest ping that was answered, or got its session
	bids    map[wire.Zxid]string             // bids by token
	given   map[wire.SessionID]time.Duration // the smallest timeout that the client of a session was told
	deleted map[string]int64                 // bids that were deleted by a transaction of their own, and when, in µs
	met     [promiseRules]int
}

// The premises of the rules.
const (
	termWithProof = iota
	termWithoutProof
	proofProlongs
	windowProlongs
	guardPasses
	timeoutGrown
	overdue
	stayLasts
	stayOver
	promiseRules
)

func newPromises(p Present, h *History) *promises {
	return &promises{present: p, history: h, alive: map[wire.SessionID]int64{}, bids: map[wire.Zxid]string{},
		given: map[wire.SessionID]time.Duration{}, deleted: map[string]int64{}}
}

func (*promises) Name() string { return "Promises" }

// Met returns the counts of the rules.
func (c *promises) Met() []Count {
	return []Count{{"a term with a proof begins", c.met[termWithProof]}, {"a term without a proof begins", c.met[termWithoutProof]},
		{"a term with a proof is prolonged", c.met[proofProlongs]}, {"a term without a proof is prolonged", c.met[windowProlongs]},
		{"a guarded write is carried out", c.met[guardPasses]},
		{"a term lasts in a session that has had a smaller timeout", c.met[timeoutGrown]},
		{"something reaches a candidate after the deadline of its term", c.met[overdue]},
		{"a bid is known to exist", c.met[stayLasts]}, {"a bid is not known to exist any more", c.met[stayOver]}}
}

func (c *promises) See(o any) string {
	switch e := o.(type) {
	case Attached:
		c.alive[e.Session] = max(c.alive[e.Session], c.present.Now())
	case Welcomed:
		if t := time.Duration(e.TimeoutMS) * time.Millisecond; c.given[e.Session] == 0 || t < c.given[e.Session] {
			c.given[e.Session] = t
		}
	case Answered:
		if e.Op == wire.OpPing && !e.NoQuorum {
			c.alive[e.Session] = max(c.alive[e.Session], e.Issued)
		}
	case TermBegan:
		return c.began(&e)
	case TermProven:
		if e.Left > 0 {
			c.met[prolongs(&e.Holder)]++
			return c.lasts(&e.Holder)
		}
	case Overdue:
		if c.met[overdue]++; e.Left > 0 {
			return fmt.Sprintf("the term of candidate %d lasts %v more, although its deadline had passed", e.Client, e.Left)
		}
	case Stayed:
		return c.stayed(&e)
	case Committed:
		if b, ok := e.Txn.Body.(*record.DeleteTxn); ok && (ParentOf(b.Path) == ElectionPath || ParentOf(b.Path) == LinePath) {
			c.deleted[b.Path] = c.present.Now()
		}
		if token, ok := guardedWrite(e.Txn); ok {
			return c.guarded(token, e.Txn)
		}
	}
	return ""
}

func prolongs(k *Holder) int {
	if k.Proven {
		return proofProlongs
	}
	return windowProlongs
}

func (c *promises) began(e *TermBegan) string {
	kind := termWithoutProof
	if e.Proven {
		kind = termWithProof
	}
	c.met[kind]++
	c.bids[e.Token] = e.Bid
	i, known := c.history.Index[e.Token]
	at, deleted := c.deleted[e.Bid]
	switch {
	case e.Left <= 0:
		return fmt.Sprintf("a term of candidate %d begins after its deadline", e.Client)
	case deleted && at < e.LapsedAt:
		return fmt.Sprintf("candidate %d gets token %v, but its bid was deleted %v before its lease was found lapsed, and it has not looked again",
			e.Client, e.Token, time.Duration(e.LapsedAt-at)*time.Microsecond)
	case !known:
		return fmt.Sprintf("candidate %d gets token %v, which is no transaction", e.Client, e.Token)
	case c.history.Entries[i].Txn.Session != e.Session:
		return fmt.Sprintf("candidate %d in session %v gets token %v, which is of session %v", e.Client, e.Session, e.Token, c.history.Entries[i].Txn.Session)
	case !creates(c.history.Entries[i].Txn, e.Bid):
		return fmt.Sprintf("candidate %d gets token %v, but that transaction has not made its bid %s", e.Client, e.Token, e.Bid)
	}
	return c.lasts(&e.Holder)
}

func creates(t *record.Txn, path string) bool {
	for _, body := range changesOf(t) {
		if b, ok := body.(*record.CreateTxn); ok && b.Path == path {
			return true
		}
	}
	return false
}

// lasts checks that a term may last as long as the holder takes it to.
func (c *promises) lasts(k *Holder) string {
	delay := time.Duration(min(LeaseMS, lateCompatible*c.present.Recipe().TickMS)) * time.Millisecond // the least D of any server
	t := k.Timeout
	if least := c.given[k.Session]; least > 0 && least < t {
		t = least
		c.met[timeoutGrown]++
	}
	lease := claim.Lease{Timeout: t, Delay: delay}
	if k.Proven && lease.Proof() != nil {
		return fmt.Sprintf("the term of candidate %d has a proof, but the session timeout %v allows none", k.Client, t)
	}
	window := t * 2 / 3
	if k.Proven {
		window = t - delay - t/100
	}
	elapsed := time.Duration(c.present.Now()-c.alive[k.Session]) * time.Microsecond
	if most := window - elapsed + window/100 + time.Millisecond; k.Left > most { // the clocks run at different speeds
		return fmt.Sprintf("the term of candidate %d lasts %v more, but its client has got the latest answer to a ping that was sent %v ago, and the window is %v",
			k.Client, k.Left, elapsed, window)
	}
	return ""
}

// stayed checks for how long a bid is known to exist.
func (c *promises) stayed(e *Stayed) string {
	if e.Before <= 0 {
		c.met[stayOver]++
	}
	switch {
	case e.Left <= 0:
		return ""
	case e.Before <= 0:
		return fmt.Sprintf("candidate %d takes its bid to exist for %v more, but was not sure of that before", e.Client, e.Left)
	case e.Session != e.Present:
		return fmt.Sprintf("candidate %d takes its bid of session %v to exist, but now has session %v", e.Client, e.Session, e.Present)
	}
	c.met[stayLasts]++
	return c.lasts(&e.Holder)
}

// guarded checks a write that a bid guards.
func (c *promises) guarded(token wire.Zxid, t *record.Txn) string {
	c.met[guardPasses]++
	bid, known := c.bids[token]
	if !known {
		return fmt.Sprintf("%v is guarded by token %v, which no candidate has got", t.Zxid, token)
	}
	if ch := c.history.Changes[bid]; ch != nil {
		if _, lives := ch.AsOf(t.Zxid); lives {
			return ""
		}
	}
	return fmt.Sprintf("%v is guarded by bid %s, which no longer exists", t.Zxid, bid)
}
