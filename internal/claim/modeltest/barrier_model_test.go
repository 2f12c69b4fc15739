package modeltest

import (
	"fmt"
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/claim"
	"bellwether/internal/claim/barrier"
	"bellwether/internal/claim/claimtest"
)

// Barriers and double barriers in the model of single operations.

const modelBarrier = "/app/barrier"

// roundsWorld has members of one double barrier, which enter and leave it repeatedly. The model derives
// the rounds from the tree.
type roundsWorld struct {
	*singleWorld
	n      int // how many members must be present
	names  int
	closed bool                       // no member enters any more
	in     map[*barrier.Member]bool   // members that are inside and have been checked
	own    map[string]int             // transaction that created each member's znode; entries are kept
	enough bool                       // n members have been present together since the last ready znode was created
	marks  []int                      // transactions that created ready
	over   []int                      // for each ready znode: the transaction after which no member older than it was present; 0: not yet
	rounds int                        // number of rounds that ended in order
	config map[*barrier.Member]string // names
}

func newRoundsWorld(choose func(int) int, b singleBroken, members, n int) *roundsWorld {
	w := &roundsWorld{singleWorld: newSingleWorld(choose, b), n: n, in: map[*barrier.Member]bool{}, own: map[string]int{}, config: map[*barrier.Member]string{}}
	w.stepped, w.changed = w.look, w.note
	for i := range members {
		w.add(fmt.Sprint("m", i), w.newMember, w.left)
	}
	return w
}

// newMember returns a member whose name has a random place among the others.
func (w *roundsWorld) newMember() claimtest.Single {
	if w.closed {
		return nil
	}
	w.names++
	name := fmt.Sprintf("%c%03d", 'a'+w.choose(20), w.names)
	m := barrier.NewMember(barrier.MemberConfig{Path: modelBarrier, Name: name, N: w.n})
	w.config[m] = name
	return m
}

// membersIn returns the members' znodes in a tree.
func membersIn(view map[string]*claimtest.Node) []string {
	return barrier.Members(children(view, modelBarrier))
}

// older returns the members in a tree whose znodes are older than a ready znode.
func (w *roundsWorld) older(mark int) []string {
	return slices.DeleteFunc(membersIn(w.tree()), func(name string) bool { return w.own[name] >= mark })
}

// note checks a transaction: ready may be created only when enough members are present.
func (w *roundsWorld) note() {
	now := len(w.log) - 1
	before, after := w.log[now-1], w.log[now]
	ready := path.Join(modelBarrier, "ready")
	for _, name := range membersIn(after) {
		if w.own[name] == 0 {
			w.own[name] = now
		}
	}
	there := len(membersIn(after)) >= w.n
	switch {
	case before[ready] == nil && after[ready] != nil:
		w.marks, w.over = append(w.marks, now), append(w.over, 0)
		if !w.enough {
			w.violated("ready is made, and there were never %d", w.n)
		}
	case before[ready] != nil && after[ready] == nil:
		w.enough = there
	}
	w.enough = w.enough || there
	for i, mark := range w.marks {
		if w.over[i] == 0 && len(w.older(mark)) == 0 {
			w.over[i] = now
		}
	}
}

// round returns the ready znode that lets a member in: the first one that is younger than the member, or,
// if there is none, the last one that is older.
func (w *roundsWorld) round(m *barrier.Member) (i int, ok bool) {
	for i < len(w.marks) && w.marks[i] < w.own[w.config[m]] {
		i++
	}
	if m.Late() {
		return i - 1, i > 0
	}
	return i, i < len(w.marks)
}

// look checks that a member inside was let in by a ready znode of its own round, or by one whose round
// had not ended.
func (w *roundsWorld) look(a *actor) {
	m := a.m.(*barrier.Member)
	if m.Phase() != barrier.Inside || w.in[m] {
		return
	}
	w.in[m] = true
	w.tellf("%s: %s is in, late %v", a.name, w.config[m], m.Late())
	switch i, ok := w.round(m); {
	case !ok:
		w.violated("%s is in without ready", w.config[m])
	case m.Late() && w.over[i] != 0 && w.over[i] < w.own[w.config[m]]:
		w.violated("%s is in by a round that is over", w.config[m])
	}
}

