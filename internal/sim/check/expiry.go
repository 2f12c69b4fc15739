package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// expiry checks when servers end sessions by themselves. T is the timeout of the session.
//
//   - Not too early: the end is committed no sooner than T - D - 1% after a client has sent a ping that was
//     answered. D is LeaseMS, or lateCompatible ticks where servers of ZooKeeper take part. These answer pings by
//     themselves and tell their leader with its next ping, so that a ping less than a tick before the end is
//     proposed promises nothing.
//
//   - A leader ends no session sooner than 3T/4 after it has read something of the session's client itself. The
//     timeout may have become shorter meanwhile: another server has asked for the session and gives three quarters.
//
//   - Not too late: a leader that serves without interruption proposes the end no later than the longest timeout and
//     lateMax after the session was last heard from. A server may give a connection the timeout that clients ask for
//     although its client has gone and never hears of it.
//
//   - A leader that has proposed the end of a session because its timeout is over answers no ping of it.
//
//   - After the loop of a leader has stood still for more than pauseTicks, no session expires for one tick, so that
//     what clients have sent meanwhile can be read first.
//
// Sessions that an operator ends are left out.
//
// A session is heard from when a server reads something of its client, when a server gives the session to a
// connection or keeps its connection over a change of leaders, and when a write of it is committed. If a server joins
// the leader again, it may tell only then of the sessions that it has heard from before. A new
// leader gives each session its full timeout again.
type expiry struct {
	present Present
	open    map[wire.SessionID]*lifetime
	leader  ensemble.ServerID          // the server that has ticked last as the leader
	epoch   wire.Epoch                 // its epoch
	since   int64                      // µs since when it has ticked without interruption
	ticked  int64                      // µs at which it has ticked last
	mono    int64                      // ms of its clock then
	grace   int64                      // ms of its clock until which no session expires
	serving map[ensemble.ServerID]bool // the servers that serve
	met     [expiryRules]int
}

// lifetime is a session that no transaction has ended.
type lifetime struct {
	timeout  int64             // T in µs; the shortest one that a server has given
	most     int64             // the longest one
	heard    int64             // µs at which it was last heard from
	proven   int64             // µs at which its client sent the latest ping that was answered; 0: none
	ending   bool              // the leader has proposed its end
	ends     int64             // µs at which it did so last
	expires  bool              // the leader has done so because it was not heard from
	expelled bool              // an operator has ended it
	given    ensemble.ServerID // the last server that has given it to a connection
	at       ensemble.ServerID // the last server that has read something of its client
	read     int64             // ms of the clock of that server then
	known    int64             // the value of read at the last tick of that server as a leader
}

// The premises of the rules.
const (
	expiredShort    = iota // a session of at most shortTicks expires
	expiredUsual           // one of at most usualTicks
	expiredLonger          // one of at most longerTicks
	expiredLong            // a longer one
	expiredProven          // a session expires of which a ping was answered
	expiredByLeader        // a leader that serves proposes the end of a session
	leaderPongs            // a leader answers a ping
	leaderPaused           // the loop of a leader stands still for a while
	expiredAtLeader        // a leader ends a session from whose client it was the last to read
	expiryRules
)

// The timeouts that are counted apart, in ticks.
const shortTicks, usualTicks, longerTicks = 3, 8, 20

// lateTicks and lateMS are by how much a session may outlive its timeout: the answers of a follower that tell
// its leader of a session may be under way for syncLimit ticks.
const lateTicks, lateMS = 10, 500

// pauseTicks is after how many ticks without a tick of its own a leader gives sessions more time.
const pauseTicks = 2

// lateCompatible is how many ticks after its last report to its leader a server of ZooKeeper may still answer a ping: if only
// the packets of the leader arrive, the leader goes on for syncLimit ticks, and the server for as many after that, and a packet
// may be under way for two. After its leader has ended it is syncLimit + 2, which is the D of the client library.
const lateCompatible = 12

func newExpiry(p Present) *expiry {
	return &expiry{present: p, open: map[wire.SessionID]*lifetime{}, serving: map[ensemble.ServerID]bool{}}
}

