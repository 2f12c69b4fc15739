package election

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// world is a network of servers that elect. Connections behave as in the protocol: each
// direction has one slot for the message that is not sent yet, the last message is resent
// on a new connection, dead servers refuse connections, and servers that are cut off are
// silent.
type world struct {
	now     int64
	servers map[ensemble.ServerID]*server
	links   map[[2]ensemble.ServerID]*link // from, to
	up      map[[2]ensemble.ServerID]bool  // smaller, larger
	cut     map[[2]ensemble.ServerID]bool
	trips   bool // whether round trips are measured
	output  []string
	wrong   []string
	cast    map[wire.Epoch]map[ensemble.ServerID][]cast
}

// server is a server of the network, with the history on its disk.
type server struct {
	id       ensemble.ServerID
	alive    bool
	e        elector
	foreign  bool // plays a ZooKeeper server
	filtered bool // learners cannot reach it
	look     Look
	members  *ensemble.Membership
	decision *Decision // while it has a role
	giveUp   string
	serving  bool
	proposal Vote // the proposal that was last seen; its round and membership follow
	round    wire.Epoch
	text     string
	since    int64
}

// elector is an Election, or a model of a server of ZooKeeper.
type elector interface {
	Step(now int64, ev Event)
	Ready() Ready
	State() State
}

// link is one direction between two servers.
type link struct {
	slot, last *peerwire.Notification
	first      bool
	flight     []inFlight
}

type inFlight struct {
	n     peerwire.Notification
	first bool
}

// cast is a vote that a server held in a round, and its own history at that time.
type cast struct {
	vote, own Vote
	voted     bool // false: it has joined a leader by the word of others
}

// membership makes a membership of voters and observers.
func membership(version int64, voters, observers []ensemble.ServerID, groups map[ensemble.GroupID][]ensemble.ServerID,
	weights map[ensemble.ServerID]int64) *ensemble.Membership {
	d := ensemble.Definition{Version: version, Groups: groups, Weights: weights}
	for role, ids := range [][]ensemble.ServerID{voters, observers} {
		for _, id := range ids {
			d.Servers = append(d.Servers, ensemble.Server{ID: id, Role: ensemble.Role(role),
				Addresses: []ensemble.Address{{Host: "127.0.0.1", QuorumPort: 2000 + int(id), ElectionPort: 3000 + int(id)}}})
		}
	}
	m, err := ensemble.New(d)
	if err != nil {
		panic(err)
	}
	return m
}

func newWorld() *world {
	return &world{
		servers: map[ensemble.ServerID]*server{}, links: map[[2]ensemble.ServerID]*link{},
		up: map[[2]ensemble.ServerID]bool{}, cut: map[[2]ensemble.ServerID]bool{},
		cast: map[wire.Epoch]map[ensemble.ServerID][]cast{},
	}
}

// add adds a server that is not started.
func (w *world) add(id ensemble.ServerID, m *ensemble.Membership) *server {
	s := &server{id: id, members: m, look: Look{Why: "started"}}
	w.servers[id] = s
	return s
}

func (w *world) ids() []ensemble.ServerID { return slices.Sorted(maps.Keys(w.servers)) }

func pair(a, b ensemble.ServerID) [2]ensemble.ServerID {
	return [2]ensemble.ServerID{min(a, b), max(a, b)}
}

func (w *world) link(from, to ensemble.ServerID) *link {
	k := [2]ensemble.ServerID{from, to}
	if w.links[k] == nil {
		w.links[k] = &link{}
	}
	return w.links[k]
}

func (w *world) tellf(format string, args ...any) {
	w.output = append(w.output, fmt.Sprintf("%6d ms  ", w.now)+fmt.Sprintf(format, args...))
}

