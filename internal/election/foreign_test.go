package election

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// compatibleServer is the election of a ZooKeeper server, according to its documented
// rules. When a quorum agrees it waits 200 ms after each message, even if all votes are
// known, and drops votes that are not better. It sends servers without a vote the result
// of the election before. It does not use refused connections, and does not recognise old
// messages.
type compatibleServer struct {
	id       ensemble.ServerID
	m        *ensemble.Membership
	now      int64
	state    peerwire.ServerState
	round    wire.Epoch
	initial  Vote
	proposal Vote
	current  ballot
	recv     map[ensemble.ServerID]ballot
	outside  map[ensemble.ServerID]ballot
	interval int64
	settling bool
	wake     int64
	ready    Ready
}

func newCompatibleServer(id ensemble.ServerID, m *ensemble.Membership) *compatibleServer {
	return &compatibleServer{id: id, m: m, wake: Never, recv: map[ensemble.ServerID]ballot{}, outside: map[ensemble.ServerID]ballot{}}
}

func (f *compatibleServer) State() State {
	if f.state == peerwire.Looking {
		return State{Role: f.state, Round: f.round, Vote: f.proposal, Settling: f.settling}
	}
	return State{Role: f.state, Round: f.round, Vote: f.current.Vote}
}

func (f *compatibleServer) Ready() Ready {
	r := f.ready
	r.Wake, f.ready = f.wake, Ready{}
	return r
}

func (f *compatibleServer) Step(now int64, ev Event) {
	f.now = now
	switch ev := ev.(type) {
	case Look:
		f.look(ev)
	case Heard:
		f.receive(ev.From, &ev.Notification)
	case Established:
		f.current.PeerEpoch = ev.Epoch
	case Tick:
		f.tick()
	}
}

func (f *compatibleServer) look(ev Look) {
	f.initial = noVote
	if s, ok := f.m.Server(f.id); ok && s.Role == ensemble.Participant {
		f.initial = Vote{f.id, ev.Zxid, ev.Epoch}
	}
	if f.state == peerwire.Looking && f.round == 0 {
		f.current = ballot{Vote: f.initial, round: -1}
	}
	clear(f.recv)
	clear(f.outside)
	f.state, f.settling, f.interval = peerwire.Looking, false, 200
	f.round++
	f.proposal = f.initial
	f.wake = f.now + f.interval
	f.broadcast()
	f.count()
}

// count starts the wait when a quorum agrees.
func (f *compatibleServer) count() {
	if f.quorum(f.recv, ballot{Vote: f.proposal, round: f.round}) {
		f.settling, f.wake = true, f.now+200
	}
}

func (f *compatibleServer) voter(id ensemble.ServerID) bool { return f.m.IsVoter(id) }

func (f *compatibleServer) beats(a, b Vote) bool {
	return f.m.Weight(a.Leader) > 0 && a.Compare(b) > 0
}

func (f *compatibleServer) say(to ensemble.ServerID, state peerwire.ServerState, v Vote, round wire.Epoch) {
	if to == f.id {
		f.recv[f.id] = ballot{Vote: v, round: round}
		return
	}
	f.ready.Send = append(f.ready.Send, Message{to, peerwire.Notification{State: state, Leader: v.Leader, Zxid: v.Zxid,
		PeerEpoch: v.PeerEpoch, ElectionEpoch: round, Version: peerwire.NotificationConfig, Config: f.m.String()}})
}

func (f *compatibleServer) broadcast() {
	for _, id := range f.m.Voters() {
		f.say(id, peerwire.Looking, f.proposal, f.round)
	}
}

func (f *compatibleServer) tick() {
	switch {
	case f.state != peerwire.Looking || f.wake > f.now:
	case f.settling:
		f.finish(ballot{Vote: f.proposal, round: f.round}, Agreed)
	default:
		f.interval = min(2*f.interval, 60_000)
		f.broadcast()
		f.wake = f.now + f.interval
	}
}

// receive answers a message and passes it on if it concerns the election.
func (f *compatibleServer) receive(from ensemble.ServerID, n *peerwire.Notification) {
	switch {
	case !f.voter(from):
		f.say(from, f.state, f.current.Vote, f.round)
		return
	case f.state != peerwire.Looking:
		if n.State == peerwire.Looking {
			f.say(from, f.state, f.current.Vote, f.current.round)
		}
		return
	case n.State == peerwire.Looking && n.ElectionEpoch < f.round:
		f.say(from, peerwire.Looking, f.proposal, f.round)
	}
	if f.settling {
		if !f.beats(voteOf(n), f.proposal) {
			f.wake = f.now + 200
			return
		}
		f.settling = false
		f.wake = f.now + f.interval
	}
	f.process(from, n)
}

func (f *compatibleServer) process(from ensemble.ServerID, n *peerwire.Notification) {
	if !f.voter(n.Leader) || n.State == peerwire.Observing {
		return
	}
	b := ballot{Vote: voteOf(n), round: n.ElectionEpoch, state: n.State}
	if n.State != peerwire.Looking {
		f.settled(from, b)
		return
	}
	switch {
	case n.Zxid == NoHistory || n.ElectionEpoch < f.round:
		return
	case n.ElectionEpoch > f.round:
		f.round = n.ElectionEpoch
		clear(f.recv)
		f.proposal = f.initial
		if f.beats(b.Vote, f.initial) {
			f.proposal = b.Vote
		}
		f.broadcast()
	case f.beats(b.Vote, f.proposal):
		f.proposal = b.Vote
		f.broadcast()
	}
	f.recv[from] = b
	f.count()
}

func (f *compatibleServer) settled(from ensemble.ServerID, b ballot) {
	ref := b
	ref.version = 2
	if b.round == f.round {
		f.recv[from] = b
		if f.quorum(f.recv, ref) && f.leads(f.recv, b) {
			f.finish(b, Follows)
			return
		}
	}
	f.outside[from] = ref
	if f.quorum(f.outside, ref) && f.leads(f.outside, b) {
		f.round = b.round
		f.finish(b, Follows)
	}
}

func (f *compatibleServer) quorum(votes map[ensemble.ServerID]ballot, b ballot) bool {
	return f.m.HasQuorum(func(id ensemble.ServerID) bool {
		o, ok := votes[id]
		return ok && o.agrees(b)
	})
}

func (f *compatibleServer) leads(votes map[ensemble.ServerID]ballot, b ballot) bool {
	if b.Leader == f.id {
		return b.round == f.round
	}
	return votes[b.Leader].state == peerwire.Leading
}

func (f *compatibleServer) finish(b ballot, how Ending) {
	f.state = peerwire.Following
	if b.Leader == f.id {
		f.state = peerwire.Leading
	} else if !f.voter(f.id) {
		f.state = peerwire.Observing
	}
	f.current, f.settling, f.wake = b, false, Never
	f.ready.Decision = &Decision{State: f.state, Vote: b.Vote, Round: b.round, Ending: how}
}
