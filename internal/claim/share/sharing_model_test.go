package share

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
)

// A model of members that share parts or tasks. It knows which members exist, who bids for what, and
// which of these changes each member has been told about.

// partner is one member.
type partner struct {
	w     *shareWorld
	id    string
	event claim.Event // the last one
	m     *Sharing
	here  bool                 // whether the member wants to be registered
	told  map[string]nameList  // by root: the names that each open cache has reported
	shut  []string             // roots of caches that are about to be closed
	bids  map[string]*bidState // by part
	tidy  map[string]bool      // parts whose election is being deleted
	left  bool                 // the member has been told to leave, or has failed
	done  map[string]bool      // parts whose owner has returned by itself, until the part has been assigned to another member
	knew  map[string]int       // by task: the value of made when the member was last told about tasks. It tells apart tasks of the same name
}

// bidState is one bid of a member.
type bidState struct {
	told   bool
	ended  *claim.TermEnd // why the bid has ended; set before the member is told
	before bool           // the bid ended before the owner was told to let go
}

type shareWorld struct {
	*rapid.T
	tasks    bool
	most     int
	partners []*partner
	members  map[string]bool
	parts    map[string]bool
	made     map[string]int     // how often each task was created
	history  *claimtest.History // notes what the members are told and ask for; nil: nobody does
}

func (w *shareWorld) cfg(id string) SharingConfig {
	cfg := SharingConfig{Parent: "/s", ID: id, Tasks: w.tasks, Most: w.most}
	if !w.tasks {
		cfg.Parts = slices.Sorted(maps.Keys(w.parts))
	}
	return cfg
}

// begin starts a member, or starts it again after its end.
func (p *partner) begin() {
	p.m, p.here, p.left, p.shut = NewSharing(p.w.cfg(p.id)), false, false, nil
	p.told, p.bids, p.tidy, p.done, p.knew = map[string]nameList{}, map[string]*bidState{}, map[string]bool{}, map[string]bool{}, map[string]int{}
	p.carryOut()
}

func (p *partner) step(ev claim.Event) {
	p.m.Step(claim.Moment{}, ev)
	p.event = ev
	p.carryOut()
}

// carryOut checks that each operation makes sense.
func (p *partner) carryOut() {
	rd := p.m.Ready()
	p.note(rd)
	for _, d := range rd.Start {
		ok := true
		switch d.Kind {
		case claim.OpRegister:
			ok, p.here = !p.here, true
		case claim.OpFollow:
			_, open := p.told[d.Path]
			ok = p.w.members[p.id] && !open && !p.left
			p.told[d.Path] = nameList{root: d.Path}
		case claim.OpBid:
			ok = p.bids[d.Part()] == nil && !p.tidy[d.Part()] && !p.left && !p.done[d.Part()]
			p.bids[d.Part()] = &bidState{}
		case claim.OpResign:
			b := p.bids[d.Part()]
			ok = b != nil && !b.told
			b.told = true
		case claim.OpTidy:
			ok = p.w.tasks && p.bids[d.Part()] == nil && !p.tidy[d.Part()]
			p.tidy[d.Part()] = true
		case claim.OpUnfollow:
			_, ok = p.told[d.Path]
			delete(p.told, d.Path)
			p.shut = append(p.shut, d.Path)
		case claim.OpDeregister:
			ok = p.left && len(p.told)+len(p.shut)+len(p.bids)+len(p.tidy) == 0
			p.here = false
		}
		if !ok {
			p.w.Fatalf("%s is to %v, with %+v", p.id, d, p)
		}
	}
	if n := slices.Collect(maps.Values(p.bids)); p.w.most > 0 && len(slices.DeleteFunc(n, func(b *bidState) bool { return b.told })) > p.w.most {
		p.w.Fatalf("%s bids for %v", p.id, p.bids)
	}
}

