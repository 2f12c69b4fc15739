package registry

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Removal deletes an ephemeral znode within the session that owns it. When that session is over, the znode
// is gone and nothing is left to do.
type Removal struct {
	claim.Requester
	path  string
	owner wire.SessionID // session that owns the znode
	gone  bool           // the session is over, so the znode is gone
}

// NewRemoval returns the state machine. It does nothing until Attached is stepped.
func NewRemoval(path string, owner wire.SessionID) *Removal {
	r := &Removal{path: path, owner: owner}
	r.Forget = func() { r.gone = true }
	return r
}

// Path returns the path of the znode.
func (r *Removal) Path() string { return r.path }

// Step processes one event, which happened at now.
func (r *Removal) Step(now claim.Moment, ev claim.Event) {
	r.Advance(now, ev, r.plan)
	_, over := ev.(claim.Expired)
	r.gone = r.gone || over || r.Current != 0 && r.Current != r.owner
	switch {
	case r.Over() || r.Asked != 0:
	case r.gone:
		r.End(claim.Succeeded, nil)
	case r.Leaving:
		r.End(claim.Withdrawn, nil)
	}
}

func (r *Removal) plan() {
	if r.Current == r.owner && !r.Leaving {
		r.Ask(r.took, claim.Delete(r.path))
	}
}

func (r *Removal) took(res []claim.Result) {
	if err := res[0].Err; err != nil && !errors.Is(err, wire.ErrNoNode) {
		r.End(claim.Failed, err)
	} else {
		r.End(claim.Succeeded, nil)
	}
}
