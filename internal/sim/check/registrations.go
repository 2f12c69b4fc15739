package check

import (
	"fmt"
	"slices"

	"bellwether/internal/claim/registry"
	"bellwether/internal/record"
	"bellwether/wire"
)

// registrations checks registrations. A registrant that believes its registration stands
// has created the znode and has written what the znode holds. As long as its session lives,
// no other registrant at the place believes the same, except one that has not yet heard
// that an operator deleted its znode. No registrant changes the znode of another, and
// nothing is left of a registrant that has left.
type registrations struct {
	present Present
	at      map[string]znode
	makers  map[wire.Zxid]wire.SessionID  // who created a znode, by its czxid
	written map[wire.Zxid]map[string]bool // all data ever written to a znode, by its czxid
	lost    map[wire.Zxid]bool            // an operator or its own registrant has deleted the znode, and its owner may not know
	ended   map[wire.SessionID]bool       // sessions that have ended
	saw     map[int]wire.Stat             // the stat that a client saw when it last read the znode of its place
	now     map[int]RegistrationState
}

// znode is the znode at a place.
type znode struct {
	czxid   wire.Zxid
	owner   wire.SessionID
	version int32
}

func newRegistrations(p Present) *registrations {
	return &registrations{
		present: p, at: map[string]znode{}, makers: map[wire.Zxid]wire.SessionID{}, written: map[wire.Zxid]map[string]bool{},
		lost: map[wire.Zxid]bool{}, ended: map[wire.SessionID]bool{}, saw: map[int]wire.Stat{}, now: map[int]RegistrationState{},
	}
}

func (*registrations) Name() string { return "Registrations" }

func (r *registrations) See(o any) string {
	switch e := o.(type) {
	case Committed:
		for _, body := range changesOf(e.Txn) {
			if wrong := r.changed(e.Txn, body); wrong != "" {
				return wrong
			}
		}
	case Answered:
		r.look(e)
	case RegistrationState:
		r.now[e.Client] = e
		return r.stands(e)
	case RegistrationOver:
		if n, ok := r.at[e.Place]; ok && n.owner == e.Session && e.Err == nil {
			return fmt.Sprintf("registrant %d has left, but its znode of %v is still at %s", e.Client, n.czxid, e.Place)
		}
	}
	return ""
}

// changed examines what a transaction does at the Places.
func (r *registrations) changed(txn *record.Txn, body record.TxnBody) (wrong string) {
	switch b := body.(type) {
	case *record.CreateTxn:
		if slices.Contains(Places, b.Path) {
			r.at[b.Path] = znode{txn.Zxid, txn.Session, 0}
			r.makers[txn.Zxid] = txn.Session
			r.written[txn.Zxid] = map[string]bool{string(b.Data): true}
		}
	case *record.SetDataTxn:
		if n, ok := r.at[b.Path]; ok {
			wrong = r.touched(txn.Session, b.Path, n)
			r.written[n.czxid][string(b.Data)] = true
			n.version = b.Version
			r.at[b.Path] = n
		}
	case *record.DeleteTxn:
		if n, ok := r.at[b.Path]; ok {
			wrong = r.touched(txn.Session, b.Path, n)
			delete(r.at, b.Path)
		}
	case *record.CloseSessionTxn:
		r.ended[txn.Session] = true
		for _, p := range b.Paths {
			delete(r.at, p)
		}
	}
	return wrong
}

// touched checks a session that has set or deleted the znode at a place. A registrant of
// the place may do so only if it had to take the znode for its own: it has last seen a znode
// of its own with the same version there.
func (r *registrations) touched(session wire.SessionID, place string, n znode) string {
	all := r.present.Registrants()
	i := slices.IndexFunc(all, func(t Registrant) bool { return t.Place == place && slices.Contains(t.Own, session) })
	if i < 0 { // the session is an operator's
		r.lost[n.czxid] = true
		return ""
	}
	t := all[i]
	saw := r.saw[t.Client]
	switch {
	case slices.Contains(t.Own, n.owner):
		return ""
	case slices.Contains(t.Own, saw.EphemeralOwner) && saw.Version == n.version:
		r.lost[n.czxid] = true
		return ""
	}
	return fmt.Sprintf("registrant %d changes or deletes the znode of session %v at %s, but had last seen that of session %v",
		t.Client, n.owner, place, saw.EphemeralOwner)
}

// look records the stat that a registrant gets of the znode at its place.
func (r *registrations) look(e Answered) {
	s, ok := e.Record.(*wire.StatResponse)
	if ok && slices.ContainsFunc(r.present.Registrants(), func(t Registrant) bool { return t.Client == e.Client && t.Place == e.Path }) {
		r.saw[e.Client] = s.Stat
	}
}

// stands checks a registrant that believes its registration stands.
func (r *registrations) stands(s RegistrationState) string {
	switch {
	case !s.Stands || s.Doubtful:
		return ""
	case r.makers[s.Token] != s.Session:
		return fmt.Sprintf("registrant %d believes in its registration of session %v by the znode of %v, which session %v has created", s.Client, s.Session, s.Token, r.makers[s.Token])
	case !r.written[s.Token][s.Data]:
		return fmt.Sprintf("registrant %d believes that its znode holds %s, which was never written", s.Client, s.Data)
	case !r.owned(s.RegistrantState):
		return ""
	}
	for _, t := range r.present.Registrants() {
		if o := r.now[t.Client]; t.Client != s.Client && t.Place == s.Place && o.Stands && !o.Doubtful && r.owned(o.RegistrantState) {
			return fmt.Sprintf("registrants %d and %d both believe in their registration at %s", s.Client, t.Client, s.Place)
		}
	}
	return ""
}

// owned reports whether the session of the registration lives and its znode was not
// deleted by others.
func (r *registrations) owned(s registry.RegistrantState) bool {
	return !r.ended[s.Session] && !r.lost[s.Token]
}