// note notes the last step.
func (p *partner) note(rd claim.Ready) {
	if p.w.history == nil {
		return
	}
	ev := p.event
	if s, ok := ev.(Seen); ok {
		text := "seen " + s.Path + ":"
		for _, e := range s.Events {
			if text += " " + e.Type.String(); e.Node != nil {
				text += " " + e.Node.Path
			}
		}
		ev = claimtest.Told(text)
	}
	p.w.history.Step(0, p.id, ev, rd, fmt.Sprintf("over: %v, %v", p.m.Over(), p.m.Err()))
}

// close reports the end of the caches that the member wants to close.
func (p *partner) close() {
	for ; len(p.shut) > 0; p.shut = p.shut[1:] {
		p.m.Step(claim.Moment{}, CacheOver{Path: p.shut[0]})
	}
	p.carryOut()
}

// register creates or ends the registration, whichever the member has requested.
func (p *partner) register() {
	switch {
	case p.here && !p.w.members[p.id]:
		p.w.members[p.id] = true
		p.step(Registered{})
	case !p.here && !p.m.Over():
		delete(p.w.members, p.id)
		p.step(RegistrationOver{})
	}
}

// hear reports the current names below a root to the member, and leaves out what it already knows.
func (p *partner) hear(root string, there map[string]bool) {
	r, open := p.told[root]
	if !open {
		return
	}
	var text string
	for _, name := range r.names {
		if anew := root == "/s/tasks" && p.knew[name] != p.w.made[name]; anew || !there[name] {
			text += " -" + name
			if anew && there[name] {
				text += " " + name
			}
			delete(p.done, name)
		}
	}
	if root == "/s/tasks" {
		p.knew = maps.Clone(p.w.made)
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !slices.Contains(r.names, name) {
			text += " " + name
		}
	}
	r.names = slices.Sorted(maps.Keys(there))
	p.told[root] = r
	ev := seen(root, text+" .")
	p.forget()
	p.step(ev)
}

// forget removes from done the parts that are now assigned to other members. Once such a part is assigned
// to this member again, the member may bid for it again.
func (p *partner) forget() {
	members, parts := p.told["/s/members"].names, p.told["/s/tasks"].names
	if !p.w.tasks {
		parts = slices.Sorted(maps.Keys(p.w.parts))
	}
	shares := Share(members, parts)
	for part := range p.done {
		if shares[part] != p.id {
			delete(p.done, part)
		}
	}
}

// end ends a bid. The member is told later.
func (p *partner) end(part string, e claim.TermEnd) {
	if b := p.bids[part]; b.ended == nil {
		b.ended, b.before = &e, !b.told
	}
}

// over tells the member about a bid that has ended.
func (p *partner) over(part string) {
	b := p.bids[part]
	if b.ended == nil {
		return
	}
	delete(p.bids, part)
	if !b.told && !b.ended.Again() {
		p.done[part] = true
	}
	if b.ended.Err != nil && b.before {
		p.left = true
	}
	p.step(BidOver{Part: part, Resigned: !b.before, TermEnd: *b.ended})
}

func (p *partner) leave(err error) {
	p.left = true
	p.step(claim.Resign{Err: err})
}

