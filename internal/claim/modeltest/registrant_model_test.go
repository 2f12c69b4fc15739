package modeltest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/registry"
	"bellwether/wire"
)

// Registrants at one path in the model of single operations.

// client is an actor that registers. It runs one process after the other.
type client struct {
	*actor
	id   int
	mine []wire.SessionID // sessions of its process, and sessions of earlier processes that this process was told about
	n    int              // number of its data
	data string           // data that the znode must hold
}

// placeWorld has clients that register at one path. No two znodes have the same version, so the version
// identifies the owner.
type placeWorld struct {
	*singleWorld
	clients []*client
	closed  bool               // no client registers any more
	swept   map[wire.Zxid]bool // czxids of the znodes that an operator deleted
}

func newPlaceWorld(choose func(int) int, b singleBroken, n int) *placeWorld {
	w := &placeWorld{singleWorld: newSingleWorld(choose, b), swept: map[wire.Zxid]bool{}}
	w.apart, w.effect, w.stepped = true, w.isOwn, w.checkStands
	for i := range n {
		l := &client{id: i}
		w.clients = append(w.clients, l)
		l.actor = w.add(fmt.Sprint("client ", i), func() claimtest.Single { return w.register(l) }, func(m claimtest.Single) { w.left(l, m) })
	}
	return w
}

// register starts another process, which may know the sessions of the earlier ones.
func (w *placeWorld) register(l *client) claimtest.Single {
	if w.closed {
		return nil
	}
	if w.choose(2) == 0 {
		l.mine = nil
	}
	l.next()
	return registry.NewRegistrant(registry.RegistrantConfig{Path: modelPlace, Data: []byte(l.data), Own: l.mine})
}

// registrant returns the current Registrant of a client; nil: none.
func (l *client) registrant() *registry.Registrant {
	if l.actor == nil {
		return nil // the client's first Registrant is being started
	}
	m, _ := l.m.(*registry.Registrant)
	return m
}

// next returns data that no znode has held.
func (l *client) next() {
	l.n++
	l.data = fmt.Sprintf("%d.%d", l.id, l.n)
}

// of returns the client that an actor belongs to.
func (w *placeWorld) of(a *actor) *client {
	return w.clients[slices.IndexFunc(w.clients, func(l *client) bool { return l.actor == a })]
}

// isOwn checks that a client writes only to its own znode.
func (w *placeWorld) isOwn(a *actor, ops []claim.Op) bool {
	n := w.tree()[modelPlace]
	for _, o := range ops {
		if o.Path == modelPlace && o.Kind != claim.OpCreate && n.Owner != a.session && !slices.Contains(w.of(a).mine, n.Owner) {
			w.violated("%s: %v of the znode of session %v", a.name, o.Kind, n.Owner)
		}
	}
	return false
}

// checkStands checks that only one client with a live session reports that it stands. Clients that have
// not yet heard of an operator's deletion do not count.
func (w *placeWorld) checkStands(a *actor) {
	l := w.of(a)
	if !slices.Contains(l.mine, a.session) {
		l.mine = append(l.mine, a.session)
	}
	var stands []string
	for _, l := range w.clients {
		if m := l.registrant(); m != nil {
			if s := m.State(); s.Stands && !s.Doubtful && s.Session == l.session && !w.swept[s.Token] {
				stands = append(stands, l.name)
			}
		}
	}
	if len(stands) > 1 {
		w.violated("%v stand at the same time", stands)
	}
}

// left checks that a client that resigned has left no znode.
func (w *placeWorld) left(l *client, m claimtest.Single) {
	if n := w.tree()[modelPlace]; m.Outcome() != claim.Succeeded || n != nil && n.Owner == l.session {
		w.violated("%s has %v, and there is %+v", l.name, m.Outcome(), n)
	}
}

