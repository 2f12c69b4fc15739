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

// Requester asks for one request at a time, within whatever session there is: it
// is what the machines of single operations have in common. Each of them says
// what to ask next in a plan, from all it knows; so after any trouble it plans
// again.
type Requester struct {
	Now          Moment
	Ending       Outcome
	Failure      error // of Failed
	Leaving      bool  // it was resigned
	ClientClosed bool  // the client is closed
	Current      wire.SessionID
	Connected    bool

	N        uint64
	Outgoing *Request
	Asked    wire.SessionID // of the outstanding request; 0: there is none
	then     func([]Result) // what to do with its results
	risky    bool           // it must not be repeated blindly
	Pause    Backoff
	Forget   func() // drops what has gone with a session
	// doubt is the session in which a write was sent of which it is not known
	// whether it was carried out; 0: there is none.
	Unsure wire.SessionID

	happenings []Happening
}

// Over reports whether nothing is left to do.
func (a *Requester) Over() bool { return a.Ending != Underway }

// Outcome is how it has ended.
func (a *Requester) Outcome() Outcome { return a.Ending }

// Err is why it has failed.
func (a *Requester) Err() error { return a.Failure }

// Doubt is the session in which a write was sent whose outcome is not known; 0:
// there is none.
func (a *Requester) Doubt() wire.SessionID { return a.Unsure }

// Advance takes an event and, where a request can be sent, makes the plan.
func (a *Requester) Advance(now Moment, ev Event, plan func()) {
	if a.Over() {
		return
	}
	a.hear(now, ev)
	switch {
	case a.Over() || a.Asked != 0: // whose answer comes in any case
	case a.ClientClosed:
		a.End(Failed, wire.ErrClosing)
	case a.Connected && a.Pause.Over(now):
		plan()
	}
}

func (a *Requester) hear(now Moment, ev Event) {
	a.Now = now
	switch ev := ev.(type) {
	case Attached:
		a.enter(ev.Session)
		a.Connected = true
		a.Pause.Reconnected()
	case Disconnected:
		a.Connected = false
	case Fired:
		a.Pause.Fired(ev)
	case Expired:
		a.enter(0)
	case Closed:
		a.ClientClosed = true
	case Resign:
		a.Leaving = true
	case Reply:
		a.reply(ev)
	}
}

// enter goes on with another session; 0: with none.
func (a *Requester) enter(s wire.SessionID) {
	if a.Current != s && a.Current != 0 && a.Forget != nil {
		a.Forget()
	}
	a.Current, a.Connected = s, a.Connected && s != 0
}

// reply takes the answer to the outstanding request. One to a question that
// was asked in an earlier session is of no use.
func (a *Requester) reply(r Reply) {
	if a.Asked == 0 || r.N != a.N {
		return
	}
	session := a.Asked
	a.Asked = 0
	for _, res := range r.Results {
		switch Classify(res.Err) {
		case SessionOver:
			if a.risky {
				a.Unsure = 0
			}
			if a.Current == session {
				a.enter(0)
			}
			return
		case ClientOver:
			a.ClientClosed = true
			return
		case Retry:
			a.Pause.Fail(a.Now)
			return
		}
	}
	a.Pause.Stumbles(a.Now, r.Results)
	switch {
	case a.risky:
		a.Unsure = 0
		a.then(r.Results)
	case session == a.Current:
		a.then(r.Results)
	}
}

// Ask makes a request that changes nothing that matters, or may be repeated.
func (a *Requester) Ask(then func([]Result), ops ...Op) {
	a.N++
	a.Asked, a.risky, a.then, a.Outgoing = a.Current, false, then, &Request{N: a.N, Session: a.Current, Ops: ops}
}

// Attempt makes a request that must not be repeated blindly. An answer of any
// kind ends the doubt; without one the machine has to find out.
func (a *Requester) Attempt(then func([]Result), ops ...Op) {
	a.Ask(then, ops...)
	a.risky, a.Unsure = true, a.Current
}

// End is the end. What is in doubt then stays unknown.
func (a *Requester) End(o Outcome, err error) {
	if a.Unsure != 0 {
		o, err = Unclear, nil
	}
	a.Ending, a.Failure, a.Asked, a.Outgoing = o, err, 0, nil
}

// Collect hands out what has come of the steps since the last call.
func (a *Requester) Collect() Ready {
	r := Ready{Request: a.Outgoing, Happenings: a.happenings}
	if !a.Over() && a.Asked == 0 && a.Connected && !a.Pause.Over(a.Now) {
		r.Wake = max(a.Pause.Remaining(a.Now), time.Millisecond)
	}
	a.Outgoing, a.happenings = nil, nil
	return r
}

func (a *Requester) Tell(h Happening) { a.happenings = append(a.happenings, h) }
