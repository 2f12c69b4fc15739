package check

import (
	"fmt"
	"maps"
	"slices"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// elections checks each server's part in the elections against the notifications that the server has
// received and sent. It relies on nothing that the server counts by itself:
//
//   - A server decides only when a quorum has told it the same vote in the same round. Only a unanimous
//     quorum decides without a wait, and better votes do not prolong the wait for ever. A server that joins a leader was told by that leader that it leads, and by a
//     quorum that it follows.
//   - The elected server has a vote and a weight, and leads with the history for which it was elected.
//   - The vote of a server has no less history than the server itself. A server that may have lost its history, or
//     whose disk is full, votes for nobody. A server that takes no part because its disk has no room begins no election.
//     Nobody votes for another server without weight. A server takes over a vote only if a voter has sent it.
//   - Each election is in a later round than the one before.
//   - Votes reach everybody: a changed vote is sent to all voters, an unanswered one is sent again, a server that
//     serves tells each voter that looks for a leader who leads, and no server sends the same vote again
//     and again.
//
// The events of one batch count together, because the end of an election is reported at the end of its batch.
type elections struct {
	present Present
	voters  map[ensemble.ServerID]*elector
	met     [electionRules]int
}

// The premises of elections.
const (
	decidedByVotes = iota
	decidedToJoin
	roundBegan
	voteSent
	voteResent
	lookerAnswered
	candidateDialled
	voteTaken
	weightlessThere
	voteAwaited
	electionRules
)

// Times in ms after which the checker complains. The limits of package election are a little shorter.
const (
	resentWithin = 2100 // a vote is sent again at the latest after 2000 ms
	betterWithin = 4    // a quorum waits for better votes for at least 5 ms
	settleMost   = 600  // all waits of a round together
	settleBound  = 550  // all waits of a round last at most 600 ms; after that nothing is waited for
	stormWindow  = 1000 // the time in which equal notifications to one server are counted
	stormMost    = 40   // and how many there may be
)

// elector is what the checker knows of a server in its present election, or of the election that gave it its role.
type elector struct {
	began   bool
	last    wire.Epoch    // the round of the last election or role
	initial election.Vote // the server's own vote when the election began, or since all voters are known to be empty
	own     heardVote     // the last vote that it has sent to a voter while it looked
	ownAt   int64         // when it was first sent, in ms
	roundAt int64         // when the round of own began
	settles heldWait      // the first wait for a better vote in its last round with such a wait
	sentAt  int64         // when its vote was last sent to all voters, plus the time for which the server has not run since
	heard   map[ensemble.ServerID][]heardVote
	down    map[ensemble.ServerID]int64 // the batch in which a server was reported as down
	sent    map[ensemble.ServerID]*sentVotes
	decided *election.Decision
	since   int64                      // when it decided, plus the time for which the server has not run since
	ranAt   int64                      // when its last batch began, in ms
	asked   map[ensemble.ServerID]bool // servers that look for a leader and were not answered yet
	members *ensemble.Membership       // at the end of its last batch
}

// heardVote is a vote as it was sent or heard.
type heardVote struct {
	election.Vote
	round wire.Epoch
	state peerwire.ServerState
	first bool
	batch int64
}

// heldWait is a wait for a better vote.
type heldWait struct {
	round wire.Epoch
	at    int64 // when it began, in ms
}

// sentVotes counts equal notifications to one server.
type sentVotes struct {
	last  heardVote
	since int64
	n     int
}

func newElections(p Present) *elections {
	return &elections{present: p, voters: map[ensemble.ServerID]*elector{}}
}

func (*elections) Name() string { return "Elections" }

// Met returns the counts of the rules.
func (c *elections) Met() []Count {
	return []Count{{"an election ends with votes", c.met[decidedByVotes]}, {"a server joins a leader", c.met[decidedToJoin]},
		{"an election begins", c.met[roundBegan]}, {"a vote is sent", c.met[voteSent]}, {"a vote is sent again", c.met[voteResent]},
		{"a server that serves is asked for the leader", c.met[lookerAnswered]}, {"a candidate is dialled", c.met[candidateDialled]},
		{"a server takes over a vote", c.met[voteTaken]}, {"a server votes where another one has no weight", c.met[weightlessThere]},
		{"a server waits again for a better vote", c.met[voteAwaited]}}
}

func (c *elections) See(o any) string {
	switch e := o.(type) {
	case Restarted:
		delete(c.voters, e.Server)
	case VoteHeard:
		c.heard(&e)
	case VoterDown:
		c.elector(e.Server).down[e.Peer] = e.Batch
	case Electing:
		return c.reported(&e)
	case Standing:
		return c.stands(&e)
	}
	return ""
}

func (c *elections) elector(id ensemble.ServerID) *elector {
	v := c.voters[id]
	if v == nil {
		v = &elector{last: -1, heard: map[ensemble.ServerID][]heardVote{}, down: map[ensemble.ServerID]int64{},
			sent: map[ensemble.ServerID]*sentVotes{}, asked: map[ensemble.ServerID]bool{}}
		c.voters[id] = v
	}
	return v
}

// heardMost is how many different votes of one server are kept.
const heardMost = 64

func (c *elections) heard(e *VoteHeard) {
	v, n := c.elector(e.Server), e.Notification
	h := heardVote{Vote: voteIn(n), round: n.ElectionEpoch, state: n.State, first: e.First, batch: e.Batch}
	all := v.heard[e.From]
	if k := len(all) - 1; k >= 0 && all[k] == h {
		return
	}
	if len(all) >= heardMost {
		all = append(all[:0:0], all[1:]...)
	}
	v.heard[e.From] = append(all, h)
	if e.Serves && n.State == peerwire.Looking {
		v.asked[e.From] = true
	}
}

func voteIn(n *peerwire.Notification) election.Vote {
	return election.Vote{Leader: n.Leader, Zxid: n.Zxid, PeerEpoch: n.PeerEpoch}
}

// reported takes what a server has sent and reported about elections in a batch.
func (c *elections) reported(e *Electing) string {
	v := c.elector(e.Server)
	c.runs(v, e.Mono)
	var decision *election.Decision
	for _, h := range e.Reports {
		switch h := h.(type) {
		case election.Began:
			if wrong := c.begins(e, v, &h); wrong != "" {
				return wrong
			}
			decision = nil
		case election.Founded:
			v.initial = election.Vote{Leader: e.Server} // with an empty history it may lead
		case election.Settling:
			if wrong := c.awaits(e, v, &h); wrong != "" {
				return wrong
			}
		case election.Decided:
			decision = &h.Decision
			if wrong := c.decides(e, v, decision); wrong != "" {
				return wrong
			}
		}
	}
	for i := range e.Votes {
		if wrong := c.sends(e, v, &e.Votes[i]); wrong != "" {
			return wrong
		}
	}
	if decision != nil {
		return c.told(e, v, decision)
	}
	return ""
}

// runs takes the beginning of a batch. A server that runs has a tick in each quarter of tickTime. A longer time without
// a batch does not count, because the server can neither send nor give up meanwhile.
func (c *elections) runs(v *elector, mono int64) {
	if stopped := mono - v.ranAt - c.present.Recipe().TickMS/4; stopped > 0 {
		v.since += stopped
		v.sentAt += stopped
	}
	v.ranAt = mono
}

// begins takes the beginning of an election.
func (c *elections) begins(e *Electing, v *elector, h *election.Began) string {
	c.met[roundBegan]++
	last := v.last
	v.began, v.decided, v.initial, v.last = true, nil, h.Vote, h.Round
	v.ownAt, v.roundAt, v.sentAt = e.Mono, e.Mono, e.Mono
	v.settles = heldWait{round: -1}
	for id, all := range v.heard { // those of this batch may have come after the beginning
		kept := all[:0]
		for _, x := range all {
			if x.batch == e.Batch {
				kept = append(kept, x)
			}
		}
		v.heard[id] = kept
	}
	clear(v.asked)
	switch {
	case e.Disabled && e.ShutOut && h.Round != 1: // a changed membership begins to count anew
		return fmt.Sprintf("server %d begins an election although its disk has no room", e.Server)
	case h.Round <= last && h.Round != 1:
		return fmt.Sprintf("server %d begins an election in round %d after round %d", e.Server, h.Round, last)
	}
	return ""
}

// awaits takes the beginning of a wait for a better vote.
func (c *elections) awaits(e *Electing, v *elector, h *election.Settling) string {
	if v.settles.round != h.Round {
		v.settles = heldWait{h.Round, e.Mono}
		return ""
	}
	c.met[voteAwaited]++
	if until := e.Mono + h.WaitMS - v.settles.at; until > settleMost {
		return fmt.Sprintf("server %d waits for a vote better than %v until %d ms after its first wait in round %d", e.Server, h.Vote, until, h.Round)
	}
	return ""
}

// decides checks a decision against the votes that were heard.
func (c *elections) decides(e *Electing, v *elector, d *election.Decision) string {
	v.decided, v.since = d, e.Mono
	if d.Ending != election.Named {
		v.last = d.Round
	}
	s := find(c.present.Servers(), e.Server)
	if s == nil || s.Members == nil {
		return ""
	}
	switch d.Ending {
	case election.Unanimous, election.Agreed:
		c.met[decidedByVotes]++
		return c.agreed(e, v, d, s)
	case election.Follows:
		c.met[decidedToJoin]++
		return c.joins(e, v, d, s)
	}
	return ""
}

// agreed checks a decision by votes.
func (c *elections) agreed(e *Electing, v *elector, d *election.Decision, s *Server) string {
	wants := func(x *heardVote) bool { return x.Vote == d.Vote && x.round == d.Round }
	has := func(id ensemble.ServerID) bool { return id == e.Server || v.some(id, wants) }
	switch {
	case !s.quorum(d.State == peerwire.Leading, has):
		return fmt.Sprintf("server %d decides for %v in round %d, but no quorum has sent it that vote", e.Server, d.Vote, d.Round)
	case weightOf(s.Members, d.Vote.Leader) == 0:
		return fmt.Sprintf("server %d elects server %d, which has no weight", e.Server, d.Vote.Leader)
	case d.State == peerwire.Leading && (d.Vote.Zxid != v.initial.Zxid || d.Vote.PeerEpoch != v.initial.PeerEpoch):
		return fmt.Sprintf("server %d leads by votes for %v, but has %v", e.Server, d.Vote, v.initial)
	case d.Ending == election.Agreed:
		if e.Mono-v.ownAt < betterWithin && e.Mono-v.roundAt < settleBound {
			return fmt.Sprintf("server %d decides %d ms after it voted for %v, without a wait for better votes", e.Server, e.Mono-v.ownAt, d.Vote)
		}
		return ""
	}
	for _, id := range s.Members.Voters() {
		fresh := func(x *heardVote) bool { return wants(x) && !x.first }
		if _, down := v.down[id]; id != e.Server && (id == d.Vote.Leader || !down) && !v.some(id, fresh) {
			return fmt.Sprintf("server %d decides at once for %v in round %d, but server %d may have another vote", e.Server, d.Vote, d.Round, id)
		}
	}
	return ""
}

// joins checks the decision to join a leader.
func (c *elections) joins(e *Electing, v *elector, d *election.Decision, s *Server) string {
	leader := d.Vote.Leader
	if !s.knows(leader) {
		return fmt.Sprintf("server %d follows server %d, which has no vote", e.Server, leader)
	}
	if leader != e.Server && !v.some(leader, func(x *heardVote) bool { return x.state == peerwire.Leading }) {
		return fmt.Sprintf("server %d follows server %d, which has not said that it leads", e.Server, leader)
	}
	has := func(id ensemble.ServerID) bool {
		follows, votes := false, false
		for i := range v.heard[id] {
			switch x := &v.heard[id][i]; {
			case x.state != peerwire.Looking && x.Leader == leader:
				follows = true
			case x.Vote == d.Vote && x.round == d.Round:
				votes = true
			case x.state == peerwire.Looking && !x.first && x.batch != e.Batch && (x.Leader == peerwire.NoServer || s.knows(x.Leader)): // others ignore a vote for a server without a vote, as in ZooKeeper
				// A vote for nobody, which an observer sends, does not take back the vote of the round.
				follows, votes = false, votes && x.Leader == peerwire.NoServer
			}
		}
		return follows || votes
	}
	if !s.quorum(d.State == peerwire.Leading, has) {
		return fmt.Sprintf("server %d follows server %d, but no quorum has told it so", e.Server, leader)
	}
	return ""
}

// knows reports whether a server knows another one as a voter.
func (s *Server) knows(id ensemble.ServerID) bool {
	return s.Members.IsVoter(id) || s.Proposed != nil && s.Proposed.IsVoter(id)
}

// quorum reports whether the servers for which has is true are enough to elect a server: to lead, also in a proposed
// membership.
func (s *Server) quorum(leads bool, has func(ensemble.ServerID) bool) bool {
	return HasQuorum(s.Members, has) && (!leads || s.Proposed == nil || HasQuorum(s.Proposed, has))
}

// some reports whether a vote that was heard from a server fulfils a condition.
func (v *elector) some(id ensemble.ServerID, holds func(*heardVote) bool) bool {
	for i := range v.heard[id] {
		if holds(&v.heard[id][i]) {
			return true
		}
	}
	return false
}

// sends takes a notification that is sent.
func (c *elections) sends(e *Electing, v *elector, m *election.Message) string {
	c.met[voteSent]++
	n := &m.Notification
	x := heardVote{Vote: voteIn(n), round: n.ElectionEpoch, state: n.State}
	s := v.sent[m.To]
	if s == nil {
		s = new(sentVotes)
		v.sent[m.To] = s
	}
	delete(v.asked, m.To)
	if s.last != x || e.Mono-s.since > stormWindow {
		s.last, s.since, s.n = x, e.Mono, 0
	}
	if s.n++; s.n > stormMost {
		return fmt.Sprintf("server %d sends server %d its vote for %v %d times in %d ms", e.Server, m.To, x.Vote, s.n, e.Mono-s.since)
	}
	r := find(c.present.Servers(), e.Server)
	toVoter := r == nil || r.Members == nil || r.knows(m.To)
	if n.State != peerwire.Looking || !toVoter && e.begins() {
		return "" // a server that was a voter may get a vote from before the membership changed
	}
	switch {
	case n.Leader == peerwire.NoServer:
	case e.Full && n.Zxid >= 0:
		return fmt.Sprintf("server %d votes for %v although its disk is full", e.Server, x.Vote)
	case e.Wiped && n.Zxid >= 0:
		return fmt.Sprintf("server %d votes for %v although it may have lost its history", e.Server, x.Vote)
	case v.initial.Zxid >= 0 && n.Zxid >= 0 && n.Leader != v.initial.Leader && v.less(x.Vote) && c.weighs(e.Server, v.initial.Leader):
		return fmt.Sprintf("server %d votes for %v, which has less history than its own %v", e.Server, x.Vote, v.initial)
	}
	if wrong := c.takes(e, v, &x); wrong != "" {
		return wrong
	}
	if !toVoter {
		return "" // the answer to another server may be older than what the voters are sent
	}
	if v.own.round != x.round {
		v.roundAt = e.Mono
		maps.DeleteFunc(v.down, func(_ ensemble.ServerID, batch int64) bool { return batch != e.Batch })
	}
	if v.own != x {
		v.own, v.ownAt = x, e.Mono
	}
	if v.sentAt = e.Mono; v.decided == nil { // otherwise the vote was sent before the decision
		v.last = x.round
	}
	return ""
}

// begins reports whether an election begins in the batch.
func (e *Electing) begins() bool {
	return slices.ContainsFunc(e.Reports, func(h replica.Observation) bool { _, begins := h.(election.Began); return begins })
}

// takes checks from where a server has its vote.
func (c *elections) takes(e *Electing, v *elector, x *heardVote) string {
	s := find(c.present.Servers(), e.Server)
	if x.Leader == peerwire.NoServer || x.Leader == e.Server || s == nil || s.Members == nil {
		return ""
	}
	if slices.ContainsFunc(s.Members.Voters(), func(id ensemble.ServerID) bool { return weightOf(s.Members, id) == 0 }) {
		if c.met[weightlessThere]++; s.Members.IsVoter(x.Leader) && weightOf(s.Members, x.Leader) == 0 {
			return fmt.Sprintf("server %d votes for server %d, which has no weight", e.Server, x.Leader)
		}
	}
	if x.Vote == v.own.Vote && x.round == v.own.round {
		return ""
	}
	c.met[voteTaken]++
	for id := range v.heard {
		if s.knows(id) && v.some(id, func(o *heardVote) bool { return o.Vote == x.Vote }) {
			return ""
		}
	}
	return fmt.Sprintf("server %d takes over the vote for %v, which no voter has sent", e.Server, x.Vote)
}

// less reports whether a vote has less history than the server's own one.
func (v *elector) less(o election.Vote) bool {
	return o.PeerEpoch < v.initial.PeerEpoch || o.PeerEpoch == v.initial.PeerEpoch && o.Zxid < v.initial.Zxid
}

// dialledMost returns for how many ms a candidate may be dialled: for 1000 ms or, if its terms have failed, up to
// initLimit, and as long again from when it says that it leads.
func (c *elections) dialledMost() int64 {
	return 2*max(1000, initLimit*c.present.Recipe().TickMS) + 500
}

// initLimit is a server's setting, in ticks.
const initLimit = 10

// weighs reports whether a server has weight in the membership of another.
func (c *elections) weighs(in, id ensemble.ServerID) bool {
	s := find(c.present.Servers(), in)
	return s != nil && s.Members != nil && weightOf(s.Members, id) > 0
}

// isVoter reports whether a server is a voter in a membership; nil: it is not known.
func isVoter(m *ensemble.Membership, id ensemble.ServerID) bool { return m != nil && m.IsVoter(id) }

// told checks that a server that decides by votes has sent its vote to all voters.
func (c *elections) told(e *Electing, v *elector, d *election.Decision) string {
	s := find(c.present.Servers(), e.Server)
	if s == nil || s.Members == nil || e.Disabled {
		return ""
	}
	if d.Ending != election.Unanimous && d.Ending != election.Agreed {
		return ""
	}
	for _, id := range s.Members.Voters() {
		if id == e.Server {
			continue
		}
		if x := v.sent[id]; x == nil || x.last.Vote != d.Vote || x.last.round != d.Round {
			return fmt.Sprintf("server %d decides for %v in round %d, but has not sent server %d this vote", e.Server, d.Vote, d.Round, id)
		}
	}
	return ""
}

// stands checks a server at the end of a batch.
func (c *elections) stands(e *Standing) string {
	v := c.voters[e.Server]
	if v == nil {
		return ""
	}
	c.runs(v, e.Mono)
	members := v.members
	v.members = e.Members
	if len(v.asked) > 0 {
		for id := range v.asked {
			if e.Serves && isVoter(members, id) && isVoter(e.Members, id) { // from the beginning to the end of the batch
				clear(v.asked)
				return fmt.Sprintf("server %d does not tell server %d, which looks for a leader, who leads", e.Server, id)
			}
			c.met[lookerAnswered]++
		}
		clear(v.asked)
	}
	switch {
	case !v.began:
	case v.decided == nil && e.Looks:
		c.met[voteResent]++
		if e.Mono-v.sentAt > resentWithin && v.own.Leader != peerwire.NoServer && v.own.round > 0 {
			return fmt.Sprintf("server %d has looked for a leader for %d ms and has not sent its vote again", e.Server, e.Mono-v.sentAt)
		}
	case v.decided != nil && e.Dials:
		c.met[candidateDialled]++
		if e.Mono-v.since > c.dialledMost() {
			return fmt.Sprintf("server %d has dialled server %d for %d ms", e.Server, v.decided.Vote.Leader, e.Mono-v.since)
		}
	}
	return ""
}
