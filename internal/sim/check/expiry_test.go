package check

import (
	"testing"

	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// later moves the time of a rule. It breaks none.
type later int64

// timed is a rule that takes note of later, and calls functions.
type timed struct {
	Checker
	now *int64
}

func (c timed) See(o any) string {
	switch e := o.(type) {
	case later:
		*c.now += int64(e)
	case func():
		e()
	default:
		return c.Checker.See(o)
	}
	return ""
}

// expiryOf returns the rule of sessions that expire, with ticks of one second. compatible says whether a server
// of ZooKeeper takes part.
func expiryOf(compatible bool) func(*History) Checker {
	return func(*History) Checker {
		p := &present{recipe: Recipe{TickMS: 1000}, servers: []Server{{ID: a, Compatible: compatible}}}
		return timed{newExpiry(p), &p.now}
	}
}

func createsSession(timeoutMS int32) Committed {
	return Committed{a, 1, &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Zxid: z(1, 1), Type: wire.OpCreateSession}, Body: &record.CreateSessionTxn{TimeoutMS: timeoutMS}}}
}

func pinged(at int64) Answered {
	return Answered{Request: Request{Session: 1, Op: wire.OpPing, Issued: at}}
}

// serves returns the ticks of a leader over some time.
func serves(v ensemble.ServerID, long int64) (all []any) {
	for range long / (250 * ms) {
		all = append(all, Ticked{v, 1, 0}, later(250*ms))
	}
	return all
}

// TestLateByTheTimeoutAskedFor checks that a session may live for the timeout that clients ask for, although its client was given
// less: another server may have given more to a connection that its client has left. Found by seed 1796062746736794769.
func TestLateByTheTimeoutAskedFor(t *testing.T) {
	p := &present{recipe: Recipe{TickMS: 1000, SessionMS: 12_000}, servers: []Server{{ID: a}}}
	c := timed{newExpiry(p), &p.now}
	for i, o := range append(append([]any{createsSession(9000)}, serves(a, 22_500*ms)...), Ticked{a, 1, 0}, later(2*ms), Ticked{a, 1, 0}) {
		_, ticks := o.(Ticked)
		if wrong := c.See(o); (wrong != "") != (ticks && p.now > 22_500*ms) {
			t.Errorf("observation %d, at %d ms: %q", i, p.now/ms, wrong)
		}
	}
}

