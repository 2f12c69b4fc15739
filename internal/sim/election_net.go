package sim

import (
	"time"

	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// electionConn is a server's side of its election connection to one other server. It holds a queue
// of one message, the message to send again on a new connection, and the server's end of
// the connection.
type electionConn struct {
	slot, last *peerwire.Notification
	first      bool // nothing was sent on this connection yet
	sending    bool
	dialling   bool
	backoff    int64
	tcp        *tcpConn
	end        int
}

// electionConn returns this server's side of the connection to another.
func (v *server) electionConn(o *server) *electionConn {
	c := v.electionConns[o.id]
	if c == nil {
		c = new(electionConn)
		v.electionConns[o.id] = c
	}
	return c
}

// sentVote is a notification on its way.
type sentVote struct {
	n     peerwire.Notification
	first bool
}

// redialMin and redialMax bound the pause between two dials of an election connection, in
// µs.
const (
	redialMin = 10 * machine.Millisecond
	redialMax = 400 * machine.Millisecond
)

// notify puts a notification into the queue for a server. It replaces one that was not sent
// yet.
func (v *server) notify(m election.Message) {
	o := v.sim.server(m.To)
	if o == nil || o == v {
		return
	}
	n := m.Notification
	if v.electionConn(o).slot != nil {
		v.sim.reach(situationSlotReplaced)
	}
	v.electionConn(o).slot = &n
	v.sendVote(o)
}

// sendVote sends the queued notification. It dials first if there is no connection.
func (v *server) sendVote(o *server) {
	c := v.electionConn(o)
	switch {
	case c.slot == nil:
	case c.tcp == nil:
		v.dialElection(o)
	case !c.sending:
		c.sending = true
		v.later(v.sim.random.Below(300), func() {
			if c.sending = false; c.slot == nil || c.tcp == nil {
				return
			}
			c.tcp.send(c.end, sentVote{*c.slot, c.first})
			v.exchange(Exchange{Peer: o.id, Sent: true, Notification: c.slot})
			c.last, c.slot, c.first = c.slot, nil, false
		})
	}
}

// dialElection dials until there is a connection.
func (v *server) dialElection(o *server) {
	c := v.electionConn(o)
	if c.dialling || c.tcp != nil {
		return
	}
	c.dialling = true
	v.dial(o, func(outcome string) {
		c.dialling = false
		switch {
		case c.tcp != nil: // the other server has dialled first
			return
		case outcome == connected && o.up:
			c.backoff = redialMin
			v.connectElection(o)
			return
		case outcome == refused:
			v.push(replica.Vote{Event: election.Down{Server: o.id}})
		}
		c.backoff = min(max(2*c.backoff, redialMin), redialMax)
		v.later(c.backoff, func() { v.dialElection(o) })
	})
}

// electionDead is the user timeout of election connections, in µs, as in internal/peer.
// ZooKeeper's servers set none.
const electionDead = 5 * machine.Second

// connectElection connects two servers. It replaces an older connection that only one of them still
// has.
func (v *server) connectElection(o *server) {
	k := v.sim.net.newConn(&v.Host, &o.Host)
	for i, pair := range [2][2]*server{{v, o}, {o, v}} {
		self, other := pair[0], pair[1]
		c, life := self.electionConn(other), self.life
		if c.tcp != nil {
			c.tcp.close(c.end)
		}
		c.tcp, c.end, c.first = k, i, true
		if !self.compatible {
			k.ends[i].userTimeout = electionDead
		}
		k.ends[i].take = func(load any) {
			f := load.(sentVote)
			if self.life == life {
				self.receiveVote(other, f)
			}
		}
		k.ends[i].gone = func(string) {
			if self.life == life && c.tcp == k {
				c.tcp = nil
				self.later(0, func() { self.dialElection(other) })
			}
		}
		self.push(replica.Vote{Event: election.Up{Server: other.id}})
		if !self.compatible { // a compatible server measures no round trips and waits 200 ms for a better vote
			self.push(replica.Vote{Event: election.RoundTrip{Server: other.id, Took: time.Millisecond}})
		}
		if c.slot == nil && c.last != nil {
			c.slot = c.last
			v.sim.reach(situationSentAgain)
		}
		self.later(0, func() { self.sendVote(other) })
	}
}

// receiveVote takes a notification.
func (v *server) receiveVote(from *server, f sentVote) {
	v.sim.detail("%d hears %d: %v for %d, round %d", v.id, from.id, f.n.State, f.n.Leader, f.n.ElectionEpoch)
	v.exchange(Exchange{Peer: from.id, Notification: &f.n})
	v.push(replica.Vote{Event: election.Heard{From: from.id, First: v.doubts(f), Notification: f.n}})
}

// doubts reports whether the receiver cannot know that a notification belongs to the
// present election. A compatible server assumes this of every notification, because it
// measures no round trips and always waits for better votes. Its replica is a native one,
// however, and needs two kinds of notifications at once. From those of empty servers, an
// empty server learns that all are empty. From votes for itself that name more history than
// its disk has, a server learns that it must correct the voters.
func (v *server) doubts(f sentVote) bool {
	lost := f.n.Leader == v.id && (f.n.Zxid > v.ends() || f.n.PeerEpoch > v.saved.Current)
	return f.first || v.compatible && f.n.Zxid > 0 && !lost
}

// ends returns the zxid at which the server's known history ends.
func (v *server) ends() wire.Zxid {
	if n := len(v.undelivered); n > 0 {
		return v.undelivered[n-1].Zxid
	}
	return v.replica.Applied()
}

// Outcomes of a dial.
const (
	connected = "connected"
	refused   = "connection refused"
	timedOut  = "timed out"
)

// dialTimeout is how long a dial takes that gets no answer, in µs.
const dialTimeout = machine.Second

// dial connects to a server's machine. The kernel answers: it accepts for a process that is
// stopped, and refuses if there is no process.
func (v *server) dial(o *server, done func(outcome string)) {
	there := v.sim.net.latency(&v.Host, &o.Host)
	if !v.sim.net.through(&v.Host, &o.Host) {
		v.later(dialTimeout, func() { done(timedOut) })
		return
	}
	v.later(there, func() {
		back := v.sim.net.latency(&o.Host, &v.Host)
		switch {
		case !o.Host.On:
			v.later(dialTimeout, func() { done(timedOut) })
		case !o.up:
			v.later(back, func() { done(refused) })
		default:
			if o.paused {
				v.sim.reach(situationStoppedAccepts)
			}
			done(connected)
		}
	})
}
