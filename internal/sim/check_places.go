package sim

import (
	"fmt"
	"slices"

	"bellwether/internal/claim/registry"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// registrations checks registrations. A registrant that believes its registration stands
// has created the znode and has written what the znode holds. As long as its session lives,
// no other registrant at the place believes the same, except one that has not yet heard
// that an operator deleted its znode. No registrant changes the znode of another, and
// nothing is left of a registrant that has left.
type registrations struct {
	sim     *Sim
	at      map[string]lodging
	makers  map[wire.Zxid]wire.SessionID  // who created a znode, by its czxid
	written map[wire.Zxid]map[string]bool // all data ever written to a znode, by its czxid
	lost    map[wire.Zxid]bool            // the znode was deleted by somebody who was allowed to, and its owner may not know
	ended   map[wire.SessionID]bool       // sessions that have ended
	saw     map[*client]wire.Stat         // the stat that a client saw when it last looked
	now     map[*registrant]registry.RegistrantState
}

// lodging is the znode at a place.
type lodging struct {
	czxid   wire.Zxid
	owner   wire.SessionID
	version int32
}

func newRegistrations(s *Sim) *registrations {
	return &registrations{
		sim: s, at: map[string]lodging{}, makers: map[wire.Zxid]wire.SessionID{}, written: map[wire.Zxid]map[string]bool{},
		lost: map[wire.Zxid]bool{}, ended: map[wire.SessionID]bool{}, saw: map[*client]wire.Stat{}, now: map[*registrant]registry.RegistrantState{},
	}
}

func (*registrations) Name() string { return "Registrations" }

func (r *registrations) See(o any) string {
	switch e := o.(type) {
	case check.Committed:
		for _, body := range changesOf(e.Txn) {
			if wrong := r.changed(e.Txn, body); wrong != "" {
				return wrong
			}
		}
	case answered:
		r.look(e.call)
	case tenure:
		r.now[e.t] = e.RegistrantState
		return r.stands(e.t)
	case registrantLeft:
		if n, ok := r.at[e.t.place]; ok && n.owner == e.Session && e.Err == nil {
			return fmt.Sprintf("registrant %d has left, and its znode of %v is at %s", e.t.c.id, n.czxid, e.t.place)
		}
	}
	return ""
}

// changed examines what a transaction does at the places.
func (r *registrations) changed(txn *record.Txn, body record.TxnBody) (wrong string) {
	switch b := body.(type) {
	case *record.CreateTxn:
		if slices.Contains(places, b.Path) {
			r.at[b.Path] = lodging{txn.Zxid, txn.Session, 0}
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
// the place may do so if it took the znode for its own: the one that it had last seen was
// its own and had the same version.
func (r *registrations) touched(session wire.SessionID, place string, n lodging) string {
	i := slices.IndexFunc(r.sim.registrants(), func(t *registrant) bool { return t.place == place && slices.Contains(t.mine, session) })
	if i < 0 { // the session is an operator's
		r.lost[n.czxid] = true
		return ""
	}
	t := r.sim.registrants()[i]
	saw := r.saw[t.c]
	switch {
	case slices.Contains(t.mine, n.owner):
		return ""
	case slices.Contains(t.mine, saw.EphemeralOwner) && saw.Version == n.version:
		r.lost[n.czxid] = true
		return ""
	}
	return fmt.Sprintf("registrant %d touches the znode of session %v at %s, when it had seen that of session %v",
		t.c.id, n.owner, place, saw.EphemeralOwner)
}

// look records the stat that a registrant gets of the znode at its place.
func (r *registrations) look(k *call) {
	if t, ok := k.client.player.(*registrant); ok && k.path == t.place {
		if s, ok := k.record.(*wire.StatResponse); ok {
			r.saw[k.client] = s.Stat
		}
	}
}

// stands checks a registrant that believes its registration stands.
func (r *registrations) stands(t *registrant) string {
	s := r.now[t]
	switch {
	case !s.Stands || s.Doubtful:
		return ""
	case r.makers[s.Token] != s.Session:
		return fmt.Sprintf("registrant %d stands in session %v by the znode of %v, which session %v has made", t.c.id, s.Session, s.Token, r.makers[s.Token])
	case !r.written[s.Token][t.data(s.Have)]:
		return fmt.Sprintf("registrant %d stands with %s, which was never written", t.c.id, t.data(s.Have))
	case !r.rightly(s):
		return ""
	}
	for _, o := range r.sim.registrants() {
		if s := r.now[o]; o != t && o.place == t.place && s.Stands && !s.Doubtful && r.rightly(s) {
			return fmt.Sprintf("registrants %d and %d stand at %s", t.c.id, o.c.id, t.place)
		}
	}
	return ""
}

// rightly reports whether the session of the registration lives and its znode was not
// deleted by others.
func (r *registrations) rightly(s registry.RegistrantState) bool {
	return !r.ended[s.Session] && !r.lost[s.Token]
}