func (*expiry) Name() string { return "Expiry" }

// Met returns the counts of the rules.
func (c *expiry) Met() []Count {
	return []Count{{"a session of 3 ticks expires", c.met[expiredShort]}, {"a session of 8 ticks expires", c.met[expiredUsual]},
		{"a session of 20 ticks expires", c.met[expiredLonger]}, {"a session of 100 ticks expires", c.met[expiredLong]},
		{"a session expires whose client has got answers to pings", c.met[expiredProven]},
		{"a leader that serves ends a session", c.met[expiredByLeader]}, {"a leader answers a ping", c.met[leaderPongs]},
		{"the loop of a leader stands still", c.met[leaderPaused]},
		{"a leader ends a session of a client of its own", c.met[expiredAtLeader]}}
}

func (c *expiry) See(o any) string {
	switch e := o.(type) {
	case Heard:
		c.hear(e.Session)
		if s := c.open[e.Session]; s != nil && e.Server != 0 {
			if s.at != e.Server {
				s.at, s.known = e.Server, 0
			}
			s.read = e.Mono
		}
	case Expelled:
		if s := c.open[e.Session]; s != nil {
			s.expelled = true
		}
	case Attached:
		c.hear(e.Session)
		if s := c.open[e.Session]; s != nil && e.TimeoutMS > 0 {
			t := int64(e.TimeoutMS) * 1000
			s.timeout, s.most, s.given = min(s.timeout, t), max(s.most, t), e.Server
		}
	case Kept:
		c.hear(e.Session)
	case Answered:
		if s := c.open[e.Session]; s != nil && e.Op == wire.OpPing && e.Header.Err == wire.OK && !e.NoQuorum {
			s.proven = max(s.proven, e.Issued)
		}
	case Ordered:
		if e.Server == c.leader {
			return c.ordered(e.Duty)
		}
	case Undone:
		c.leadsNoMore(e.Server)
	case Restarted:
		c.leadsNoMore(e.Server)
	case Standing:
		switch served := c.serving[e.Server]; {
		case !e.Serves:
			c.leadsNoMore(e.Server)
		case !served:
			c.joined(e.Server)
		}
		c.serving[e.Server] = e.Serves
	case Replied:
		if s := c.open[e.Session]; s != nil && e.Op == wire.OpPing && e.Server == c.leader {
			if c.met[leaderPongs]++; s.expires {
				return fmt.Sprintf("leader %d answers a ping of session %v, whose end it has proposed", e.Server, e.Session)
			}
		}
	case Committed:
		return c.committed(&e)
	case Ticked:
		return c.tick(&e)
	}
	return ""
}

// joined records that a server begins to serve. It may tell its leader now of the sessions that it has heard from before, and
// it tells its leader of those whose connections it has kept.
func (c *expiry) joined(id ensemble.ServerID) {
	for _, s := range c.open {
		if s.at == id || s.given == id {
			s.heard = c.present.Now()
		}
	}
}

// leadsNoMore notes that a server does not lead, or has taken back what it has proposed.
func (c *expiry) leadsNoMore(id ensemble.ServerID) {
	if id == c.leader {
		c.leader = 0
	}
}

func (c *expiry) hear(id wire.SessionID) {
	if s := c.open[id]; s != nil {
		s.heard = max(s.heard, c.present.Now())
	}
}

// ordered records the ends that the leader proposes.
func (c *expiry) ordered(d *replica.Duty) string {
	for _, t := range d.Append {
		if s := c.open[t.Session]; s != nil && t.Type == wire.OpCloseSession {
			s.ending, s.ends = true, c.present.Now()
			if t.Cxid == 0 && !s.expelled {
				s.expires = true
				if wrong := c.expires(t.Session, s); wrong != "" {
					return wrong
				}
			}
		}
	}
	return ""
}

