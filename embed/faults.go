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

// Endpoint is one end of a network link: a *Server, a Session, Clients or Everyone.
type Endpoint interface {
	fmt.Stringer
	covers(p party) bool
}

// Session is the endpoint of the client that has this session, whichever server the client is connected to:
// Session(client.Session().ID).
type Session zk.SessionID

// group is an Endpoint that stands for several ends.
type group string

// The endpoints that stand for several servers or clients.
const (
	// Clients is the endpoint of all clients.
	Clients group = "clients"
	// Everyone is the endpoint of all servers and all clients.
	Everyone group = "everyone"
)

func (s *Server) covers(p party) bool { return p.server == s.id }

func (s Session) covers(p party) bool { return p.server == 0 && p.session == s }

// String returns the session id in hex, as operators know it.
func (s Session) String() string { return "session " + wire.SessionID(s).String() }

func (g group) covers(p party) bool { return g == Everyone || p.server == 0 }
func (g group) String() string      { return string(g) }

// Cut holds back everything that the endpoint from sends to the endpoint to, until Mend or Heal. Connections
// stay open. As with TCP, what was sent meanwhile arrives after the cut, and new connections wait for its end.
// For a partition, cut both directions.
func (e *Ensemble) Cut(from, to Endpoint) {
	e.net.edit(func(rules map[route]rule) {
		r := rules[route{from, to}]
		r.cut = true
		rules[route{from, to}] = r
	})
}

// Delay delays everything that the endpoint from sends to the endpoint to by d; a d of 0 ends the delay.
func (e *Ensemble) Delay(from, to Endpoint, d time.Duration) {
	e.net.edit(func(rules map[route]rule) {
		r := rules[route{from, to}]
		r.delay = max(d, 0)
		rules[route{from, to}] = r
	})
}

// Mend ends the effect of Cut and Delay on what the endpoint from sends to the endpoint to.
func (e *Ensemble) Mend(from, to Endpoint) {
	e.net.edit(func(rules map[route]rule) { delete(rules, route{from, to}) })
}

// Heal ends every fault of the network: cuts, delays, late watch events, and replies that are still to be lost.
// It does not change the state of the servers.
func (e *Ensemble) Heal() {
	e.net.edit(func(rules map[route]rule) { clear(rules) })
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.watches, e.net.losses = 0, nil
}

// LoseNextReply loses the reply to the next request of this operation, whichever client sends the request: the
// server carries out the request, and then the connection ends. OpCreate stands for every kind of create. The
// returned channel is closed when the reply was lost.
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

// RepliesToLose returns the operations of the calls of LoseNextReply whose reply has not been lost yet, in the
// order of the calls.
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

// DelayWatches delays every watch event by d, and with it everything that the server sends after the event on
// the same connection, because the protocol promises their order. A d of 0 ends the delay.
func (e *Ensemble) DelayWatches(d time.Duration) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.net.watches = max(d, 0)
}

// WatchDelay returns the delay of watch events.
func (e *Ensemble) WatchDelay() time.Duration {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	return e.net.watches
}

// ErrNoSession means that no session with this id is open.
var ErrNoSession = errors.New("no such session is open")

// Expire ends a session as a server does when it has heard nothing from the client for too long: the ephemeral
// znodes of the session are deleted, and the client learns of the end from the next server that it connects to.
// Expire returns when the session has ended on the leader.
func (e *Ensemble) Expire(ctx context.Context, id zk.SessionID) error {
	for asked := false; ; {
		leader, err := e.Leader(ctx)
		if err != nil {
			return err
		}
		l := leader.life.Load()
		switch {
		case l == nil: // the leader has just ended
		case !l.knows(id) && asked:
			return nil
		case !l.knows(id):
			return fmt.Errorf("session %v: %w", id, ErrNoSession)
		default: // ask in each round: the leader may have ignored the request while it transferred leadership, or may have been replaced
			l.srv.Expire(id)
			asked = true
		}
		if err := sleep(ctx, checkInterval); err != nil {
			return fmt.Errorf("session %v has not ended yet: %w", id, err)
		}
	}
}

// knows reports whether a session is open on this server.
func (l *life) knows(id wire.SessionID) bool {
	_, ok := l.srv.Tree().Session(id)
	return ok
}

// Fault is a fault of the network in one direction: what From sends to To is cut or delayed.
type Fault struct {
	From, To Endpoint
	Cut      bool
	Delay    time.Duration
}

// String describes the fault in words.
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

// Faults returns the current faults of the links, sorted by their ends.
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
