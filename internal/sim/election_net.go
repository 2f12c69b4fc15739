package sim

import (
	"time"

	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// voice is a server's side of its election connection to one other server. It holds a queue
// of one message, the message to send again on a new connection, and the server's end of
// the connection.
type voice struct {
	slot, last *peerwire.Notification
	first      bool // nothing was sent on this connection yet
	sending    bool
	dialling   bool
	backoff    int64
	cord       *cord
	end        int
}

// voice returns this server's side of the connection to another.
func (v *server) voice(o *server) *voice {
	c := v.voices[o.id]
	if c == nil {
		c = new(voice)
		v.voices[o.id] = c
	}
	return c
}

// flown is a notification on its way.
type flown struct {
	n     peerwire.Notification
	first bool
}

// redialMin and redialMax bound the pause between two dials of an election connection, in
// µs.
const (
	redialMin = 10 * millisecond
	redialMax = 400 * millisecond
)

// notify puts a notification into the queue for a server. It replaces one that was not sent
// yet.
func (v *server) notify(m election.Message) {
	o := v.sim.server(m.To)
	if o == nil || o == v {
		return
	}
	n := m.Notification
	if v.voice(o).slot != nil {
		v.sim.reach(situationSlotReplaced)
	}
	v.voice(o).slot = &n
	v.speak(o)
}

// speak sends the queued notification. It dials first if there is no connection.
func (v *server) speak(o *server) {
	c := v.voice(o)
	switch {
	case c.slot == nil:
	case c.cord == nil:
		v.call(o)
	case !c.sending:
		c.sending = true
		v.later(v.sim.random.below(300), func() {
			if c.sending = false; c.slot == nil || c.cord == nil {
				return
			}
			c.cord.send(c.end, flown{*c.slot, c.first})
			c.last, c.slot, c.first = c.slot, nil, false
		})
	}
}

// call dials until there is a connection.
func (v *server) call(o *server) {
	c := v.voice(o)
	if c.dialling || c.cord != nil {
		return
	}
	c.dialling = true
	v.dial(o, func(outcome string) {
		c.dialling = false
		switch {
		case c.cord != nil: // the other server was faster
			return
		case outcome == connected && o.up:
			c.backoff = redialMin
			v.meet(o)
			return
		case outcome == refused:
			v.push(replica.Vote{Event: election.Down{Server: o.id}})
		}
		c.backoff = min(max(2*c.backoff, redialMin), redialMax)
		v.later(c.backoff, func() { v.call(o) })
	})
}

// meet connects two servers. It replaces an older connection that only one of them still
// has.
func (v *server) meet(o *server) {
	k := v.sim.net.newCord(&v.host, &o.host)
	for i, pair := range [2][2]*server{{v, o}, {o, v}} {
		self, other := pair[0], pair[1]
		c, life := self.voice(other), self.life
		if c.cord != nil {
			c.cord.close(c.end)
		}
		c.cord, c.end, c.first = k, i, true
		k.ends[i].take = func(load any) {
			f := load.(flown)
			if self.life == life {
				self.hear(other, f)
			}
		}
		k.ends[i].gone = func(string) {
			if self.life == life && c.cord == k {
				c.cord = nil
				self.later(0, func() { self.call(other) })
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
		self.later(0, func() { self.speak(other) })
	}
}

// hear takes a notification.
func (v *server) hear(from *server, f flown) {
	v.sim.detail("%d hears %d: %v for %d, round %d", v.id, from.id, f.n.State, f.n.Leader, f.n.ElectionEpoch)
	v.push(replica.Vote{Event: election.Heard{From: from.id, First: v.doubts(f), Notification: f.n}})
}

// doubts reports whether the receiver cannot know that a notification belongs to the
// present election. A compatible server assumes this of every notification, because it
// measures no round trips and always waits for better votes. Its replica is a native one,
// however, and needs two kinds of notifications at once. From those of empty servers, an
// empty server learns that all are empty. From votes for itself that name more history than
// its disk has, a server learns that it must correct the voters.
func (v *server) doubts(f flown) bool {
	lost := f.n.Leader == v.id && (f.n.Zxid > v.ends() || f.n.PeerEpoch > v.saved.Current)
	return f.first || v.compatible && f.n.Zxid > 0 && !lost
}

// ends returns the zxid at which the server's known history ends.
func (v *server) ends() wire.Zxid {
	if n := len(v.knows); n > 0 {
		return v.knows[n-1].Zxid
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
const dialTimeout = second

// dial connects to a server's machine. The kernel answers: it accepts for a process that is
// stopped, and refuses if there is no process.
func (v *server) dial(o *server, done func(outcome string)) {
	there := v.sim.net.latency(&v.host, &o.host)
	if !v.sim.net.through(&v.host, &o.host) {
		v.later(dialTimeout, func() { done(timedOut) })
		return
	}
	v.later(there, func() {
		back := v.sim.net.latency(&o.host, &v.host)
		switch {
		case !o.host.on:
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
