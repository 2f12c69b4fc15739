package commit

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// serveTalk steps a Serving of transactions below /t event by event.
type serveTalk struct {
	t   *testing.T
	m   *Serving
	now claim.Moment
	n   uint64 // number of the last request
}

// serve returns a Serving that has requested the first list.
func serve(t *testing.T, most int) *serveTalk {
	t.Helper()
	d := &serveTalk{t: t, m: NewServing(ServingConfig{Root: "/t", Most: most})}
	d.step(claim.Attached{Session: 7}, "list /t")
	return d
}

// step steps an event, and fails the test unless the state machine then does exactly what want lists. "list"
// and "make" are requests. No request may follow while the root is watched or a request is outstanding.
func (d *serveTalk) step(ev claim.Event, want ...string) {
	d.t.Helper()
	d.m.Step(d.now, ev)
	var got []string
	rd := d.m.Ready()
	if r := rd.Request; r != nil {
		d.n = r.N
		switch k := claimtest.Kinds(*r); {
		case slices.Equal(k, []claim.OpKind{claim.OpSync, claim.OpWatchAll}):
			got = append(got, "list "+r.Ops[1].Path)
		case slices.Equal(k, []claim.OpKind{claim.OpParents}):
			got = append(got, "make "+r.Ops[0].Path)
		default:
			d.t.Fatalf("it asks for %v", k)
		}
	}
	for _, op := range rd.Start {
		got = append(got, op.Kind.String()+" "+op.Path)
	}
	for _, h := range rd.Observations {
		got = append(got, h.String())
	}
	if !slices.Equal(got, want) {
		d.t.Fatalf("after %T%+v it wants %q, not %q", ev, ev, got, want)
	}
}

// listed gives the machine a reply that lists these names, and checks what it does next.
func (d *serveTalk) listed(names string, want ...string) {
	d.t.Helper()
	d.step(claim.Reply{N: d.n, Results: []claim.Result{{}, {Names: strings.Fields(names)}}}, want...)
}

// failed gives the machine a reply with this error, and checks what it does next.
func (d *serveTalk) failed(err error, want ...string) {
	d.t.Helper()
	d.step(claim.Reply{N: d.n, Results: []claim.Result{{}, {Err: err}}}, want...)
}

// over tells the machine that this site's part in a transaction has ended, and checks what it does next.
func (d *serveTalk) over(name string, want ...string) {
	d.t.Helper()
	d.step(SiteOver{Path: "/t/" + name}, want...)
}

func (d *serveTalk) fired(want ...string) {
	d.t.Helper()
	d.step(claim.Fired{Path: "/t", Type: wire.EventNodeChildrenChanged, N: d.n}, want...)
}

// ends fails unless the Serving has ended with this outcome.
func (d *serveTalk) ends(o claim.Outcome, err error) {
	d.t.Helper()
	if d.m.Outcome() != o || !errors.Is(d.m.Err(), err) {
		d.t.Errorf("%v by %v, not %v by %v", d.m.Outcome(), d.m.Err(), o, err)
	}
}

// TestServingJoinsEachOnce checks that all transactions are joined once while they exist, and that those
// that are gone are forgotten.
func TestServingJoinsEachOnce(t *testing.T) {
	d := serve(t, 9)
	d.listed("tx-b other tx-a", "join /t/tx-a", "join /t/tx-b")
	d.fired("list /t")
	d.over("tx-a")
	d.listed("tx-c tx-a tx-b", "join /t/tx-c")
	d.step(claim.Fired{Path: "/t", N: d.n - 1}) // an event of an earlier watch
	d.over("tx-b")
	d.fired("list /t")
	d.listed("tx-b")
	if len(d.m.joined) != 2 { // tx-b still exists, and this site still takes part in tx-c
		t.Errorf("it remembers %v", d.m.joined)
	}
	d.over("tx-c")
	d.fired("list /t")
	d.listed("")
	if len(d.m.joined) != 0 {
		t.Errorf("it remembers %v", d.m.joined)
	}
}