// act chooses at random what happens next.
func (w *shareWorld) act() {
	p := rapid.SampledFrom(w.partners).Draw(w.T, "who")
	some := func(of []string) string { return rapid.SampledFrom(of).Draw(w.T, "which") }
	switch rapid.IntRange(0, 14).Draw(w.T, "act") {
	case 0:
		if p.m.Over() {
			p.begin()
		}
	case 1, 2:
		p.register()
	case 3, 4, 5:
		p.hear("/s/members", w.members)
	case 6, 7:
		p.hear("/s/tasks", w.parts)
	case 8, 9:
		if len(p.bids) > 0 {
			end := rapid.SampledFrom([]claim.TermEnd{{}, {}, {Returned: true}, {Returned: true}, {Err: claimtest.ErrRefused}}).Draw(w.T, "end")
			p.end(some(slices.Sorted(maps.Keys(p.bids))), end)
		}
	case 10:
		if p.close(); len(p.tidy) > 0 {
			p.tidied(some(slices.Sorted(maps.Keys(p.tidy))))
		}
	case 11:
		if delete(w.members, p.id); rapid.Bool().Draw(w.T, "leaves") { // otherwise its session is lost
			p.leave(nil)
		}
	case 12:
		if name := some([]string{"p0", "p1", "p2", "p3", "p4"}); w.tasks && w.parts[name] {
			delete(w.parts, name)
		} else if w.tasks {
			w.parts[name] = true
			w.made[name]++
		}
	case 13:
		if name := some([]string{"p0", "p1", "p2", "p3", "p4"}); w.tasks && w.parts[name] { // the task is done, and submitted again
			w.made[name]++
		}
	case 14:
		if len(p.bids) > 0 {
			p.over(some(slices.Sorted(maps.Keys(p.bids))))
		}
	}
}

func (p *partner) tidied(part string) {
	delete(p.tidy, part)
	p.step(Tidied{part})
}

// rest runs all members until no operation is left to complete.
func (w *shareWorld) rest() {
	for range 4 {
		for _, p := range w.partners {
			p.close()
			p.register()
			p.hear("/s/members", w.members)
			p.hear("/s/tasks", w.parts)
			for _, part := range slices.Sorted(maps.Keys(p.bids)) {
				if p.bids[part].told {
					p.end(part, claim.TermEnd{})
				}
				p.over(part)
			}
			for _, part := range slices.Sorted(maps.Keys(p.tidy)) {
				p.tidied(part)
			}
		}
	}
}

// check checks that each member bids for the parts assigned to it, except those that it has finished, and
// for no other parts.
func (w *shareWorld) check() {
	shares := Share(slices.Collect(maps.Keys(w.members)), slices.Collect(maps.Keys(w.parts)))
	for _, p := range w.partners {
		mine := 0
		for part, id := range shares {
			if id == p.id {
				mine++
			} else if p.bids[part] != nil {
				w.Fatalf("%s bids for %s of %s", p.id, part, id)
			}
		}
		if w.most > 0 {
			mine = min(mine, w.most)
		}
		if got := len(p.bids) + len(p.done); !p.m.Over() && got != mine {
			w.Fatalf("%s bids for %v, and has done with %v, of %d: %v", p.id, p.bids, p.done, mine, shares)
		}
	}
}

// TestSharingUnderChanges checks that each operation makes sense, whatever the order of changes, delays
// of reports and ends of bids. When all members know the current state, each part has a bid of the member
// to which it is assigned, and of no other. A member that leaves leaves nothing behind.
func TestSharingUnderChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &shareWorld{T: t, tasks: rapid.Bool().Draw(t, "tasks"), most: rapid.IntRange(0, 2).Draw(t, "most"),
			members: map[string]bool{}, parts: map[string]bool{"p0": true, "p1": true, "p2": true}, made: map[string]int{}}
		for _, id := range []string{"a", "b", "c"} {
			p := &partner{w: w, id: id}
			w.partners = append(w.partners, p)
			p.begin()
		}
		for range rapid.IntRange(1, 100).Draw(t, "rounds") {
			w.act()
		}
		w.rest()
		w.check()
		for i, p := range w.partners {
			p.leave(fmt.Errorf("left: %w", claimtest.ErrGivenUp))
			w.rest()
			if !p.m.Over() || w.members[p.id] || !p.left {
				t.Fatalf("%+v is not over", p)
			}
			if i == 0 && p.m.Err() != nil && errors.Is(p.m.Err(), claimtest.ErrGivenUp) == errors.Is(p.m.Err(), claimtest.ErrRefused) {
				t.Fatalf("%s has ended with %v", p.id, p.m.Err())
			}
			w.check()
		}
	})
}
