package realpeers

import (
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/sim"
	"bellwether/wire"
)

// act begins a step.
func (r *replay) act(s sim.RecordedStep) error {
	p := r.peers[s.Server] // nil: it is ZooKeeper
	switch {
	case s.Kind == sim.StepStart && p == nil:
		return r.startZooKeeper()
	case s.Kind == sim.StepStart:
		if err := p.start(); err != nil {
			return err
		}
		if r.running {
			p.connect()
		}
	case s.Kind == sim.StepKill && p == nil:
		r.killZooKeeper()
	case s.Kind == sim.StepKill:
		p.stop()
	case s.Kind == sim.StepWrite, s.Kind == sim.StepCutWriting:
		r.znodes++
		if p == nil {
			r.write(s, fmt.Sprintf("/znode-%d", r.znodes))
		}
	}
	return nil
}

// killZooKeeper ends the process. The peers forget its notifications, because the next process may
// send the same ones.
func (r *replay) killZooKeeper() {
	r.running = false
	r.z.Kill()
	for _, p := range r.peers {
		r.await(func() bool { return p.votes == nil })
		p.set(func() { p.sent, p.lastVote = nil, nil })
	}
}

// startZooKeeper starts the process, and waits until it answers.
func (r *replay) startZooKeeper() error {
	r.running = true
	if err := r.z.Begin(); err != nil {
		return err
	}
	for {
		if _, err := r.z.Word("ruok"); err == nil {
			return nil
		}
		if !r.z.Running() {
			return fmt.Errorf("ZooKeeper has ended:\n%s", r.z.Log())
		}
		if c := r.dial(r.z.Addr, r.z.Running); c != nil {
			r.drop(c)
		}
	}
}

// write lets a client of ZooKeeper do what the simulated client does in a step.
func (r *replay) write(s sim.RecordedStep, path string) {
	done := make(chan error, 1)
	r.client = done
	go func() { done <- r.session(s, path) }()
}

func (r *replay) session(s sim.RecordedStep, path string) error {
	c, err := connect(r.ctx, r.z.Addr, 0)
	if err != nil {
		return err
	}
	if err := c.create(path); err != nil {
		return err
	}
	if s.Kind == sim.StepCutWriting {
		_ = c.set(path) // it is never carried out
		return c.conn.Close()
	}
	for range s.Value {
		if err := c.set(path); err != nil {
			return err
		}
	}
	return c.end()
}

// resume lets the client of a cut-off leader move to ZooKeeper, which leads now.
func (r *replay) resume(session wire.SessionID) {
	done := make(chan error, 1)
	r.client, r.resuming = done, true
	go func() {
		c, err := connect(r.ctx, r.z.Addr, session)
		if err == nil {
			err = c.end()
		}
		done <- err
	}()
}

// sessions are the requests of real clients by those of the simulated ones: a leader that is
// played proposes what a real client has requested.
type sessions map[request]request

type request struct {
	session wire.SessionID
	cxid    int32
}

// note says that ZooKeeper has sent a request in place of the simulated server.
func (s sessions) note(data []byte, real peerwire.ForwardedRequest) {
	var q peerwire.ForwardedRequest
	if wire.Decode(data, &q) == nil {
		s[request{q.Session, q.Cxid}] = request{real.Session, real.Cxid}
	}
}

// translate returns a proposal with the session and the number of the real request.
func (s sessions) translate(data []byte) []byte {
	txn, err := record.DecodeTxn(data)
	if err != nil {
		return data
	}
	if real, ok := s[request{txn.Session, txn.Cxid}]; ok {
		t := *txn
		t.Session, t.Cxid = real.session, real.cxid
		return t.Append(nil)
	}
	return data
}