// brokenExpiry are sequences of observations that break the rule of sessions that expire.
var brokenExpiry = []broken{
	{"a session that expires directly after a pause of the leader", expiryOf(false), func(*History) []any {
		end := Ordered{Server: a, Duty: &replica.Duty{Append: []*record.Txn{closes(1)}}}
		return []any{
			createsSession(3000), Ticked{a, 1, 0}, Ticked{a, 1, 2000}, end, Ticked{a, 1, 4001}, Ticked{a, 1, 5001}, end,
			Ticked{a, 2, 9000}, end, Ticked{a, 2, 11_001}, Standing{Server: a}, end, Ticked{a, 2, 12_000}, Ticked{a, 2, 14_001}, Ticked{a, 2, 15_000}, end,
		}
	}},
	{"a session that expires 6 s after its leader has read something of its client, with 9 s", expiryOf(false), func(*History) []any {
		end := Ordered{Server: a, Duty: &replica.Duty{Append: []*record.Txn{closes(1)}}}
		tick := func(mono int64) Ticked { return Ticked{a, 1, mono} }
		heard := func(by ensemble.ServerID, mono int64) Heard { return Heard{Session: 1, Server: by, Mono: mono} }
		return []any{
			createsSession(9000), heard(a, 1000), tick(2000), tick(4000), tick(6000), tick(7750), end, Undone{Server: a},
			heard(b, 9000), tick(9000), end, Undone{Server: a}, heard(a, 20_000), tick(20_250), tick(22_000), tick(24_000), tick(26_000), tick(26_749), end,
		}
	}},
	{"a session that expires too early, although an operator had ended another one", expiryOf(false), func(*History) []any {
		return []any{createsSession(9000), pinged(1), Expelled{1}, later(1000 * ms), Committed{a, 2, closes(1)},
			createsSession(9000), pinged(1000 * ms), later(1000 * ms), Committed{a, 4, closes(1)}}
	}},
	{"a session that expires 8 s after an answered ping, with 8 s and a second", expiryOf(false), func(*History) []any {
		return []any{createsSession(9000), later(50 * ms), pinged(40 * ms), later(8400 * ms), Committed{a, 2, closes(1)},
			createsSession(9000), pinged(50 * ms), later(1 * ms), Committed{a, 3, closes(2)}, pinged(8000 * ms), Committed{a, 4, closes(1)}}
	}},
	{"a session that expires one tick after an answered ping of a server of ZooKeeper", expiryOf(true), func(*History) []any {
		end := Ordered{Server: a, Duty: &replica.Duty{Append: []*record.Txn{closes(1)}}}
		return []any{createsSession(14_000), pinged(1), later(1860*ms + 1), Ticked{a, 1, 0}, end, Committed{a, 2, closes(1)},
			createsSession(14_000), later(3000 * ms), Ticked{a, 1, 1000}, end, pinged(4920 * ms), later(20 * ms), Committed{a, 3, closes(1)},
			createsSession(14_000), pinged(4930 * ms), later(1100 * ms), Ticked{a, 1, 2000}, end, Committed{a, 4, closes(1)}}
	}},
	{"a session that does not expire", expiryOf(false), func(*History) []any {
		all := append([]any{createsSession(9000)}, serves(a, 10_000*ms)...)
		all = append(append(all, Heard{Session: 1}), serves(a, 19_500*ms)...)
		all = append(append(all, later(2000*ms)), serves(a, 19_500*ms)...) // its process was stopped for a while
		return append(all, Ticked{a, 1, 0}, later(2*ms), Ticked{a, 1, 0})
	}},
	{"a session that does not expire after its server has joined again", expiryOf(false), func(*History) []any {
		all := append([]any{createsSession(9000), Standing{Server: b, Serves: true}, Heard{Session: 1, Server: b}}, serves(a, 18_000*ms)...)
		all = append(append(all, Standing{Server: b}, Standing{Server: b, Serves: true}), serves(a, 19_500*ms)...)
		return append(all, Ticked{a, 1, 0}, later(2*ms), Ticked{a, 1, 0})
	}},
	{"a session that does not expire after the server that has kept its connection has joined again", expiryOf(false), func(*History) []any {
		all := append([]any{createsSession(9000), Standing{Server: b, Serves: true}, Attached{Server: b, Session: 1, TimeoutMS: 9000}}, serves(a, 18_000*ms)...)
		all = append(append(all, Standing{Server: b}, Standing{Server: b, Serves: true}), serves(a, 19_500*ms)...)
		return append(all, Ticked{a, 1, 0}, later(2*ms), Ticked{a, 1, 0})
	}},
	{"a ping of a session whose end is proposed", expiryOf(false), func(*History) []any {
		pong := Replied{Server: a, Session: 1, Op: wire.OpPing}
		return append(append([]any{createsSession(9000)}, serves(a, 1000*ms)...), pong, Ordered{Server: a, Duty: &replica.Duty{Append: []*record.Txn{closes(1)}}},
			Replied{Server: b, Session: 1, Op: wire.OpPing}, pong)
	}},
	{"a session whose proposed end was undone and does not expire", expiryOf(false), func(*History) []any {
		all := append([]any{createsSession(9000)}, serves(a, 10_000*ms)...)
		all = append(all, Ordered{Server: a, Duty: &replica.Duty{Append: []*record.Txn{closes(1)}}})
		all = append(append(all, serves(a, 20_000*ms)...), Undone{Server: a})
		return append(append(all, serves(a, 19_500*ms)...), Ticked{a, 1, 0}, later(2*ms), Ticked{a, 1, 0})
	}},
}

// freshOf returns the rule of fresh reads.
func freshOf(compatible bool) func(*History) Checker {
	return func(h *History) Checker {
		return newFresh(&present{servers: []Server{{ID: a}, {ID: b, Compatible: compatible}}}, h)
	}
}

// brokenFresh are sequences of observations that break the rule of fresh reads.
var brokenFresh = []broken{
	{"a read behind a sync that lacks what was committed", freshOf(false), func(h *History) []any {
		h.Add(setTxn(z(1, 2), "x"))
		sync, read := Request{N: 1, Op: wire.OpSync}, Request{N: 2, Op: wire.OpExists, Synced: true}
		unsynced := Request{N: 3, Op: wire.OpGetData}
		none := answer(read, z(1, 1))
		none.Header.Err = wire.ErrNoNode
		return []any{Issued{sync}, Issued{read}, Issued{unsynced}, answer(unsynced, z(1, 1)), answer(sync, z(1, 2)), none}
	}},
	{"a sync that lacks what was committed", freshOf(false), func(h *History) []any {
		h.Add(setTxn(z(1, 2), "x"))
		one, two := Request{N: 1, Op: wire.OpSync}, Request{N: 2, Op: wire.OpSync}
		return []any{Issued{one}, Lost{one}, answer(one, z(1, 1)), Issued{two}, answer(two, z(1, 1))}
	}},
}

// promisesOf returns the rule of terms, in which session 1 has the bid /bid with the token 0x100000001.
func promisesOf(h *History) Checker {
	h.Add(&record.Txn{TxnHeader: record.TxnHeader{Session: 1, Zxid: z(1, 1), Type: wire.OpCreate}, Body: &record.CreateTxn{Path: "/bid", ACL: wire.OpenACL()}})
	p := &present{recipe: Recipe{TickMS: 1000}}
	return timed{newPromises(p, h), &p.now}
}

