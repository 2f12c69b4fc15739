package registry

import (
	"errors"
	"slices"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

const (
	// RegistrationRetry is how long a Registrant waits after a refusal before it tries again, unless an
	// event makes it try earlier.
	RegistrationRetry = 5 * time.Second
	// ownSessionsMax is how many earlier sessions a Registrant remembers as its own.
	ownSessionsMax = 16
)

// ErrNoParent means that the parent of a registration could not be created, or was deleted immediately
// afterwards.
var ErrNoParent = errors.New("its parent does not exist")

// RegistrantConfig describes a Registrant.
type RegistrantConfig struct {
	Path string
	Data []byte           // data of the znode, until Keep is stepped
	Own  []wire.SessionID // sessions of earlier processes, whose znode the Registrant replaces
}

// Keep carries new data for the znode. N is its number; the data of RegistrantConfig has the number 1.
// Data with a smaller number than the current one is ignored.
type Keep struct {
	Data []byte
	N    int
}

func (Keep) Event() {}

// Registrant keeps an ephemeral znode until it resigns. It creates the znode again in each new session,
// and when another client deletes it.
//
//	create ▸ watch, and read the owner ▸ this session: registered; set the data if it has changed
//	                                   ▸ one of Own, or an earlier session: delete and create it, in one transaction
//	                                   ▸ foreign: wait for its event, then create
//	                                   ▸ znode missing: create
//	resign ▸ sync, read the owner ▸ this session: delete it
//
// After a write whose answer was lost, the Registrant reads the owner first.
//
// ZooKeeper has no operation that checks the owner of a znode. The Registrant checks the version instead,
// which it has read one round trip earlier.
type Registrant struct {
	claim.Requester
	cfg  RegistrantConfig
	own  []wire.SessionID // RegistrantConfig.Own, and earlier sessions of this Registrant
	last wire.SessionID   // the last session

	data  []byte      // data that the znode must hold
	Want  int         // number of data
	retry claim.Timer // runs after a refusal

	sessionState
}

// sessionState is the part of a Registrant's state that ends with its session.
type sessionState struct {
	made        bool      // a znode of this session may exist
	unsure      bool      // the answer to a write was lost
	have        int       // number of the data that this session's znode holds; 0: there is no such znode
	stat        wire.Stat // stat of the znode at the last read
	watch       uint64    // number of the request that set the watch; 0: no watch, so read first
	missing     bool      // the znode did not exist at that read
	parentsMade bool      // the parents were created just now
	stands      bool      // at the last read, this session's znode existed with the wanted data
	token       wire.Zxid // czxid of this session's znode at that read
	held        int       // number of its data at that read
	foreign     bool      // at the last read, the znode was foreign
	why         error     // any other reason why the registration does not stand
}

// anyData is the value of the field have if the znode exists and its data is not known yet.
const anyData = -1

// NewRegistrant returns the state machine. It does nothing until Attached is stepped.
func NewRegistrant(cfg RegistrantConfig) *Registrant {
	r := &Registrant{cfg: cfg, own: slices.Clone(cfg.Own), data: cfg.Data, Want: 1}
	r.Forget = r.startAnew
	return r
}

// RegistrantState is the state of a Registrant. At most one of Stands, Foreign and Leaving is true. Err is
// nil if Stands or Foreign is true.
type RegistrantState struct {
	Stands   bool           // the znode existed at the last read, and the session is not known to be over
	Doubtful bool           // Stands is true, but the connection is lost
	Session  wire.SessionID // the last session
	Token    wire.Zxid      // czxid of the znode; valid if Stands is true
	Have     int            // number of the znode's data; valid if Stands is true
	Foreign  bool           // the znode is foreign
	Owner    wire.SessionID // if Foreign is true: session that owns the znode; 0: the znode is persistent
	Err      error          // any other reason why the registration does not stand
	Leaving  bool           // the Registrant has resigned or ended
}

// State returns the current state.
func (r *Registrant) State() RegistrantState {
	s := RegistrantState{Session: r.last, Leaving: r.Leaving || r.Over()}
	switch {
	case s.Leaving && r.Current != 0:
	case s.Leaving:
		s.Err = r.why // the znode disappeared with its session
	case r.stands:
		s.Stands, s.Doubtful, s.Token, s.Have = true, !r.Connected, r.token, r.held
	case r.foreign:
		s.Foreign, s.Owner = true, r.stat.EphemeralOwner
	default:
		s.Err = r.why
	}
	return s
}

// Refused reports whether the registration is to be reported as refused. That is the case if the znode is
// foreign and the caller does not wait for it to disappear, or if the server refuses it. An expired
// session alone is not a refusal, because the next session registers again.
func (s RegistrantState) Refused(wait bool) bool {
	switch {
	case s.Leaving:
		return true
	case s.Foreign:
		return !wait
	}
	return s.Err != nil && !errors.Is(s.Err, wire.ErrSessionExpired)
}

// Step processes one event, which happened at now.
func (r *Registrant) Step(now claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case Keep:
		if ev.N > r.Want {
			r.data, r.Want, r.retry = ev.Data, ev.N, claim.Timer{}
		}
	case claim.Fired:
		if ev.N == r.watch {
			r.watch, r.missing, r.retry = 0, false, claim.Timer{}
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

// Ready returns what the steps since the last call have produced.
func (r *Registrant) Ready() claim.Ready {
	rd := r.Requester.Ready()
	if !r.Over() && r.Asked == 0 && r.Connected && rd.Wake == 0 && !r.retry.Over(r.Now) {
		rd.Wake = max(r.retry.Remaining(r.Now), time.Millisecond)
	}
	return rd
}

// startAnew discards the state that depended on the session. It remembers the session, because its znode
// may still exist.
func (r *Registrant) startAnew() {
	r.own = append(r.own, r.Current)
	r.own = r.own[max(len(r.own)-ownSessionsMax, 0):]
	r.sessionState = sessionState{why: wire.ErrSessionExpired}
}

// refuse records that the server refused a request, and starts the timer for the next try.
func (r *Registrant) refuse(err error) {
	r.stands, r.foreign, r.why, r.retry = false, false, err, claim.Timer{From: r.Now, Wait: RegistrationRetry}
}
