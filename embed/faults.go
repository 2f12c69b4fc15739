package embed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bellwether/wire"
)

// Endpoint is an end of links: a *[Server], a [Session], [Clients] or [Everyone].
type Endpoint interface {
	fmt.Stringer
	covers(p party) bool
}

// Session is the client that has this session, whichever server it is
// connected to: Session(client.Session().ID).
type Session wire.SessionID

// group is an Endpoint of many.
type group string

// The groups of ends.
const (
	// Clients are all clients.
	Clients group = "clients"
	// Everyone is every server and every client.
	Everyone group = "everyone"
)

func (s *Server) covers(p party) bool { return p.server == s.id }

func (s Session) covers(p party) bool { return p.server == 0 && p.session == s }

// String is as operators know it.
func (s Session) String() string { return "session " + wire.SessionID(s).String() }

func (g group) covers(p party) bool { return g == Everyone || p.server == 0 }
func (g group) String() string      { return string(g) }

// Cut holds back everything that goes one way, from one end to the other, until it
// is healed. Connections stand, and what was sent arrives then, as with TCP;
// new ones wait. Cut both ways for a partition.
func (e *Ensemble) Cut(from, to Endpoint) {
	e.net.edit(func(rules map[route]rule) {
		r := rules[route{from, to}]
		r.cut = true
		rules[route{from, to}] = r
	})
}

// Delay makes everything that goes one way, from one end to the other, late
// by d; 0 ends that.
func (e *Ensemble) Delay(from, to Endpoint, d time.Duration) {
	e.net.edit(func(rules map[route]rule) {
		r := rules[route{from, to}]
		r.delay = max(d, 0)
		rules[route{from, to}] = r
	})
}

// Mend takes back what Cut and Delay did from one end to the other.
func (e *Ensemble) Mend(from, to Endpoint) {
	e.net.edit(func(rules map[route]rule) { delete(rules, route{from, to}) })
}

// Heal takes back every fault of the network: cuts, delays, late watches, and
// replies that are still to be lost. Servers stay as they are.
func (e *Ensemble) Heal() {
	e.net.edit(func(rules map[route]rule) { clear(rules) })
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.watches, e.net.losses = 0, nil
}

// LoseNextReply loses the reply to the next request of a kind that any client
// sends: it is carried out, and then its connection ends. For OpCreate
// that is every kind of create. What is returned is closed when it has happened.
func (e *Ensemble) LoseNextReply(op wire.OpCode) (lost <-chan struct{}) {
	l := &loss{ops: []wire.OpCode{op}, done: make(chan struct{})}
	if op == wire.OpCreate {
		l.ops = creates
	}
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.losses = append(e.net.losses, l)
	return l.done
}

// RepliesToLose are those that LoseNextReply was called for and that are not
// lost yet, by the operation it was given, in order.
func (e *Ensemble) RepliesToLose() []wire.OpCode {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	var out []wire.OpCode
	for _, l := range e.net.losses {
		out = append(out, l.ops[0])
	}
	return out
}

// creates are the operations that create a znode.
var creates = []wire.OpCode{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL}

// DelayWatches makes every watch event late by d, and whatever the server says
// behind it on the same connection, for the order is promised; 0 ends that.
func (e *Ensemble) DelayWatches(d time.Duration) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.watches = max(d, 0)
}

// WatchDelay is by how much watch events are late.
func (e *Ensemble) WatchDelay() time.Duration {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	return e.net.watches
}

// ErrNoSession: no such session is open.
var ErrNoSession = errors.New("no such session is open")

// Expire ends a session as its server does that has heard nothing of the
// client for too long: its ephemerals go, and the client is told when it asks.
// It returns when the session has ended on the server that leads.
func (e *Ensemble) Expire(ctx context.Context, id wire.SessionID) error {
	for asked := false; ; {
		leader, err := e.Leader(ctx)
		if err != nil {
			return err
		}
		l := leader.life.Load()
		switch {
		case l == nil: // it has just ended
		case !l.knows(id) && asked:
			return nil
		case !l.knows(id):
			return fmt.Errorf("session %v: %w", id, ErrNoSession)
		default: // each time: it may have been asked while it handed over, or have lost its role since
			l.srv.Expire(id)
			asked = true
		}
		if err := sleep(ctx, lookAgain); err != nil {
			return fmt.Errorf("session %v has not ended yet: %w", id, err)
		}
	}
}

// knows reports whether a session is open.
func (l *life) knows(id wire.SessionID) bool {
	_, ok := l.srv.Tree().Session(id)
	return ok
}

// Fault is something that is wrong with the network.
type Fault struct {
	From, To Endpoint
	Cut      bool
	Delay    time.Duration
}

// String says what is wrong.
func (f Fault) String() string {
	text := fmt.Sprintf("%v to %v: ", f.From, f.To)
	switch {
	case f.Cut && f.Delay > 0:
		return text + fmt.Sprintf("cut, late by %v", f.Delay)
	case f.Cut:
		return text + "cut"
	}
	return text + fmt.Sprintf("late by %v", f.Delay)
}

// Faults are those of the links, in order of their ends.
func (e *Ensemble) Faults() []Fault {
	e.net.mu.Lock()
	rules := maps.Clone(e.net.rules)
	e.net.mu.Unlock()
	var out []Fault
	for at, r := range rules {
		out = append(out, Fault{at.from, at.to, r.cut, r.delay})
	}
	slices.SortFunc(out, func(a, b Fault) int { return strings.Compare(a.String(), b.String()) })
	return out
}