// term returns the beginning of a term whose session has a timeout of 9 s.
func term(proven bool, left time.Duration) TermBegan {
	return TermBegan{Holder{Client: 1, Session: 1, Timeout: 9 * time.Second, Proven: proven, Left: left}, z(1, 1), "/bid"}
}

// guardedBy returns a write that is guarded by a token.
func guardedBy(token string) Committed {
	set := &record.SetDataTxn{Path: GuardedPath, Data: []byte(token)}
	return Committed{a, 1, &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Zxid: z(1, 3), Type: wire.OpMulti}, Body: &record.MultiTxn{Ops: []record.SubTxn{{Type: wire.OpSetData, Body: set}}}}}
}

// brokenPromises are sequences of observations that break the rule of terms.
var brokenPromises = []broken{
	{"a token of nothing", promisesOf, func(*History) []any {
		k := term(true, 1)
		k.Token = z(1, 9)
		return []any{term(true, 1), k}
	}},
	{"a token of another session", promisesOf, func(*History) []any {
		k := term(true, 1)
		k.Session = 2
		return []any{k}
	}},
	{"a token of another bid", promisesOf, func(*History) []any {
		k := term(false, 1)
		k.Bid = "/other"
		return []any{term(false, 1), k}
	}},
	{"a proof of a session that allows none", promisesOf, func(*History) []any {
		k := term(true, 1)
		k.Timeout = 600 * time.Millisecond
		return []any{term(true, 1), k}
	}},
	{"a term that begins after its deadline", promisesOf, func(*History) []any {
		return []any{term(true, 1), term(true, 0)}
	}},
	{"a term that goes on after its deadline", promisesOf, func(*History) []any {
		return []any{term(true, 1), Overdue{term(true, 0).Holder}, Overdue{term(true, 1).Holder}}
	}},
	{"a term by a look that is older than the lapse of the lease", promisesOf, func(h *History) []any {
		k := term(true, 1)
		k.Token, k.Bid = z(1, 3), ElectionPath+"/b"
		for i, path := range []string{ElectionPath, k.Bid} {
			h.Add(&record.Txn{TxnHeader: record.TxnHeader{Session: 1, Zxid: z(1, uint32(2+i)), Type: wire.OpCreate}, Body: &record.CreateTxn{Path: path, ACL: wire.OpenACL()}})
		}
		gone := wrote(a, 2, &record.DeleteTxn{Path: k.Bid})
		k.LapsedAt = 10_000
		lapsed := k
		lapsed.LapsedAt++
		return []any{lapsed, later(10 * ms), gone, k, lapsed}
	}},
	{"a term with a proof that lasts too long", promisesOf, func(*History) []any {
		return []any{term(true, 8410*time.Millisecond), later(1000 * ms), pinged(500 * ms), term(true, 7910*time.Millisecond), term(true, 8100*time.Millisecond)}
	}},
	{"a term without a proof that lasts too long", promisesOf, func(*History) []any {
		k := term(false, 6100*time.Millisecond).Holder
		return []any{term(false, 6*time.Second), Attached{Session: 1}, TermProven{Holder{}}, TermProven{k}}
	}},
	{"a term that lasts as long as the present timeout of the session, which had a smaller one", promisesOf, func(*History) []any {
		given := func(ms int32) Welcomed { return Welcomed{1, ms} }
		return []any{given(8000), given(9000), term(true, 7420*time.Millisecond), term(true, 7600*time.Millisecond)}
	}},
	{"a bid that is known to exist again", promisesOf, func(*History) []any {
		return []any{Stayed{Holder: term(true, 1).Holder, Before: 1, Present: 1}, Stayed{Holder: term(true, 0).Holder}, Stayed{Holder: term(true, 1).Holder, Present: 1}}
	}},
	{"a bid that is known to exist in another session", promisesOf, func(*History) []any {
		return []any{Stayed{Holder: term(true, 1).Holder, Before: 1, Present: 1}, Stayed{Holder: term(true, 1).Holder, Before: 1, Present: 2}}
	}},
	{"a bid that is known to exist for too long", promisesOf, func(*History) []any {
		return []any{Stayed{Holder: term(true, 8410*time.Millisecond).Holder, Before: 1, Present: 1}, Stayed{Holder: term(true, 8600*time.Millisecond).Holder, Before: 1, Present: 1}}
	}},
	{"a write that a bid guards which is gone", promisesOf, func(h *History) []any {
		token := "4294967297"
		gone := &record.Txn{TxnHeader: record.TxnHeader{Session: 1, Zxid: z(1, 2), Type: wire.OpDelete}, Body: &record.DeleteTxn{Path: "/bid"}}
		return []any{term(true, 1), guardedBy(token), func() { h.Add(gone) }, guardedBy(token)}
	}},
	{"a write that is guarded by a token of nobody", promisesOf, func(*History) []any {
		return []any{term(true, 1), guardedBy("4294967297"), guardedBy("4294967298")}
	}},
}
