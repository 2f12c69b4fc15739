package claimtest

import (
	"bellwether/internal/claim"
	"bellwether/wire"
	"errors"
	"slices"
	"testing"
	"time"
)

// Node is a znode of a model.
type Node struct {
	Data    string
	Owner   wire.SessionID
	Czxid   wire.Zxid
	Mzxid   wire.Zxid // used by the model of single operations
	Version int32
	Ctime   int64 // ms since 1970; used by the model of single operations
}

// Single is the state machine of a single operation.
type Single interface {
	Step(claim.Moment, claim.Event)
	Ready() claim.Ready
	Over() bool
	Outcome() claim.Outcome
	Doubt() wire.SessionID
}

// Dialogue steps the machine of a single operation event by event.
type Dialogue struct {
	T    *testing.T
	M    Single
	At   time.Duration
	N    uint64     // number of the last request
	Ops  []claim.Op // operations of the last request
	Wake time.Duration
}

// Step steps one event. It fails the test unless the machine then requests exactly these operations.
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

// Answer returns a reply to the last request.
func (d *Dialogue) Answer(res ...claim.Result) claim.Reply { return claim.Reply{N: d.N, Results: res} }

// Lost returns a reply that says that the connection was lost.
func (d *Dialogue) Lost() claim.Reply { return d.Answer(claim.Result{Err: wire.ErrConnectionLoss}) }

// Ends fails the test unless the machine has ended with this outcome.
func (d *Dialogue) Ends(want claim.Outcome) {
	d.T.Helper()
	if !d.M.Over() || d.M.Outcome() != want {
		d.T.Errorf("%v, want %v", d.M.Outcome(), want)
	}
}

// None is the result of a read of a missing znode.
var None = claim.Result{Err: wire.ErrNoNode}

// Kinds returns the kinds of a request's operations.
func Kinds(r claim.Request) []claim.OpKind {
	var all []claim.OpKind
	for _, op := range r.Ops {
		all = append(all, op.Kind)
	}
	return all
}

// Proceed carries out the next request of the protocol for a model's client. len(results) operations are
// complete, so the request belongs to ops[len(results)]. If it was the last one of that operation, Proceed
// appends the operation's result.
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

// WantStarts fails the test unless exactly these operations were started. Each is written as its kind,
// followed by its part or path.
func WantStarts(t *testing.T, starts []claim.Op, want []string) {
	t.Helper()
	var got []string
	for _, op := range starts {
		about := op.Path
		switch op.Kind {
		case claim.OpBid, claim.OpResign, claim.OpTidy:
			about = op.Part()
		}
		got = append(got, op.Kind.String()+" "+about)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("it wants %q, not %q", got, want)
	}
}

// Pauses are the times for which a model lets nothing happen. The longer ones outlast a session.
var Pauses = []time.Duration{time.Millisecond, time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond,
	400 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second, 9 * time.Second}

// ErrGivenUp and ErrRefused are errors with which tests end operations.
var ErrGivenUp, ErrRefused = errors.New("given up"), errors.New("refused")

// Seeds is the number of histories that each model test explores.
const Seeds = 400

// Of returns the result of a read of a znode that is owned by a session.
func Of(s wire.SessionID, czxid wire.Zxid, version int32) claim.Result {
	return claim.Result{Stat: wire.Stat{EphemeralOwner: s, Czxid: czxid, Version: version}}
}

// Refused is the result of an operation that the server does not permit.
var Refused = claim.Result{Err: wire.ErrNoAuth}

func (n *Node) Stat() wire.Stat {
	return wire.Stat{Czxid: n.Czxid, Mzxid: n.Mzxid, EphemeralOwner: n.Owner, Version: n.Version, Ctime: n.Ctime}
}