// left checks that a member that has left saw all members of its round leave.
func (w *roundsWorld) left(s claimtest.Single) {
	m := s.(*barrier.Member)
	if m.Outcome() != claim.Succeeded {
		return
	}
	w.rounds++
	i, ok := w.round(m)
	if !ok {
		w.violated("%s is out without ready", w.config[m])
	} else if in := w.older(w.marks[i]); len(in) > 0 {
		w.violated("%s is out while %q are in", w.config[m], in)
	}
}

// depart makes a member that is inside leave.
func (w *roundsWorld) depart(a *actor) {
	if m, ok := a.m.(*barrier.Member); ok && m.Settled() {
		w.step(a, barrier.Depart{})
	}
}

// run plays one history: first faults, then no faults until all members have left. Members that are too
// few to be let in give up, one after the other.
func (w *roundsWorld) run(steps int) {
	for range steps {
		if w.choose(8) == 0 {
			w.depart(w.actors[w.choose(len(w.actors))])
		}
		if w.act(); w.wrong != "" {
			return
		}
	}
	w.closed = true
	for w.wrong == "" && !w.empty() {
		w.settle()
		w.dead = nil
		w.goOn()
	}
	if left := membersIn(w.tree()); w.wrong == "" && len(left) > 0 {
		w.violated("%q stay", left)
	}
}

func (w *roundsWorld) empty() bool {
	return !slices.ContainsFunc(w.actors, func(a *actor) bool { return a.m != nil })
}

// goOn makes all members that are inside leave. If no member is inside and no member can proceed, it
// makes one member give up.
func (w *roundsWorld) goOn() {
	var waiting, leaving []*actor
	moved := false
	for _, a := range w.actors {
		m, here := a.m.(*barrier.Member)
		switch {
		case !here:
		case m.Phase() == barrier.Entering:
			waiting = append(waiting, a)
		case m.Settled():
			moved = true
			w.step(a, barrier.Depart{})
		default:
			leaving = append(leaving, a)
		}
	}
	switch {
	case moved:
	case len(leaving) > 0:
		w.violated("%s does not come out", leaving[0].name)
	case len(waiting) == 0:
	case len(waiting) >= w.n:
		w.violated("%d wait, and are enough", len(waiting))
	default:
		w.step(waiting[0], claim.Resign{})
	}
}

// gates lists the double barriers to play: number of members, and how many must be present.
var gates = [][2]int{{2, 2}, {3, 3}, {3, 2}, {5, 3}, {4, 1}}

// TestDoubleBarrierUnderFaults checks that no member is inside without enough others, that none leaves
// before its round has ended, and that none waits for ever, whatever is lost and whichever clients crash.
func TestDoubleBarrierUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := gates[rapid.IntRange(0, len(gates)-1).Draw(t, "gate")]
		w := newRoundsWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, singleBroken{}, g[0], g[1])
		if w.run(rapid.IntRange(0, 400).Draw(t, "steps")); w.wrong != "" {
			w.fail(t)
		}
	})
}

// TestDoubleBarrierSeeds checks the rules of TestDoubleBarrierUnderFaults in longer histories. In every second
// history, events carry no zxid. A member that an event let in may then connect to a server that does not know
// the ready znode yet.
func TestDoubleBarrierSeeds(t *testing.T) {
	for _, g := range gates {
		rounds := 0
		for seed := range uint64(claimtest.Seeds / 2) {
			w := newRoundsWorld(seededChoice(seed/2), singleBroken{}, g[0], g[1])
			w.mute = seed%2 == 1
			if w.run(1500); w.wrong != "" {
				t.Logf("seed %d, %d of %d, mute %v", seed, g[1], g[0], w.mute)
				w.fail(t)
			}
			rounds += w.rounds
		}
		if rounds < claimtest.Seeds/2 {
			t.Errorf("%d of %d: no more than %d came out", g[1], g[0], rounds)
		}
	}
}