// TestServingHasRoom checks the limit: further transactions are joined when parts end.
func TestServingHasRoom(t *testing.T) {
	d := serve(t, 2)
	d.listed("tx-a tx-b tx-c tx-d", "join /t/tx-a", "join /t/tx-b")
	d.over("tx-b", "join /t/tx-c")
	d.fired("list /t")
	d.listed("tx-a tx-c tx-e") // tx-d no longer exists
	d.over("tx-c", "join /t/tx-e")
	d.over("tx-a")
	d.over("tx-e")
	d.step(claim.Disconnected{})
	d.step(claim.Attached{Session: 7}) // the watch is still set
	d.fired("list /t")
}

// TestServingMakesTheRoot checks that a missing root is created once for each look.
func TestServingMakesTheRoot(t *testing.T) {
	d := serve(t, 1)
	d.failed(wire.ErrNoNode, "make /t")
	d.step(claim.Reply{N: d.n, Results: []claim.Result{{}}}, "list /t")
	d.listed("tx-a", "join /t/tx-a")
	d.fired("list /t")
	d.failed(wire.ErrNoNode, "make /t")
	d.step(claim.Reply{N: d.n, Results: []claim.Result{{}}}, "list /t")
	d.failed(wire.ErrNoNode)
	d.ends(claim.Failed, wire.ErrNoNode)

	d = serve(t, 1)
	d.failed(wire.ErrNoNode, "make /t")
	d.step(claim.Reply{N: d.n, Results: []claim.Result{{Err: wire.ErrNoAuth}}})
	d.ends(claim.Failed, wire.ErrNoAuth)
}

// TestServingGoesOn checks that a Serving continues after a lost connection, an expired session or a busy
// server, and does not join a transaction again while the site takes part in it.
func TestServingGoesOn(t *testing.T) {
	d := serve(t, 9)
	d.step(claim.Disconnected{})
	d.step(claim.Reply{N: d.n, Results: []claim.Result{{Err: wire.ErrConnectionLoss}, {Err: wire.ErrConnectionLoss}}})
	d.step(claim.Attached{Session: 7}, "list /t")
	d.listed("tx-a", "join /t/tx-a")
	d.step(claim.Expired{})
	d.step(claim.Attached{Session: 8}, "list /t")
	d.failed(wire.ErrThrottledOp)
	d.now = claim.Moment{Mono: time.Minute, Wall: time.Minute}
	d.step(claim.Tick{}, "list /t")
	d.listed("tx-a tx-b", "join /t/tx-b")
}

// TestServingEnds checks that a Serving ends when a part fails, after a refusal, when the client is
// closed, and after Resign. A znode that is not a transaction does not end it.
func TestServingEnds(t *testing.T) {
	d := serve(t, 9)
	d.listed("tx-a tx-b tx-c", "join /t/tx-a", "join /t/tx-b", "join /t/tx-c")
	d.step(SiteOver{Path: "/t/tx-a", Err: &claim.DataError{Path: "/t/tx-a", Err: claimtest.ErrGivenUp}}, "no transaction at /t/tx-a: given up")
	d.step(SiteOver{Path: "/t/tx-b", Err: claimtest.ErrRefused})
	d.step(SiteOver{Path: "/t/tx-c", Err: claimtest.ErrGivenUp})
	d.ends(claim.Failed, claimtest.ErrRefused)

	d = serve(t, 9)
	d.failed(wire.ErrNoAuth)
	d.ends(claim.Failed, wire.ErrNoAuth)

	d = serve(t, 9)
	d.step(claim.Reply{N: d.n, Results: []claim.Result{{Err: wire.ErrNoAuth}, {}}})
	d.ends(claim.Failed, wire.ErrNoAuth)

	d = serve(t, 9)
	d.listed("tx-a", "join /t/tx-a")
	d.step(claim.Closed{})
	d.ends(claim.Failed, wire.ErrClosing)

	d = serve(t, 9)
	d.step(claim.Resign{})
	d.ends(claim.Withdrawn, nil)
}
