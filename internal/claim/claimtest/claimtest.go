package claimtest

import (
	"bellwether/internal/claim"
	"bellwether/wire"
	"errors"
	"slices"
	"testing"
	"time"
)

type Node struct {
	Data    string
	Owner   wire.SessionID
	Czxid   wire.Zxid
	Mzxid   wire.Zxid // in the model of single operations
	Version int32
	Ctime   int64 // ms since 1970, in the model of single operations
}

// Single is the state machine of one.
type Single interface {
	Step(claim.Moment, claim.Event)
	Ready() claim.Ready
	Over() bool
	Outcome() claim.Outcome
	Doubt() wire.SessionID
}

// Dialogue drives a single operation by hand.
type Dialogue struct {
	T    *testing.T
	M    Single
	At   time.Duration
	N    uint64     // of the request that was asked last
	Ops  []claim.Op // its operations
	Wake time.Duration
}

// Step takes an event; what is asked then must be these operations.
func (d *Dialogue) Step(ev claim.Event, want ...claim.OpKind) {
	d.T.Helper()
	d.M.Step(claim.Moment{Mono: d.At, Wall: d.At}, ev)
	var got []claim.OpKind
	rd := d.M.Ready()
	if d.Wake = rd.Wake; rd.Request != nil {
		d.N, d.Ops = rd.Request.N, rd.Request.Ops
		for _, op := range rd.Request.Ops {
			got = append(got, op.Kind)
		}
	}
	if !slices.Equal(got, want) {
		d.T.Fatalf("after %+v it asks for %v, want %v", ev, got, want)
	}
}

// Answer is the reply to what was asked last.
func (d *Dialogue) Answer(res ...claim.Result) claim.Reply { return claim.Reply{N: d.N, Results: res} }

// Lost is the same where the connection ended.
func (d *Dialogue) Lost() claim.Reply { return d.Answer(claim.Result{Err: wire.ErrConnectionLoss}) }

func (d *Dialogue) Ends(want claim.Outcome) {
	d.T.Helper()
	if !d.M.Over() || d.M.Outcome() != want {
		d.T.Errorf("%v, want %v", d.M.Outcome(), want)
	}
}

var None = claim.Result{Err: wire.ErrNoNode}

func Kinds(r claim.Request) []claim.OpKind {
	var all []claim.OpKind
	for _, op := range r.Ops {
		all = append(all, op.Kind)
	}
	return all
}

// Proceed makes the next request of a model's client: of the operation behind those
// that have a result, to which its own is added when it was the last.
func Proceed(c **claim.Plan, results []claim.Result, ops []claim.Op, carryOut func(claim.Op) claim.Result) []claim.Result {
	if *c == nil {
		next := claim.NewPlan(ops[len(results)])
		*c = &next
	}
	if op, more := (*c).Next(); more {
		(*c).Took(carryOut(op))
	}
	if _, more := (*c).Next(); !more {
		results, *c = append(results, (*c).Result()), nil
	}
	return results
}

// WantStarts fails unless these operations are begun, each as its kind and the part or the path that it is about.
func WantStarts(t *testing.T, starts []claim.Op, want []string) {
	t.Helper()
	var got []string
	for _, op := range starts {
		about := op.Path
		switch op.Kind {
		case claim.OpBid, claim.OpLetGo, claim.OpTidy:
			about = op.Part()
		}
		got = append(got, op.Kind.String()+" "+about)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("it wants %q, not %q", got, want)
	}
}

// Pauses are how long nothing may happen; the longer ones outlast a session.
var Pauses = []time.Duration{time.Millisecond, time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond,
	400 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second, 9 * time.Second}

// ErrDeaf and errRefused are reasons for which operations end.
var ErrDeaf, ErrRefused = errors.New("deaf"), errors.New("refused")

// Seeds is how many histories the tests below go through.
const Seeds = 400

// Of is a znode of a session.
func Of(s wire.SessionID, czxid wire.Zxid, version int32) claim.Result {
	return claim.Result{Stat: wire.Stat{EphemeralOwner: s, Czxid: czxid, Version: version}}
}

// Refused is the answer of a server that does not permit an operation.
var Refused = claim.Result{Err: wire.ErrNoAuth}

func (n *Node) Stat() wire.Stat {
	return wire.Stat{Czxid: n.Czxid, Mzxid: n.Mzxid, EphemeralOwner: n.Owner, Version: n.Version, Ctime: n.Ctime}
}
