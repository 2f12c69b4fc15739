package realpeers

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/sim"
	"bellwether/internal/zab"
	"bellwether/interop/target"
	"bellwether/wire"
)

// Limits of ZooKeeper in ticks, so long that no pause of a busy machine reaches them.
const (
	initLimit = 1000
	syncLimit = 1000
)

// replay plays the other servers of a recorded run to ZooKeeper.
type replay struct {
	*wires
	t        *testing.T
	ctx      context.Context
	rec      *sim.Recording
	z        *target.Server
	ports    [2]string // ZooKeeper's addresses for servers: quorum and election
	configs  *strings.Replacer
	peers    map[ensemble.ServerID]*peer
	complete map[zab.LinkID]bool // the connections of the recorded run on which a learner is brought up to date
	links    map[zab.LinkID]*link
	votes    *voteBook
	sessions sessions
	known    *knowledge
	step     int
	znodes   int
	running  bool       // ZooKeeper's process runs
	client   chan error // the result of the client of this step; nil: none runs
	resuming bool       // the client of this step has begun to move to ZooKeeper
	found    []difference
}

// link is a connection between a learner and its leader in both runs.
type link struct {
	*learnerConn
	leads    bool               // ZooKeeper is the leader
	upToDate bool               // for the phases of the recorded packets
	snapshot bool               // ZooKeeper has sent a snapshot instead of transactions
	requests int                // those that were compared
	want     map[phase][]string // what the simulated server has sent and was not compared yet
	next     map[phase]int      // how many lines of ZooKeeper were awaited
	compared map[phase]int      // how many lines of ZooKeeper were compared
}

// repeat plays a recorded run to ZooKeeper, and returns the differences. It ends with the
// first difference after which it cannot go on.
func repeat(t *testing.T, rec *sim.Recording, k *knowledge) []difference {
	t.Helper()
	r := &replay{
		wires: newWires(t), t: t, ctx: t.Context(), rec: rec, peers: map[ensemble.ServerID]*peer{}, complete: map[zab.LinkID]bool{}, links: map[zab.LinkID]*link{},
		sessions: sessions{}, votes: newVoteBook(rec), known: k,
	}
	for _, e := range rec.Exchanges {
		if e.Packet != nil && e.Packet.Type == peerwire.PacketUpToDate {
			r.complete[e.Link] = true
		}
	}
	r.prepare(t.TempDir())
	defer r.z.Kill()
	at := 0
	for i, s := range rec.Steps {
		r.step, r.resuming = i, false
		r.must(r.act(s))
		for ; at < len(rec.Exchanges) && rec.Exchanges[at].Step == i; at++ {
			if !r.play(at) {
				t.Logf("the run ends here; ZooKeeper's log ends:\n%s", r.z.Log())
				return r.found
			}
		}
		r.finish()
	}
	return r.found
}

func (r *replay) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// play plays what the compatible server receives, and awaits what it sends. It returns false
// if ZooKeeper does not send it.
func (r *replay) play(i int) bool {
	e := r.rec.Exchanges[i]
	switch {
	case e.Notification != nil && e.Sent:
		return r.awaitVote(r.votes.required[i])
	case e.Notification != nil:
		n := *e.Notification
		r.votes.heard(&n)
		n.Config = r.configs.Replace(n.Config)
		if !r.peers[e.Peer].vote(&n) {
			r.t.Fatalf("after step %d, server %d cannot connect to ZooKeeper for elections", r.step, e.Peer)
		}
	case !r.complete[e.Link]:
	case e.Packet == nil:
		if l := r.links[e.Link]; l != nil {
			_ = l.conn.Close()
		}
	case e.Packet.Type == peerwire.PacketPing:
	case e.Sent:
		return r.awaitPacket(e)
	default:
		r.send(e)
	}
	return true
}

// linkOf returns the connection for a recorded one. A learner that a peer plays opens it.
func (r *replay) linkOf(e sim.Exchange) *link {
	if l := r.links[e.Link]; l != nil {
		return l
	}
	l := &link{leads: !e.Sent, want: map[phase][]string{}, next: map[phase]int{}, compared: map[phase]int{}} // the learner speaks first
	p := r.peers[e.Peer]
	if l.leads {
		c := r.dial(r.ports[0], func() bool { return p.up })
		if c == nil {
			return nil
		}
		l.learnerConn = r.newLearnerConn(c, true)
		r.set(func() { p.links = append(p.links, l.learnerConn) })
	} else if !r.await(func() bool { l.learnerConn = p.newest(); return l.learnerConn != nil }) {
		return nil
	}
	r.set(func() { l.used = true })
	r.links[e.Link] = l
	return l
}

// newest returns the newest connection that ZooKeeper has opened and that is not used yet.
func (p *peer) newest() *learnerConn {
	for _, c := range slices.Backward(p.links) {
		if !c.over && !c.used {
			return c
		}
	}
	return nil
}

// send sends a recorded packet to ZooKeeper.
func (r *replay) send(e sim.Exchange) {
	l := r.linkOf(e)
	if l == nil {
		r.t.Fatalf("after step %d, ZooKeeper does not listen for learners", r.step)
	}
	p := *e.Packet
	switch p.Type {
	case peerwire.PacketNewLeader:
		p.Data = []byte(r.configs.Replace(string(p.Data)))
	case peerwire.PacketRequest:
		p.Auth = []wire.ID{{Scheme: "ip", ID: "127.0.0.1"}} // simulated clients have no address
	case peerwire.PacketProposal:
		p.Data = r.sessions.translate(p.Data)
	}
	b := wire.Append(nil, &p)
	if p.Type == peerwire.PacketSnap {
		b = append(b, e.Snapshot...)
	}
	l.write(b)
}

// finish waits until ZooKeeper has carried out a step and has sent everything, and lists
// what the simulated server has not sent.
func (r *replay) finish() {
	if r.client != nil {
		r.must(<-r.client)
		r.client = nil
	}
	for _, id := range slices.Sorted(maps.Keys(r.links)) {
		l := r.links[id]
		r.flush(l)
		r.compare(l, r.to(r.peerOf(id)))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.peers {
		for _, n := range p.sent {
			if !r.votes.explains(r.step, n) {
				r.found = append(r.found, r.to(id).only(actual, election, voteText(n)))
			}
		}
	}
}

// to returns a difference in what a server receives in this step.
func (r *replay) to(peer ensemble.ServerID) difference {
	return difference{step: r.step, did: r.rec.Steps[r.step].Step, peer: peer}
}

// peerOf returns the server at the other end of a recorded connection.
func (r *replay) peerOf(id zab.LinkID) ensemble.ServerID {
	i := slices.IndexFunc(r.rec.Exchanges, func(e sim.Exchange) bool { return e.Link == id })
	return r.rec.Exchanges[i].Peer
}

// flush waits until everything has arrived that ZooKeeper has sent on a connection before.
// A learner answers a ping, and a leader pings by itself.
func (r *replay) flush(l *link) {
	pings := 0
	r.set(func() { pings = l.pings + 1 })
	if l.leads {
		pings++ // the next one may be on its way
	} else {
		l.write(wire.Append(nil, &peerwire.QuorumPacket{Type: peerwire.PacketPing}))
	}
	r.await(func() bool { return l.over || l.pings >= pings })
}