func (w *world) wrongf(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// start starts a server's process, which then looks for a leader.
func (w *world) start(id ensemble.ServerID) {
	s := w.servers[id]
	s.alive, s.round = true, 0
	s.e = New(Options{ID: id, Committed: s.members, Reconfig: true})
	if s.foreign {
		s.e = newCompatibleServer(id, s.members)
	}
	w.lookAgain(s, "started")
}

// lookAgain makes a server look for a leader.
func (w *world) lookAgain(s *server, why string) {
	s.look.Why = why
	s.decision, s.giveUp, s.serving = nil, "", false
	w.step(s, s.look)
}

// step steps an event and carries out the resulting duties.
func (w *world) step(s *server, ev Event) {
	before := s.e.State()
	s.e.Step(w.now, ev)
	r := s.e.Ready()
	if e, native := s.e.(*Election); native {
		if wrong := e.check(before.Round); wrong != "" {
			w.wrongf("%d, after %T: %s", s.id, ev, wrong)
		}
	}
	if r.Adopt != nil {
		s.members = r.Adopt
	}
	w.watch(s, before, ev)
	for _, h := range r.Observations {
		w.tellf("%d %s", s.id, h)
	}
	w.tellSent(s, r.Send)
	for _, m := range r.Send {
		w.link(s.id, m.To).slot = &m.Notification
		w.note(s, m.Notification.ElectionEpoch, voteOf(&m.Notification), m.Notification.State == peerwire.Looking)
	}
	if r.Decision != nil {
		s.decision, s.since = r.Decision, w.now
		w.checkDecision(s, before, r.Decision)
	}
	if r.GiveUp != "" {
		s.giveUp = r.GiveUp
	}
	for _, m := range r.Send {
		w.pump(s, m.To)
	}
	if _, tick := ev.(Tick); tick && r.Wake <= w.now {
		w.wrongf("%d wants to be woken at %d, at %d", s.id, r.Wake, w.now)
	}
}

// tellSent prints what a server sends. Equal messages to several servers are one line.
func (w *world) tellSent(s *server, sent []Message) {
	for len(sent) > 0 {
		var same []ensemble.ServerID
		text := show(&sent[0].Notification)
		sent = slices.DeleteFunc(slices.Clone(sent), func(m Message) bool {
			if show(&m.Notification) != text {
				return false
			}
			same = append(same, m.To)
			return true
		})
		w.tellf("%d → %s %s", s.id, list(same), text)
	}
}

func show(n *peerwire.Notification) string {
	v := voteOf(n)
	return fmt.Sprintf("%s %s, round %d", n.State, v, n.ElectionEpoch)
}

// pump sends the message in the slot. It makes a connection if there is none.
func (w *world) pump(s *server, to ensemble.ServerID) {
	l := w.link(s.id, to)
	other := w.servers[to]
	k := pair(s.id, to)
	switch {
	case l.slot == nil || !s.alive || w.cut[k]:
		return
	case other == nil || !other.alive:
		w.step(s, Down{to})
		return
	}
	if !w.up[k] {
		w.connect(s, other)
	}
	if l.slot != nil {
		w.transmit(s.id, to)
	}
}

// connect makes a connection. Both ends resend their last message unless they have a
// newer one.
func (w *world) connect(a, b *server) {
	w.up[pair(a.id, b.id)] = true
	for _, d := range [][2]*server{{a, b}, {b, a}} {
		l := w.link(d[0].id, d[1].id)
		l.first, l.flight = true, nil
		if l.slot == nil && l.last != nil {
			w.tellf("%d → %d again %s", d[0].id, d[1].id, show(l.last))
			l.slot = l.last
		}
		if l.slot != nil {
			w.transmit(d[0].id, d[1].id)
		}
		w.step(d[0], Up{d[1].id})
		if w.trips {
			w.step(d[0], RoundTrip{d[1].id, 1e6})
		}
	}
}

func (w *world) transmit(from, to ensemble.ServerID) {
	l := w.link(from, to)
	l.flight = append(l.flight, inFlight{*l.slot, l.first})
	l.last, l.slot, l.first = l.slot, nil, false
}

// deliver delivers the oldest message on its way. It returns false if there is none.
func (w *world) deliver(from, to ensemble.ServerID) bool {
	l := w.link(from, to)
	if len(l.flight) == 0 {
		return false
	}
	f := l.flight[0]
	l.flight = l.flight[1:]
	w.step(w.servers[to], Heard{From: from, First: f.first, Notification: f.n})
	return true
}

// busy lists the links with messages on their way, in order.
func (w *world) busy() [][2]ensemble.ServerID {
	var out [][2]ensemble.ServerID
	for k, l := range w.links {
		if len(l.flight) > 0 {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b [2]ensemble.ServerID) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return out
}

// settle delivers messages until none is on its way, without time passing. It returns
// false if that does not end.
func (w *world) settle() bool {
	for range 10_000 {
		links := w.busy()
		if len(links) == 0 {
			return true
		}
		for _, k := range links {
			w.deliver(k[0], k[1])
		}
	}
	w.wrongf("messages without end")
	return false
}

// sever ends the connection between two servers. Messages on their way are lost.
func (w *world) sever(a, b ensemble.ServerID) {
	delete(w.up, pair(a, b))
	w.link(a, b).flight, w.link(b, a).flight = nil, nil
}

// crash ends a server's process. Servers that are connected to it see a reset.
func (w *world) crash(id ensemble.ServerID) {
	s := w.servers[id]
	s.alive, s.decision, s.serving = false, nil, false
	for _, other := range w.ids() {
		l := w.link(id, other)
		l.slot, l.last = nil, nil
		k := pair(id, other)
		connected := w.up[k]
		w.sever(id, other)
		if o := w.servers[other]; connected && !w.cut[k] && o.alive {
			w.step(o, Down{id})
		}
	}
}

// partition makes the connection between two servers silent in both directions.
func (w *world) partition(a, b ensemble.ServerID) {
	w.cut[pair(a, b)] = true
	w.sever(a, b)
}

// heal removes all partitions, and sends the messages that wait.
func (w *world) heal() {
	clear(w.cut)
	for _, a := range w.ids() {
		for _, b := range w.ids() {
			w.pump(w.servers[a], b)
		}
	}
}

// pass lets time pass: deadlines fire, and nothing is delivered.
func (w *world) pass(ms int64) {
	for range ms {
		w.now++
		for _, id := range w.ids() {
			s := w.servers[id]
			if s.alive && s.e != nil && w.due(s) {
				w.step(s, Tick{})
			}
		}
	}
}

// due reports whether a server wants to be woken. Taking the Ready here would
// lose duties, but there are none left after each step.
func (w *world) due(s *server) bool { return s.e.Ready().Wake <= w.now }

// watch records the votes that are held, and checks the rules that hold after every step.
func (w *world) watch(s *server, before State, ev Event) {
	st := s.e.State()
	if st.Role != peerwire.Looking {
		return
	}
	if _, began := ev.(Look); !began && before.Role == peerwire.Looking && s.round == st.Round && !st.Barred &&
		s.prefers(s.proposal, st.Vote) && before.Round == st.Round && s.text == s.members.String() {
		w.wrongf("%d went from %s down to %s in round %d", s.id, s.proposal, st.Vote, st.Round)
	}
	s.proposal, s.round, s.text = st.Vote, st.Round, s.members.String()
	w.note(s, st.Round, st.Vote, true)
}

// prefers reports whether a server prefers one vote to another. A native server takes its
// memory of failed terms into account.
func (s *server) prefers(a, b Vote) bool {
	if e, ours := s.e.(*Election); ours {
		return e.beats(a, b)
	}
	return beats(a, b, s.weigh)
}

func (s *server) weigh(id ensemble.ServerID) int64 { return s.members.Weight(id) }

// note records that a server held a vote in a round, for which it voted or which it joined as a
// follower of a leader that a quorum follows.
func (w *world) note(s *server, round wire.Epoch, v Vote, voted bool) {
	if w.cast[round] == nil {
		w.cast[round] = map[ensemble.ServerID][]cast{}
	}
	c := cast{v, Vote{s.id, s.look.Zxid, s.look.Epoch}, voted}
	if votes := w.cast[round][s.id]; !slices.Contains(votes, c) {
		w.cast[round][s.id] = append(votes, c)
	}
}

// checkDecision checks the rules that hold for every decision. The numbers are those of
// the safety properties in the protocol's description.
func (w *world) checkDecision(s *server, before State, d *Decision) {
	m := d.Vote.Leader
	if d.Ending == Named || d.Ending == LeadershipTransferred {
		return
	}
	if !s.members.IsVoter(m) || s.members.Weight(m) == 0 {
		w.wrongf("%d decided on %d, which cannot lead", s.id, m)
	}
	if d.Ending == Follows {
		if d.State == peerwire.Leading && d.Round != before.Round {
			w.wrongf("%d leads by followers of round %d in round %d", s.id, d.Round, before.Round)
		}
		return
	}
	supports := func(id ensemble.ServerID) bool {
		for _, c := range w.cast[d.Round][id] {
			if c.vote == d.Vote {
				return true
			}
		}
		return id == s.id
	}
	if !s.members.HasQuorum(supports) {
		w.wrongf("%d decided on %s in round %d without a quorum", s.id, d.Vote, d.Round)
	}
	for _, id := range d.Supporters {
		for _, c := range w.cast[d.Round][id] {
			if c.vote == d.Vote && c.voted && s.members.Weight(id) > 0 && c.own.history(d.Vote) > 0 {
				w.wrongf("%d decided on %s in round %d, but its supporter %d has %s", s.id, d.Vote, d.Round, id, c.own)
			}
		}
	}
}

// states prints the state of all servers.
func (w *world) states() string {
	var b strings.Builder
	for _, id := range w.ids() {
		s := w.servers[id]
		if !s.alive {
			fmt.Fprintf(&b, "%d down\n", id)
			continue
		}
		st := s.e.State()
		fmt.Fprintf(&b, "%d %s round %d vote %s", id, st.Role, st.Round, st.Vote)
		for _, f := range []struct {
			on   bool
			word string
		}{{st.Settling, "settling"}, {st.Barred, "barred"}, {s.serving, "serving"}, {s.giveUp != "", "to give up"}} {
			if f.on {
				b.WriteString(", " + f.word)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// State is the state of an election.
type State struct {
	Role  peerwire.ServerState
	Round wire.Epoch
	// Vote is the proposal while LOOKING, else the decision.
	Vote Vote
	// Settling says that a quorum agrees and the election waits for a better vote.
	Settling bool
	// Barred says that this server has no history and only joins a leader.
	Barred bool
}

// State returns the state of the election after the last Step.
func (e *Election) State() State {
	s := State{Role: e.state, Round: e.round, Vote: e.current.Vote, Barred: e.barred}
	if e.state == peerwire.Looking {
		s.Vote, s.Settling = e.proposal, e.settleAt != Never
	}
	return s
}
