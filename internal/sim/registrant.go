package sim

import (
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/registry"
	"bellwether/wire"
)

// places are the znodes at which registrants register.
var places = []string{"/places/a", "/places/b"}

// registrant keeps a registration at a place, ends it now and then, and begins anew. It
// also deletes the znode at the other place, as an operator would.
type registrant struct {
	runner
	place   string
	m       *registry.Registrant
	mine    []wire.SessionID // sessions of its process, and those that it has named as its own
	shown   registry.RegistrantState
	lives   int  // number of registrations, which makes their data unique
	want    int  // the number of the data that the znode should hold
	waits   bool // it waits until a znode of somebody else has gone
	asks    bool // it has not heard yet whether it can have the place
	waiting bool // it waits to begin its next registration
	home    bool // it begins no further registration
	points  int  // steps so far at which it could crash
	crashAt int  // the number of the step at which it crashes; 0: at none
}

// Observations of registrants, for the checkers.
type (
	// tenure says in which state a registration is from now on.
	tenure struct {
		t *registrant
		registry.RegistrantState
	}
	// registrantRefused says that the place belongs to another registrant, and that this
	// one does not wait for it.
	registrantRefused struct{ t *registrant }
	// registrantLeft says that a registration is over. Nothing is left of it except what
	// ends with its session.
	registrantLeft struct {
		t *registrant
		registry.RegistrantState
	}
)

func newRegistrant(c *client, place string) *registrant {
	t := &registrant{place: place}
	t.runner = runner{c: c, step: t.step}
	return t
}

// registrants returns all registrants of the run.
func (s *Sim) registrants() (all []*registrant) {
	for _, c := range s.clients {
		if t, ok := c.player.(*registrant); ok {
			all = append(all, t)
		}
	}
	return all
}

func (t *registrant) attached() {
	if t.m == nil && !t.waiting {
		t.begin()
	}
	if !slices.Contains(t.mine, t.c.session) {
		t.mine = append(t.mine, t.c.session)
	}
	t.step(claim.Attached{Session: t.c.session})
}

// crashed drops the registration. Another process begins later.
func (t *registrant) crashed() {
	t.drop()
	t.m, t.waiting = nil, false
	t.show(registry.RegistrantState{})
}

// begin registers. A new process may name the sessions of earlier processes as its own. If
// it does not, it treats what they have left as foreign.
func (t *registrant) begin() {
	if t.home {
		return
	}
	if t.c.random.chance(50) {
		t.mine = nil
	}
	t.lives, t.want = t.lives+1, 1
	t.waits, t.asks = t.c.sim.idle || t.c.random.chance(90), true
	t.m = registry.NewRegistrant(registry.RegistrantConfig{Path: t.place, Data: []byte(t.data(1)), Own: t.mine})
	t.actLater()
}

func (t *registrant) beginLater() {
	t.waiting = true
	t.soon(200*millisecond, func() {
		if t.waiting = false; t.c.attached {
			t.attached()
		}
	})
}

// data returns data that no other znode holds.
func (t *registrant) data(n int) string { return fmt.Sprintf("%d.%d.%d", t.c.id, t.lives, n) }

// actLater makes a registrant change its data, leave, or delete another's znode, again and
// again.
func (t *registrant) actLater() {
	within := 4 * second
	if brief := t.c.sim.opt.TermMS; brief > 0 {
		within = 2 * brief * millisecond
	}
	t.soon(within, func() {
		if t.c.sim.calm {
			return
		}
		switch t.c.random.below(10) {
		case 0, 1:
			t.step(claim.Resign{})
		case 2:
			t.meddle()
		default:
			t.keep()
		}
		if t.m != nil {
			t.actLater()
		}
	})
}

// keep makes the znode hold new data.
func (t *registrant) keep() {
	t.want++
	t.step(registry.Keep{Data: []byte(t.data(t.want)), N: t.want})
}

// meddle deletes the znode at the other place.
func (t *registrant) meddle() {
	for _, at := range places {
		if at != t.place && t.c.attached {
			t.c.send(&call{op: wire.OpDelete, path: at, body: wire.Append(nil, &wire.PathVersionRequest{Path: at, Version: -1})})
		}
	}
}