// keep gives a client new data.
func (w *placeWorld) keep(l *client) {
	if m := l.registrant(); m != nil {
		l.next()
		w.step(l.actor, registry.Keep{Data: []byte(l.data), N: m.Want + 1})
	}
}

// sweep deletes the znode, as an operator would.
func (w *placeWorld) sweep() {
	view := maps.Clone(w.tree())
	if n := view[modelPlace]; n != nil {
		w.tellf("an operator deletes the znode of session %v", n.Owner)
		w.swept[n.Czxid] = true
		delete(view, modelPlace)
		w.commit(view)
	}
}

// delay moves an answer, and the events after it, behind the next messages.
func (w *placeWorld) delay(l *client) {
	if len(l.inbox) == 0 {
		return
	}
	if _, ok := l.inbox[0].(claim.Reply); !ok {
		return
	}
	n := 1
	for n < len(l.inbox) && isFired(l.inbox[n]) {
		n++
	}
	if n < len(l.inbox) {
		w.tellf("an answer to %s is late", l.name)
		l.inbox = slices.Concat(l.inbox[n:n+1], l.inbox[:n], l.inbox[n+1:])
	}
}

func isFired(ev claim.Event) bool {
	_, ok := ev.(claim.Fired)
	return ok
}

// run plays one history: faults, then healing. At the end all clients resign.
func (w *placeWorld) run(steps int) {
	for range steps {
		w.act()
		l := w.clients[w.choose(len(w.clients))]
		switch w.choose(100) {
		case 0, 1, 2:
			w.keep(l)
		case 3:
			w.sweep()
		case 4, 5, 6, 7:
			w.delay(l)
		}
		if w.wrong != "" {
			return
		}
	}
	w.closed = true
	for _, l := range w.clients {
		w.settle()
		w.checkRest()
		if l.m != nil {
			w.step(l.actor, claim.Resign{})
		}
	}
	w.settle()
	w.checkRest()
}

// checkRest checks that one client is registered with the data that it set last, and that the others know the
// owner for which they wait. Without clients no znode may exist.
func (w *placeWorld) checkRest() {
	n := w.tree()[modelPlace]
	stands, waits := 0, 0
	for _, l := range w.clients {
		m := l.registrant()
		if m == nil {
			continue
		}
		switch s := m.State(); {
		case s.Stands && !s.Doubtful && n != nil && n.Owner == l.session && n.Data == l.data:
			stands++
		case s.Foreign && n != nil && s.Owner == n.Owner:
			waits++
		default:
			w.violated("%s is %+v for ever, with %+v there", l.name, s, n)
		}
	}
	if stands != 1 && (waits > 0 || n != nil) {
		w.violated("%d stand and %d wait, with %+v there", stands, waits, n)
	}
}

func placeHistory(seed uint64, b singleBroken) *singleWorld {
	w := newPlaceWorld(seededChoice(seed), b, 1+int(seed%3))
	w.run(1200)
	return w.singleWorld
}

// TestRegistrantsAtOnePlace lets several clients register at the same path while answers and events are lost,
// sessions end, and other programs delete the znode. It checks four rules. At most one client is registered
// at a time. No client changes the znode of another client. At the end one client is registered, with the
// data that it set last. The znode of a client that resigns is deleted.
func TestRegistrantsAtOnePlace(t *testing.T) {
	for seed := range uint64(claimtest.Seeds) {
		if w := placeHistory(seed, singleBroken{}); w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
	}
}

// TestRegistrantsChecksNotice breaks one rule at a time, and requires that some history fails.
func TestRegistrantsChecksNotice(t *testing.T) {
	for name, b := range map[string]singleBroken{
		"sync does nothing":                   {noSync: true},
		"what a session has made outlives it": {keep: true},
		"versions are not compared":           {loose: true},
		"some events are lost":                {losesEvents: true},
	} {
		t.Run(name, func(t *testing.T) {
			noticed(t, func(seed uint64) *singleWorld { return placeHistory(seed, b) })
		})
	}
}
