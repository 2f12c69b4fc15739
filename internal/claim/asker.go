package claim

import (
	"time"

	"bellwether/wire"
)

// Outcome is what has become of a single operation.
type Outcome uint8

// The outcomes. All but the first are for good.
const (
	Underway  Outcome = iota
	Succeeded         // it was carried out
	Failed            // it was not, and will not be
	Withdrawn         // it was not, as nobody wants it any more
	Unclear           // its answer was lost, and what would have told is gone
)

var outcomeNames = [...]string{"under way", "succeeded", "failed", "withdrawn", "unclear"}

func (o Outcome) String() string { return outcomeNames[o] }

// asker asks for one request at a time, within whatever session there is: it
// is what the machines of single operations have in common. Each of them says
// what to ask next in a plan, from all it knows; so after any trouble it plans
// again.
type asker struct {
	now      Moment
	outcome  Outcome
	err      error // of Failed
	leaving  bool  // it was resigned
	shut     bool  // the client is closed
	session  wire.SessionID
	attached bool

	n      uint64
	out    *Request
	asked  wire.SessionID // of the outstanding request; 0: there is none
	then   func([]Result) // what to do with its results
	risky  bool           // it must not be repeated blindly
	pause  Backoff
	forget func() // drops what has gone with a session
	// doubt is the session in which a write was sent of which it is not known
	// whether it was carried out; 0: there is none.
	doubt wire.SessionID

	happenings []Happening
}

// Over reports whether nothing is left to do.
func (a *asker) Over() bool { return a.outcome != Underway }

// Outcome is how it has ended.
func (a *asker) Outcome() Outcome { return a.outcome }

// Err is why it has failed.
func (a *asker) Err() error { return a.err }

// Doubt is the session in which a write was sent whose outcome is not known; 0:
// there is none.
func (a *asker) Doubt() wire.SessionID { return a.doubt }

// step takes an event and, where a request can be sent, makes the plan.
func (a *asker) step(now Moment, ev Event, plan func()) {
	if a.Over() {
		return
	}
	a.hear(now, ev)
	switch {
	case a.Over() || a.asked != 0: // whose answer comes in any case
	case a.shut:
		a.end(Failed, wire.ErrClosing)
	case a.attached && a.pause.over(now):
		plan()
	}
}

func (a *asker) hear(now Moment, ev Event) {
	a.now = now
	switch ev := ev.(type) {
	case Attached:
		a.enter(ev.Session)
		a.attached = true
		a.pause.reconnected()
	case Disconnected:
		a.attached = false
	case Fired:
		a.pause.fired(ev)
	case Expired:
		a.enter(0)
	case Closed:
		a.shut = true
	case Resign:
		a.leaving = true
	case Reply:
		a.reply(ev)
	}
}

// enter goes on with another session; 0: with none.
func (a *asker) enter(s wire.SessionID) {
	if a.session != s && a.session != 0 && a.forget != nil {
		a.forget()
	}
	a.session, a.attached = s, a.attached && s != 0
}

// reply takes the answer to the outstanding request. One to a question that
// was asked in an earlier session is of no use.
func (a *asker) reply(r Reply) {
	if a.asked == 0 || r.N != a.n {
		return
	}
	session := a.asked
	a.asked = 0
	for _, res := range r.Results {
		switch fateOf(res.Err) {
		case expired:
			if a.risky {
				a.doubt = 0
			}
			if a.session == session {
				a.enter(0)
			}
			return
		case closed:
			a.shut = true
			return
		case again:
			a.pause.Fail(a.now)
			return
		}
	}
	a.pause.stumbles(a.now, r.Results)
	switch {
	case a.risky:
		a.doubt = 0
		a.then(r.Results)
	case session == a.session:
		a.then(r.Results)
	}
}

// ask makes a request that changes nothing that matters, or may be repeated.
func (a *asker) ask(then func([]Result), ops ...Op) {
	a.n++
	a.asked, a.risky, a.then, a.out = a.session, false, then, &Request{N: a.n, Session: a.session, Ops: ops}
}

// attempt makes a request that must not be repeated blindly. An answer of any
// kind ends the doubt; without one the machine has to find out.
func (a *asker) attempt(then func([]Result), ops ...Op) {
	a.ask(then, ops...)
	a.risky, a.doubt = true, a.session
}

// end is the end. What is in doubt then stays unknown.
func (a *asker) end(o Outcome, err error) {
	if a.doubt != 0 {
		o, err = Unclear, nil
	}
	a.outcome, a.err, a.asked, a.out = o, err, 0, nil
}

// ready hands out what has come of the steps since the last call.
func (a *asker) ready() Ready {
	r := Ready{Request: a.out, Happenings: a.happenings}
	if !a.Over() && a.asked == 0 && a.attached && !a.pause.over(a.now) {
		r.Wake = max(a.pause.left(a.now), time.Millisecond)
	}
	a.out, a.happenings = nil, nil
	return r
}

func (a *asker) tell(h Happening) { a.happenings = append(a.happenings, h) }