// step passes an event to the state machine and carries out what the machine asks for.
func (t *registrant) step(ev claim.Event) {
	m := t.m
	if m == nil {
		return
	}
	m.Step(t.now(), ev)
	rd := m.Ready()
	t.show(m.State())
	t.ask(rd.Request)
	if t.m != m || t.crashesHere() {
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
func (t *registrant) refused() bool {
	refused := t.asks && !t.shown.Leaving && t.shown.Refused(t.waits)
	if t.asks = t.asks && !refused && !(t.shown.Stands && !t.shown.Doubtful); refused {
		t.c.sim.see(registrantRefused{t})
	}
	return refused
}

// show reports the state of the registration to the checkers, if it has changed.
func (t *registrant) show(st registry.RegistrantState) {
	if st == t.shown {
		return
	}
	t.shown = st
	s := t.c.sim
	if st.Err != nil && !errors.Is(st.Err, wire.ErrSessionExpired) {
		s.fail("Registrations", "registrant %d is refused: %v", t.c.id, st.Err)
	}
	if st.Stands && !st.Doubtful {
		s.tell("registrant %d stands at %s since %v", t.c.id, t.place, st.Token)
	}
	s.see(tenure{t, st})
}

// over handles the end of the registration.
func (t *registrant) over() {
	if t.m.Outcome() != claim.Succeeded {
		t.c.sim.fail("Registrations", "registrant %d has %v: %v", t.c.id, t.m.Outcome(), t.m.Err())
		return
	}
	t.c.sim.tell("registrant %d has left %s", t.c.id, t.place)
	t.c.sim.see(registrantLeft{t, t.shown})
	t.drop()
	t.m = nil
	t.show(registry.RegistrantState{})
	t.beginLater()
}

// crashesHere crashes the registrant at the step that a scenario has chosen. It reports
// whether it did.
func (t *registrant) crashesHere() bool {
	if t.points++; t.points != t.crashAt {
		return false
	}
	t.c.sim.Do(Act{Kind: Kill, A: -t.c.id})
	return true
}

// endTenancies brings the registrations to their end. At each place one registration stands
// with the last data that it should hold. When it leaves, the next one stands, and in the
// end nothing stays. Other clients send no requests meanwhile, so that sessions expire.
func (s *Sim) endTenancies(within int64) {
	all := s.registrants()
	if len(all) == 0 {
		return
	}
	s.idle = true
	taken := func() string {
		for _, place := range places {
			if _, missing := s.lodged(place, false); missing != "" {
				return missing
			}
		}
		return ""
	}
	s.await("every place taken", within, taken)
	for _, t := range all {
		t.keep() // nobody deletes the znodes of others any more
	}
	s.await("every place taken by one registrant after the other, and then empty", within, s.vacate)
}

// vacate makes the standing registrants leave for good, once all stand as they should.
func (s *Sim) vacate() string {
	var stand []*registrant
	for _, place := range places {
		t, missing := s.lodged(place, true)
		if missing != "" {
			return missing
		}
		if t != nil {
			stand = append(stand, t)
		}
	}
	for _, t := range stand {
		t.home = true
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
func (s *Sim) lodged(place string, whole bool) (stands *registrant, missing string) {
	data, stat := s.content(place)
	waits := false
	for _, t := range s.registrants() {
		switch st := t.shown; {
		case t.place != place || t.m == nil && t.home:
		case st.Stands && !st.Doubtful && stat.EphemeralOwner == st.Session && (!whole || string(data) == t.data(t.want)):
			stands = t
		case st.Owned && st.Owner == stat.EphemeralOwner:
			waits = true
		default:
			return nil, fmt.Sprintf("registrant %d of %s is %+v, and session %v is there with %q", t.c.id, place, st, stat.EphemeralOwner, data)
		}
	}
	if stands == nil && (waits || stat.Czxid != 0) {
		return nil, fmt.Sprintf("session %v is at %s with %q", stat.EphemeralOwner, place, data)
	}
	return stands, ""
}
