package registry

import (
	"errors"
	"slices"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

const (
	// RegistrationRetry is how long a Registrant that is refused waits before it
	// tries again, unless something happens first.
	RegistrationRetry = 5 * time.Second
	// ownSessionsMax is how many older sessions a Registrant remembers as its own.
	ownSessionsMax = 16
)

// ErrNoParent: the parent of a registration cannot be made, or was deleted as soon
// as it was.
var ErrNoParent = errors.New("there is no parent")

// RegistrantConfig is what a Registrant is about.
type RegistrantConfig struct {
	Path string
	Data []byte           // of the znode, until a Keep says otherwise
	Own  []wire.SessionID // whose znode is taken over: those of processes before this one
}

// Keep: the znode is to hold other data. The first data, of RegistrantConfig,
// has the number 1; of several the one with the greatest counts.
type Keep struct {
	Data []byte
	N    int
}

func (Keep) Event() {}

// Registrant keeps an ephemeral znode: it makes it again in each new session and
// when somebody deletes it, until it resigns.
//
//	create ▸ watch, and look whose it is ▸ ours: it stands; set it where other data is wanted
//	                                     ▸ of an older session of ours: delete and create it, in one transaction
//	                                     ▸ foreign: wait for its event, then create
//	                                     ▸ there is none: create
//	resign ▸ sync, look whose it is ▸ ours: delete it
//
// After a write whose answer was lost it looks first.
//
// The tree knows no check of an owner: the version stands for it, within the one
// round trip since the owner was seen.
type Registrant struct {
	claim.Requester
	cfg  RegistrantConfig
	own  []wire.SessionID // older sessions of ours
	last wire.SessionID   // that it was in

	data  []byte      // that is wanted
	Want  int         // its number
	retry claim.Timer // after a refusal

	tenure
}

// tenure is what a Registrant knows that goes with its session.
type tenure struct {
	made   bool      // a znode of ours may stand
	unsure bool      // the answer to a write was lost
	have   int       // the number of the data that our znode holds; 0: there is none
	stat   wire.Stat // of the znode when it was last seen
	watch  uint64    // the request that set the watch on it; 0: look first
	gap    bool      // it was not there then
	bare   bool      // its parents were made just now
	stands bool      // ours stood when last looked at, with what was wanted
	token  wire.Zxid // of ours then
	held   int       // and the number of its data
	owned  bool      // it was foreign
	why    error     // other reasons for not standing
}

// anyData is a have that no want equals.
const anyData = -1

// NewRegistrant makes the state machine, which waits for Attached.
func NewRegistrant(cfg RegistrantConfig) *Registrant {
	r := &Registrant{cfg: cfg, own: slices.Clone(cfg.Own), data: cfg.Data, Want: 1}
	r.Forget = r.startAnew
	return r
}

// RegistrantState is how a Registrant stands.
type RegistrantState struct {
	Stands   bool           // it stood when last looked at, and nobody has said that its session is over
	Doubtful bool           // and the connection is lost
	Session  wire.SessionID // the last
	Token    wire.Zxid      // where it stands: when the znode was made
	Have     int            // and the number of its data
	Owned    bool           // the znode is foreign
	Owner    wire.SessionID // whose; 0: nobody's
	Err      error          // why it does not stand otherwise
	Leaving  bool           // it has resigned, or is over
}

// State says how it stands.
func (r *Registrant) State() RegistrantState {
	s := RegistrantState{Session: r.last, Leaving: r.Leaving || r.Over()}
	switch {
	case s.Leaving && r.Current != 0:
	case s.Leaving:
		s.Err = r.why // its session has taken the znode along
	case r.stands:
		s.Stands, s.Doubtful, s.Token, s.Have = true, !r.Connected, r.token, r.held
	case r.owned:
		s.Owned, s.Owner = true, r.stat.EphemeralOwner
	default:
		s.Err = r.why
	}
	return s
}

// Refused reports whether who has asked for the znode is told that it will not stand: it
// is foreign, and that is not waited for to end, or the server does not allow it. It
// is not, for the session alone that is over: the next one follows.
func (s RegistrantState) Refused(wait bool) bool {
	switch {
	case s.Leaving:
		return true
	case s.Owned:
		return !wait
	}
	return s.Err != nil && !errors.Is(s.Err, wire.ErrSessionExpired)
}

// Step takes one event, which happened at now.
func (r *Registrant) Step(now claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case Keep:
		if ev.N > r.Want {
			r.data, r.Want, r.retry = ev.Data, ev.N, claim.Timer{}
		}
	case claim.Fired:
		if ev.N == r.watch {
			r.watch, r.gap, r.retry = 0, false, claim.Timer{}
			r.stands = r.stands && ev.Type != wire.EventNodeDeleted
		}
	case claim.Attached:
		r.retry = claim.Timer{}
	}
	r.Advance(now, ev, r.plan)
	if r.Current != 0 {
		r.last = r.Current
	}
	if r.Leaving && r.Asked == 0 && !r.made && !r.Over() {
		r.End(claim.Succeeded, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (r *Registrant) Ready() claim.Ready {
	rd := r.Collect()
	if !r.Over() && r.Asked == 0 && r.Connected && rd.Wake == 0 && !r.retry.Over(r.Now) {
		rd.Wake = max(r.retry.Remaining(r.Now), time.Millisecond)
	}
	return rd
}

// startAnew drops what has gone with the session; its znode is ours yet.
func (r *Registrant) startAnew() {
	r.own = append(r.own, r.Current)
	r.own = r.own[max(len(r.own)-ownSessionsMax, 0):]
	r.tenure = tenure{why: wire.ErrSessionExpired}
}

// refuse: the server does not allow what is needed.
func (r *Registrant) refuse(err error) {
	r.stands, r.owned, r.why, r.retry = false, false, err, claim.Timer{From: r.Now, Wait: RegistrationRetry}
}