// TestDoubleBarrierChecksNotice breaks one rule at a time, and requires that some history fails.
func TestDoubleBarrierChecksNotice(t *testing.T) {
	for name, b := range map[string]singleBroken{
		"the dead stay":                       {keep: true},
		"every event says that ready is made": {vague: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2000) {
				w := newRoundsWorld(seededChoice(seed), b, 3, 2)
				if w.run(800); w.wrong != "" {
					t.Logf("seed %d: %s", seed, w.wrong)
					return
				}
			}
			t.Fatal("no history showed it")
		})
	}
}

// barrierWorld has clients that close, open and pass one barrier.
type barrierWorld struct {
	*singleWorld
	closed bool                     // clients only pass the barrier; they no longer open or close it
	began  map[*barrier.Barrier]int // transaction after which each operation began
	passed int
}

func newBarrierWorld(choose func(int) int, b singleBroken) *barrierWorld {
	w := &barrierWorld{singleWorld: newSingleWorld(choose, b), began: map[*barrier.Barrier]int{}}
	for i := range 2 {
		w.add(fmt.Sprint("keeper ", i), func() claimtest.Single { return w.newAct(barrier.Act(w.choose(2))) }, w.did)
	}
	for i := range 3 {
		w.add(fmt.Sprint("walker ", i), func() claimtest.Single { return w.newAct(barrier.PassBarrier) }, w.did)
	}
	return w
}

func (w *barrierWorld) newAct(act barrier.Act) claimtest.Single {
	if w.closed {
		return nil
	}
	b := barrier.NewBarrier(modelBarrier, act)
	w.began[b] = len(w.log) - 1
	return b
}

// did checks that the barrier was in the reported state at some moment during the operation.
func (w *barrierWorld) did(s claimtest.Single) {
	b := s.(*barrier.Barrier)
	if b.Outcome() != claim.Succeeded {
		return
	}
	if b.Act() == barrier.PassBarrier {
		w.passed++
	}
	want := b.Act() == barrier.CloseBarrier
	if !slices.ContainsFunc(w.log[w.began[b]:], func(view map[string]*claimtest.Node) bool { return (view[modelBarrier] != nil) == want }) {
		w.violated("act %d is done, and it never was so", b.Act())
	}
}

// run plays one history. At the end the barrier is opened, and all clients must pass.
func (w *barrierWorld) run(steps int) {
	for range steps {
		if w.act(); w.wrong != "" {
			return
		}
	}
	w.closed = true
	w.settle()
	view := map[string]*claimtest.Node{}
	for p, n := range w.tree() {
		if p != modelBarrier {
			view[p] = n
		}
	}
	w.commit(view)
	w.settle()
	for _, a := range w.actors {
		if a.m != nil && w.wrong == "" {
			w.violated("%s does not pass", a.name)
		}
	}
}

// TestBarrierUnderFaults checks that a client passes only a barrier that was open, and that all clients
// pass one that stays open.
func TestBarrierUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newBarrierWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, singleBroken{})
		if w.run(rapid.IntRange(0, 300).Draw(t, "steps")); w.wrong != "" {
			w.fail(t)
		}
	})
}

// TestBarrierSeeds checks the rules of TestBarrierUnderFaults in longer histories. It also breaks the sync, to
// show that the sync is needed.
func TestBarrierSeeds(t *testing.T) {
	passed, noticed := 0, false
	for seed := range uint64(claimtest.Seeds) {
		w := newBarrierWorld(seededChoice(seed), singleBroken{})
		if w.run(900); w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
		passed += w.passed
		old := newBarrierWorld(seededChoice(seed), singleBroken{noSync: true})
		old.run(900)
		noticed = noticed || old.wrong != ""
	}
	if passed < claimtest.Seeds || !noticed {
		t.Errorf("%d passed; old news were noticed: %v", passed, noticed)
	}
}
