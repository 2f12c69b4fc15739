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
	"bellwether/zk"
)

// Endpoint is one end of network links: a *Server, a Session, Clients or Everyone.
type Endpoint interface {
	fmt.Stringer
	covers(p party) bool
}

// Session is the endpoint of the client that has this session, whichever server it is
// connected to: Session(client.Session().ID).
type Session zk.SessionID

// group is an Endpoint of many.
type group string

// The endpoints that stand for many.
const (
	// Clients is the endpoint that stands for all clients.
	Clients group = "clients"
	// Everyone is the endpoint that stands for every server and every client.
	Everyone group = "everyone"
)

func (s *Server) covers(p party) bool { return p.server == s.id }

func (s Session) covers(p party) bool { return p.server == 0 && p.session == s }

// String prints the session as operators know it, in hex.
func (s Session) String() string { return "session " + wire.SessionID(s).String() }

func (g group) covers(p party) bool { return g == Everyone || p.server == 0 }
func (g group) String() string      { return string(g) }

// Cut holds back everything that is sent from one end to the other, until Mend or Heal.
// Connections stay open and, as with TCP, what was sent arrives then; new connections
// wait. Cut both ways for a partition.
func (e *Ensemble) Cut(from, to Endpoint) {
	e.net.edit(func(rules map[route]rule) {
		r := rules[route{from, to}]
		r.cut = true
		rules[route{from, to}] = r
	})
}

// Delay makes everything that is sent from one end to the other late by d; 0 ends that.
func (e *Ensemble) Delay(from, to Endpoint, d time.Duration) {
	e.net.edit(func(rules map[route]rule) {
		r := rules[route{from, to}]
		r.delay = max(d, 0)
		rules[route{from, to}] = r
	})
}

// Mend ends what Cut and Delay have done from one end to the other.
func (e *Ensemble) Mend(from, to Endpoint) {
	e.net.edit(func(rules map[route]rule) { delete(rules, route{from, to}) })
}

// Heal ends every fault of the network: cuts, delays, late watch events, and replies
// that are still to be lost. It leaves the servers as they are.
func (e *Ensemble) Heal() {
	e.net.edit(func(rules map[route]rule) { clear(rules) })
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.watches, e.net.losses = 0, nil
}

// LoseNextReply loses the reply to the next request of this kind that any client sends:
// the server carries the request out, and then its connection ends. OpCreate stands for
// every kind of create. The returned channel is closed when this has happened.
func (e *Ensemble) LoseNextReply(op zk.OpCode) (lost <-chan struct{}) {
	l := &loss{ops: []wire.OpCode{op}, done: make(chan struct{})}
	if op == wire.OpCreate {
		l.ops = creates
	}
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.losses = append(e.net.losses, l)
	return l.done
}

// RepliesToLose returns the operations for which LoseNextReply was called and whose
// replies are not lost yet, in order.
func (e *Ensemble) RepliesToLose() []zk.OpCode {
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

// DelayWatches makes every watch event late by d, and with it everything that the server
// sends behind it on the same connection, because the order is promised. 0 ends that.
func (e *Ensemble) DelayWatches(d time.Duration) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.watches = max(d, 0)
}

// WatchDelay returns by how much watch events are late.
func (e *Ensemble) WatchDelay() time.Duration {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	return e.net.watches
}

// ErrNoSession says that no such session is open.
var ErrNoSession = errors.New("no such session is open")

// Expire ends a session as its server does when it has not heard from the client for too
// long: the session's ephemeral znodes are deleted, and the client is told when it asks.
// Expire returns when the session has ended on the leader.
func (e *Ensemble) Expire(ctx context.Context, id zk.SessionID) error {
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

// Fault is a fault of the network: what is sent from one end to the other is cut or
// late.
type Fault struct {
	From, To Endpoint
	Cut      bool
	Delay    time.Duration
}

// String describes the fault.
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

// Faults returns the faults of the links, in order of their ends.
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
