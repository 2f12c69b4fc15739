package claim

import (
	"errors"

	"bellwether/wire"
)

// Removal removes a znode that goes with a session, within that session: when that
// is over, nothing is left to do.
type Removal struct {
	asker
	path  string
	owner wire.SessionID // the session
	gone  bool           // it has taken the znode along
}

// NewRemoval makes the state machine, which waits for Attached.
func NewRemoval(path string, owner wire.SessionID) *Removal {
	r := &Removal{path: path, owner: owner}
	r.forget = func() { r.gone = true }
	return r
}

// Path is what is removed.
func (r *Removal) Path() string { return r.path }

// Step takes one event, which happened at now.
func (r *Removal) Step(now Moment, ev Event) {
	r.step(now, ev, r.plan)
	_, over := ev.(Expired)
	r.gone = r.gone || over || r.session != 0 && r.session != r.owner
	switch {
	case r.Over() || r.asked != 0:
	case r.gone:
		r.end(Succeeded, nil)
	case r.leaving:
		r.end(Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (r *Removal) Ready() Ready { return r.ready() }

func (r *Removal) plan() {
	if r.session == r.owner && !r.leaving {
		r.ask(r.took, Op{Kind: OpDelete, Path: r.path, Version: AnyVersion})
	}
}

func (r *Removal) took(res []Result) {
	if err := res[0].Err; err != nil && !errors.Is(err, wire.ErrNoNode) {
		r.end(Failed, err)
	} else {
		r.end(Succeeded, nil)
	}
}