// expires checks a session whose end the leader proposes because it was not heard from.
func (c *expiry) expires(id wire.SessionID, s *lifetime) string {
	c.met[expiredByLeader]++
	if c.mono < c.grace {
		return fmt.Sprintf("leader %d ends session %v less than a tick after its loop has stood still for more than %d ticks", c.leader, id, pauseTicks)
	}
	if s.at != c.leader || s.known == 0 {
		return ""
	}
	c.met[expiredAtLeader]++
	if silent := c.mono - s.known; silent < s.timeout/1000*3/4 {
		return fmt.Sprintf("leader %d ends session %v, whose timeout is %d ms, %d ms after it has read something of its client", c.leader, id, s.timeout/1000, silent)
	}
	return ""
}

func (c *expiry) committed(e *Committed) string {
	t := e.Txn
	if t.Type == wire.OpCreateSession {
		if b, ok := t.Body.(*record.CreateSessionTxn); ok {
			c.open[t.Session] = &lifetime{timeout: int64(b.TimeoutMS) * 1000, most: int64(b.TimeoutMS) * 1000, heard: c.present.Now()}
		}
		return ""
	}
	s := c.open[t.Session]
	switch {
	case s == nil:
		return ""
	case t.Type != wire.OpCloseSession:
		s.heard = c.present.Now()
		return ""
	}
	delete(c.open, t.Session)
	if t.Cxid > 0 {
		return "" // its client has closed it
	}
	return c.early(t.Session, s)
}

// early checks a session that has expired.
func (c *expiry) early(id wire.SessionID, s *lifetime) string {
	at, tick := c.present.Now(), c.present.Recipe().TickMS*1000
	switch n := s.timeout / tick; {
	case n <= shortTicks:
		c.met[expiredShort]++
	case n <= usualTicks:
		c.met[expiredUsual]++
	case n <= longerTicks:
		c.met[expiredLonger]++
	default:
		c.met[expiredLong]++
	}
	if s.proven == 0 || s.expelled || mixed(c.present) && s.proven > s.ends-tick {
		return ""
	}
	c.met[expiredProven]++
	if least := s.proven + s.timeout - delayOf(c.present) - s.timeout/100; at < least {
		return fmt.Sprintf("session %v, whose timeout is %d ms, expires %d ms after its client sent a ping that was answered, and %d ms too early",
			id, s.timeout/1000, (at-s.proven)/1000, (least-at+999)/1000)
	}
	return ""
}

// delayOf returns D, in µs.
func delayOf(p Present) int64 {
	if mixed(p) {
		return lateCompatible * p.Recipe().TickMS * 1000
	}
	return LeaseMS * 1000
}

// tick checks the sessions that are due while a leader serves.
func (c *expiry) tick(e *Ticked) string {
	now, tick := c.present.Now(), c.present.Recipe().TickMS*1000
	switch same := e.Server == c.leader && e.Epoch == c.epoch; {
	case !same:
		c.grace = 0
	case e.Mono > c.mono+pauseTicks*c.present.Recipe().TickMS:
		c.met[leaderPaused]++
		c.grace = e.Mono + c.present.Recipe().TickMS
	}
	c.mono = e.Mono
	if e.Server != c.leader || e.Epoch != c.epoch || now > c.ticked+tick {
		c.leader, c.epoch, c.since = e.Server, e.Epoch, now
		for _, s := range c.open {
			s.ending, s.expires = false, false
		}
	}
	c.ticked = now
	late, first := int64(0), wire.SessionID(0)
	for id, s := range c.open {
		if s.at == e.Server {
			s.known = s.read
		}
		if s.ending {
			continue
		}
		s.most = max(s.most, c.present.Recipe().SessionMS*1000)
		if by := now - max(s.heard, c.since) - s.most - lateTicks*tick - lateMS*1000; by > 0 && (first == 0 || id < first) {
			late, first = by, id
		}
	}
	if first == 0 {
		return ""
	}
	return fmt.Sprintf("leader %d, which serves, ends session %v not in time: its timeout of %d ms and %d ticks more were over %d ms ago",
		e.Server, first, c.open[first].most/1000, lateTicks, late/1000+lateMS)
}
