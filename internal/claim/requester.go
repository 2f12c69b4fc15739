package claim

import (
	"time"

	"bellwether/wire"
)

// Outcome is the result of a single operation.
type Outcome uint8

// The outcomes. All except Underway are final.
const (
	Underway  Outcome = iota
	Succeeded         // the operation was carried out
	Failed            // the operation was not carried out, and will not be
	Withdrawn         // the operation was not carried out, because the caller resigned
	Unclear           // the answer was lost, and the outcome can no longer be determined
)

var outcomeNames = [...]string{"under way", "succeeded", "failed", "withdrawn", "unclear"}

func (o Outcome) String() string { return outcomeNames[o] }

// Requester is the common part of machines that make one request at a time, in the current session. Each
// machine has a plan function, which chooses the next request from the machine's state. After any failure
// Requester calls the plan again.
//
// Asked is 0, or the session of the outstanding request. Connected implies that Current is not 0. Once
// Ending is not Underway, Asked is 0 and no request follows.
type Requester struct {
	Now          Moment
	Ending       Outcome
	Failure      error // set if Ending is Failed
	Leaving      bool  // Resign was stepped
	ClientClosed bool  // the client is closed
	Current      wire.SessionID
	Connected    bool

	N        uint64
	Outgoing *Request
	Asked    wire.SessionID // session of the outstanding request; 0: none is outstanding
	then     func([]Result) // processes its results
	onLoss   func()         // called if its answer is lost; may be nil
	once     bool           // the request must not be repeated before its outcome is known
	Pause    Backoff
	Forget   func() // called when a session is over: drops the state that depended on it
	// InDoubt is the session in which a write with unknown outcome was sent; 0: there is none.
	InDoubt wire.SessionID

	unclear error // the error of EndUnclear

	observations []Observation
}

// Over reports whether the operation has ended.
func (a *Requester) Over() bool { return a.Ending != Underway }

// Outcome returns how the operation ended.
func (a *Requester) Outcome() Outcome { return a.Ending }

// Err returns the error of a failed operation.
func (a *Requester) Err() error { return a.Failure }

// Doubt returns the session in which a write with unknown outcome was sent; 0: there is none.
func (a *Requester) Doubt() wire.SessionID { return a.InDoubt }

// WhyUnclear returns the error that kept an operation with the outcome Unclear from finding out whether it was carried
// out. It returns nil if there is no such error, for example because the session of the write ended before that.
func (a *Requester) WhyUnclear() error { return a.unclear }

// Advance processes an event. It then calls plan if a request can be sent now.
func (a *Requester) Advance(now Moment, ev Event, plan func()) {
	a.Process(now, ev)
	a.Proceed(plan)
}

// Proceed calls plan if a request can be sent now.
func (a *Requester) Proceed(plan func()) {
	switch {
	case a.Over() || a.Asked != 0: // the outstanding request is always answered
	case a.ClientClosed:
		a.End(Failed, wire.ErrClosing)
	case a.Connected && a.Pause.Over(a.Now):
		plan()
	}
}

// Process processes an event without planning the next request.
func (a *Requester) Process(now Moment, ev Event) {
	if a.Over() {
		return
	}
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

// enter changes the current session; 0 means no session.
func (a *Requester) enter(s wire.SessionID) {
	if a.Current != s && a.Current != 0 && a.Forget != nil {
		a.Forget()
	}
	a.Current, a.Connected = s, a.Connected && s != 0
}

// reply processes the answer to the outstanding request. It ignores read results that come from an earlier
// session.
func (a *Requester) reply(r Reply) {
	if a.Asked == 0 || r.N != a.N {
		return
	}
	session := a.Asked
	a.Asked = 0
	for _, res := range r.Results {
		switch Classify(res.Err) {
		case SessionOver:
			if a.once {
				a.InDoubt = 0
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
			if a.onLoss != nil {
				a.onLoss()
			}
			return
		}
	}
	a.Pause.CountErrors(a.Now, r.Results)
	switch {
	case a.once:
		a.InDoubt = 0
		a.then(r.Results)
	case session == a.Current:
		a.then(r.Results)
	}
}

// Ask makes a request that has no lasting effect or may be repeated.
func (a *Requester) Ask(then func([]Result), ops ...Op) {
	a.N++
	a.Asked, a.once, a.then, a.onLoss = a.Current, false, then, nil
	a.Outgoing = &Request{N: a.N, Session: a.Current, Ops: ops}
}

// AskOne is Ask for a request of one operation.
func (a *Requester) AskOne(then func(Result), op Op) {
	a.Ask(func(res []Result) { then(res[0]) }, op)
}

// OnLoss sets a function that is called if the outcome of the outstanding request is unknown or the request
// must be made again.
func (a *Requester) OnLoss(f func()) { a.onLoss = f }

// Attempt makes a request that must not be repeated while its outcome is unknown. An answer, including an
// error from the server, settles the outcome. Without an answer the machine must find it out.
func (a *Requester) Attempt(then func([]Result), ops ...Op) {
	a.Ask(then, ops...)
	a.once, a.InDoubt = true, a.Current
}

// End ends the operation. If a write still has an unknown outcome, the result is Unclear.
func (a *Requester) End(o Outcome, err error) {
	if a.InDoubt != 0 {
		o, err = Unclear, nil
	}
	a.Ending, a.Failure, a.Asked, a.Outgoing = o, err, 0, nil
}

// EndUnclear ends an operation whose outcome cannot be determined. why is the error that prevents that, or nil.
func (a *Requester) EndUnclear(why error) {
	a.End(Unclear, nil)
	a.unclear = why
}

// Ready returns what the steps since the last call have produced.
func (a *Requester) Ready() Ready {
	r := Ready{Request: a.Outgoing, Observations: a.observations}
	if !a.Over() && a.Asked == 0 && a.Connected && !a.Pause.Over(a.Now) {
		r.Wake = max(a.Pause.Remaining(a.Now), time.Millisecond)
	}
	a.Outgoing, a.observations = nil, nil
	return r
}

func (a *Requester) Report(h Observation) { a.observations = append(a.observations, h) }
