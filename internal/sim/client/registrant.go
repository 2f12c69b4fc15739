package client

import (
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/registry"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// Registrant keeps a registration at a place, ends it now and then, and begins anew. It
// also deletes the znode at the other place, as an operator would.
type Registrant struct {
	Runner
	place    string
	m        *registry.Registrant
	own      []wire.SessionID // sessions of its process, and those that it has named as its own
	state    registry.RegistrantState
	lives    int  // number of registrations, which makes their data unique
	want     int  // the number of the data that the znode should hold
	waits    bool // it waits until another client's znode is deleted
	asks     bool // it has not heard yet whether it can have the place
	pausing  bool // it waits to begin its next registration
	finished bool // it begins no further registration
}

func newRegistrant(c *Client, place string) *Registrant {
	t := &Registrant{place: place}
	t.Runner = Runner{c: c, step: t.step}
	return t
}

// RegistrantClients returns all registrants of the run.
func (s *Group) RegistrantClients() (all []*Registrant) {
	for _, c := range s.All {
		if t, ok := c.Player.(*Registrant); ok {
			all = append(all, t)
		}
	}
	return all
}

func (t *Registrant) attached() {
	if t.m == nil && !t.pausing {
		t.begin()
	}
	if !slices.Contains(t.own, t.c.Session) {
		t.own = append(t.own, t.c.Session)
	}
	t.step(claim.Attached{Session: t.c.Session})
}

// crashed drops the registration. Another process begins later.
func (t *Registrant) crashed() {
	t.drop()
	t.m, t.pausing = nil, false
	t.report(registry.RegistrantState{})
}

// begin registers. A new process may name the sessions of earlier processes as its own. If
// it does not, it treats what they have left as foreign.
func (t *Registrant) begin() {
	if t.finished {
		return
	}
	if t.c.random.Chance(50) {
		t.own = nil
	}
	t.lives, t.want = t.lives+1, 1
	t.waits, t.asks = t.c.group.Phase().Idle || t.c.random.Chance(90), true
	t.m = registry.NewRegistrant(registry.RegistrantConfig{Path: t.place, Data: []byte(t.data(1)), Own: t.own})
	t.actLater()
}

func (t *Registrant) beginLater() {
	t.pausing = true
	t.soon(200*machine.Millisecond, func() {
		if t.pausing = false; t.c.Attached {
			t.attached()
		}
	})
}

// data returns data that no other znode holds.
func (t *Registrant) data(n int) string { return fmt.Sprintf("%d.%d.%d", t.c.ID, t.lives, n) }

// actLater makes a registrant change its data, leave, or delete another's znode, again and
// again.
func (t *Registrant) actLater() {
	within := 4 * machine.Second
	if brief := t.c.group.Settings().TermMS; brief > 0 {
		within = 2 * brief * machine.Millisecond
	}
	t.soon(within, func() {
		if t.c.group.Phase().Calm {
			return
		}
		switch t.c.random.Below(10) {
		case 0, 1:
			t.step(claim.Resign{})
		case 2:
			t.deleteOther()
		default:
			t.keep()
		}
		if t.m != nil {
			t.actLater()
		}
	})
}

// keep makes the znode hold new data.
func (t *Registrant) keep() {
	t.want++
	t.step(registry.Keep{Data: []byte(t.data(t.want)), N: t.want})
}

// deleteOther deletes the znode at the other place.
func (t *Registrant) deleteOther() {
	for _, at := range check.Places {
		if at != t.place && t.c.Attached {
			t.c.Send(&Call{Op: wire.OpDelete, Path: at, Body: wire.Append(nil, &wire.PathVersionRequest{Path: at, Version: -1})})
		}
	}
}

// step passes an event to the state machine and carries out what the machine asks for.
func (t *Registrant) step(ev claim.Event) {
	m := t.m
	if m == nil {
		return
	}
	m.Step(t.now(), ev)
	rd := m.Ready()
	t.report(m.State())
	t.request(rd.Request)
	if t.m != m || t.c.crashesHere() {
		return
	}
	switch {
	case m.Over():
		t.over()
	case t.refused():
		t.step(claim.Resign{})
	default:
		t.wake(rd.Wake)
	}
}

// refused reports, once, that the registrant cannot have the place. A registrant that has
// got the place stays.
func (t *Registrant) refused() bool {
	refused := t.asks && !t.state.Leaving && t.state.Refused(t.waits)
	if t.asks = t.asks && !refused && !(t.state.Stands && !t.state.Doubtful); refused {
		t.c.group.See(check.RegistrationRefused{Client: t.c.ID})
	}
	return refused
}

// report reports the state of the registration to the checkers, if it has changed.
func (t *Registrant) report(st registry.RegistrantState) {
	if st == t.state {
		return
	}
	t.state = st
	s := t.c.group
	if st.Err != nil && !errors.Is(st.Err, wire.ErrSessionExpired) {
		s.Fail("Registrations", "registrant %d is refused: %v", t.c.ID, st.Err)
	}
	if st.Stands && !st.Doubtful {
		s.Tell("registrant %d stands at %s since %v", t.c.ID, t.place, st.Token)
	}
	s.See(check.RegistrationState{Client: t.c.ID, Place: t.place, Data: t.data(st.Have), RegistrantState: st})
}

// over handles the end of the registration.
func (t *Registrant) over() {
	if t.m.Outcome() != claim.Succeeded {
		t.c.group.Fail("Registrations", "registrant %d has %v: %v", t.c.ID, t.m.Outcome(), t.m.Err())
		return
	}
	t.c.group.Tell("registrant %d has left %s", t.c.ID, t.place)
	t.c.group.See(check.RegistrationOver{Client: t.c.ID, Place: t.place, RegistrantState: t.state})
	t.drop()
	t.m = nil
	t.report(registry.RegistrantState{})
	t.beginLater()
}

// HasRegistrants reports whether there are registrants.
func (s *Group) HasRegistrants() bool { return len(s.RegistrantClients()) > 0 }

// PlacesMissing says what is missing until one registration stands at each place.
func (s *Group) PlacesMissing() string {
	for _, place := range check.Places {
		if _, missing := s.lodged(place, false); missing != "" {
			return missing
		}
	}
	return ""
}

// RenewAll gives all registrations new data. Nobody deletes the znodes of others any more.
func (s *Group) RenewAll() {
	for _, t := range s.RegistrantClients() {
		t.keep()
	}
}

// VacatePlaces makes the standing registrants leave for good, once all stand as they should.
func (s *Group) VacatePlaces() string {
	var stand []*Registrant
	for _, place := range check.Places {
		t, missing := s.lodged(place, true)
		if missing != "" {
			return missing
		}
		if t != nil {
			stand = append(stand, t)
		}
	}
	for _, t := range stand {
		t.finished = true
		t.step(claim.Resign{})
	}
	if len(stand) > 0 {
		return fmt.Sprintf("%d registrants are about to leave", len(stand))
	}
	return ""
}

// lodged returns the registrant that stands at a place. If whole is true, its znode must
// also hold its last data. If no registrant wants the place, lodged returns nil and an
// empty text. In all other cases it says what is missing.
func (s *Group) lodged(place string, whole bool) (stands *Registrant, missing string) {
	data, stat, _ := s.History().Content(place)
	waits := false
	for _, t := range s.RegistrantClients() {
		switch st := t.state; {
		case t.place != place || t.m == nil && t.finished:
		case st.Stands && !st.Doubtful && stat.EphemeralOwner == st.Session && (!whole || string(data) == t.data(t.want)):
			stands = t
		case st.Foreign && st.Owner == stat.EphemeralOwner:
			waits = true
		default:
			return nil, fmt.Sprintf("registrant %d of %s is %+v, and session %v is there with %q", t.c.ID, place, st, stat.EphemeralOwner, data)
		}
	}
	if stands == nil && (waits || stat.Czxid != 0) {
		return nil, fmt.Sprintf("session %v is at %s with %q", stat.EphemeralOwner, place, data)
	}
	return stands, ""
}
