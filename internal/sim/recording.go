package sim

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Recording is a run of three servers, one of them a compatible one, in such a form that
// real servers can repeat it. The run is a series of steps. After each step it waits until
// the ensemble is at rest, so that the result of a step does not depend on small
// differences of time.
type Recording struct {
	Seed       uint64
	Compatible ensemble.ServerID
	Steps      []RecordedStep
	Exchanges  []Exchange // in the order in which the compatible server sees them
}

// Facts about every recorded run.
const (
	RecordedServers = 3
	RecordedTickMS  = 200
	// RecordedSessionMS is the session timeout. No session ends by itself.
	RecordedSessionMS = 600_000
)

// pauseBeforeCut is the time between a write and a cut, in µs, so that every server has
// acknowledged the write.
const pauseBeforeCut = 150 * machine.Millisecond

// StepKind says what happens in a step of a recorded run.
type StepKind string

// The steps.
const (
	StepStart StepKind = "start" // the process of Server starts
	StepKill  StepKind = "kill"  // the process of Server ends
	StepCut   StepKind = "cut"   // no packets pass between Server and the other servers
	StepJoin  StepKind = "join"  // packets pass again
	// A client opens a session at Server, makes one znode, writes it Value times, and
	// closes the session.
	StepWrite StepKind = "write"
	// A client opens a session at Server, which leads. Server is cut off, and then proposes
	// a write of the client, which no other server gets. When others serve, the client
	// moves to the new leader and closes its session. If Value is 1, it does neither.
	StepCutWriting StepKind = "cut writing"
)

// Step is what operators or clients do in a recorded run.
type Step struct {
	Kind   StepKind
	Server ensemble.ServerID
	Value  int
}

func (p Step) String() string {
	if p.Value != 0 {
		return fmt.Sprintf("%s %d =%d", p.Kind, p.Server, p.Value)
	}
	return fmt.Sprintf("%s %d", p.Kind, p.Server)
}

// RecordedStep is a step that was carried out.
type RecordedStep struct {
	Step
	// Leader and Epoch are those of the ensemble at rest; 0: no server leads.
	Leader ensemble.ServerID
	Epoch  wire.Epoch
	// Session is that of the client of a StepCutWriting.
	Session wire.SessionID
}

// Exchange is what passes between the compatible server and another one, Peer: a
// notification of an election, or a packet on the connection Link of a learner to its
// leader. If it is neither, the compatible server has no longer this connection.
type Exchange struct {
	Step         int // index of the step during or after which it happens
	Peer         ensemble.ServerID
	Sent         bool // the compatible server sends it; false: it receives it
	Notification *peerwire.Notification
	Packet       *peerwire.QuorumPacket
	Snapshot     []byte // what follows a SNAP that is received
	Link         zab.LinkID
}

// pauseMin and pauseMax bound the time between rest and the next step, in µs.
const (
	pauseMin = 150 * machine.Millisecond
	pauseMax = 400 * machine.Millisecond
)

// restWithin is how long the ensemble may take until it is at rest after a step, in µs.
const restWithin = 60 * machine.Second

// drawnSteps is the number of steps of a run whose seed decides them.
const drawnSteps = 10

// Record plays a run in which one server is a compatible one, and records it. The seed
// decides the steps if they are nil, and always the times between them.
func Record(seed uint64, compatible ensemble.ServerID, steps []Step) (*Recording, error) {
	r := &recorder{Recording: Recording{Seed: seed, Compatible: compatible}, down: map[ensemble.ServerID]bool{}}
	r.Sim = New(Options{
		Seed: seed, Voters: RecordedServers, Observers: -1, Clients: -1, Candidates: -1, Compatible: 1, KeepClients: -1, ReadOnly: -1,
		LocalSessions: -1, TickMS: RecordedTickMS, SessionTicks: RecordedSessionMS / RecordedTickMS, Groups: -1, Moves: -1, CounterMax: 1 << 30,
		Busy: -1, Priorities: -1, Careless: -1, Focus: -1, Reconfig: -1, Lasting: NoLasting, Keep: 500,
		off: true, seen: r.exchange,
	})
	for _, v := range r.servers {
		v.compatible = v.id == compatible
		r.down[v.id] = true
	}
	n := len(steps)
	if steps == nil {
		n = drawnSteps
	}
	for i := range n {
		p := Step{}
		if steps == nil {
			p = r.draw(i)
		} else {
			p = steps[i]
		}
		if err := r.carryOut(p); err != nil {
			return nil, fmt.Errorf("seed %d, step %d (%v): %w", seed, i, p, err)
		}
	}
	r.RunFor(pauseMax)
	return &r.Recording, nil
}

// recorder is a run that is being recorded.
type recorder struct {
	Recording
	*Sim
	down     map[ensemble.ServerID]bool // servers without a process
	isolated ensemble.ServerID          // the server that is cut off; 0: none
	znodes   int                        // number of znodes that clients have made
	order    []ensemble.ServerID        // the order in which the seed starts the servers; nil: not drawn yet
}

// exchange records what a compatible server exchanges with another.
func (r *recorder) exchange(e Exchange) {
	e.Step = len(r.Steps) - 1
	r.Exchanges = append(r.Exchanges, e)
}

// exchange shows the recorder what a compatible server sends or receives.
func (v *server) exchange(e Exchange) {
	if v.compatible && v.sim.opt.seen != nil {
		v.sim.opt.seen(e)
	}
}

// linkEnds shows the recorder that a compatible server has lost or given up its end of a link.
func (v *server) linkEnds(l *link, end int) {
	v.exchange(Exchange{Peer: l.ends[1-end].id, Link: l.id})
}

// carryOut plays a step, and waits until the ensemble is at rest.
func (r *recorder) carryOut(p Step) error {
	r.RunFor(r.random.Between(pauseMin, pauseMax))
	r.Steps = append(r.Steps, RecordedStep{Step: p})
	if r.server(p.Server) == nil {
		return fmt.Errorf("there is no server %d", p.Server)
	}
	if err := r.play(p); err != nil {
		return err
	}
	if err := r.await("rest", r.atRest); err != nil {
		return err
	}
	if l := r.leading(); l != nil {
		s := &r.Steps[len(r.Steps)-1]
		s.Leader, s.Epoch = l.id, l.standing.Epoch
	}
	return nil
}

func (r *recorder) play(p Step) error {
	switch p.Kind {
	case StepStart:
		r.down[p.Server] = false
		r.Do(Act{Kind: Start, A: int(p.Server)})
	case StepKill:
		r.down[p.Server] = true
		r.Do(Act{Kind: Kill, A: int(p.Server)})
	case StepCut:
		r.isolate(p.Server)
	case StepJoin:
		r.isolated = 0
		r.Do(Act{Kind: Heal, A: int(p.Server)})
	case StepWrite:
		return r.write(p)
	case StepCutWriting:
		return r.cutWriting(p)
	}
	return nil
}

// isolate cuts a server off from the other servers, but not from clients.
func (r *recorder) isolate(id ensemble.ServerID) {
	r.isolated = id
	for _, o := range r.servers {
		if o.id != id {
			r.Do(Act{Kind: Cut, A: int(id), B: int(o.id)})
		}
	}
}

// write lets a client open a session, make and write a znode, and close the session.
func (r *recorder) write(p Step) error {
	c, path, err := r.session(p.Server)
	if err != nil {
		return err
	}
	for range p.Value {
		if err := r.answered(c, c.Write(path)); err != nil {
			return err
		}
	}
	return r.endSession(c)
}

// cutWriting cuts off a leader, which then proposes a write.
func (r *recorder) cutWriting(p Step) error {
	c, path, err := r.session(p.Server)
	if err != nil {
		return err
	}
	r.Steps[len(r.Steps)-1].Session = c.Session
	v := r.server(p.Server)
	if !v.leads() {
		return fmt.Errorf("server %d does not lead", p.Server)
	}
	if err := r.await("rest", r.atRest); err != nil {
		return err
	}
	r.RunFor(pauseBeforeCut)
	last := v.log.Last()
	r.isolate(p.Server)
	c.Send(c.Write(path))
	if err := r.await("the leader has proposed a write", func() bool { return v.log.Last() > last }); err != nil {
		return err
	}
	c.Stop(false) // it must not connect again before the others serve
	if err := r.await("rest", r.atRest); err != nil {
		return err
	}
	if p.Value == 1 {
		return nil
	}
	c.Only = r.leading().id
	c.Resume()
	if err := r.await("the client has moved", func() bool { return c.Attached && c.At == c.Only }); err != nil {
		return err
	}
	return r.endSession(c)
}

// session opens the session of a new client, which makes a znode.
func (r *recorder) session(at ensemble.ServerID) (*client.Client, string, error) {
	c := r.scripted(r.server(at))
	if err := r.await("a client is connected", func() bool { return c.Attached }); err != nil {
		return nil, "", err
	}
	r.znodes++
	path := fmt.Sprintf("/znode-%d", r.znodes)
	create := c.Creation(path)
	create.Op = wire.OpCreate2
	return c, path, r.answered(c, create)
}

// endSession closes the session of a client, which then does nothing any more.
func (r *recorder) endSession(c *client.Client) error {
	err := r.answered(c, &client.Call{Op: wire.OpCloseSession})
	c.Stop(false)
	return err
}

// answered sends a request and waits for its answer.
func (r *recorder) answered(c *client.Client, k *client.Call) error {
	c.Send(k)
	err := r.await(k.Op.String()+" is answered", func() bool { return k.Done != 0 })
	if err == nil && k.Err != wire.OK {
		err = k.Err
	}
	return err
}

// await plays events until a condition holds.
func (r *recorder) await(what string, holds func() bool) error {
	if r.RunUntil(holds, restWithin) {
		return nil
	}
	if err := r.Failed(); err != nil {
		return err
	}
	return fmt.Errorf("not in time: %s", what)
}

// connected returns the servers that have a process and are not cut off.
func (r *recorder) connected() (all []*server) {
	for _, v := range r.servers {
		if !r.down[v.id] && v.id != r.isolated {
			all = append(all, v)
		}
	}
	return all
}

// leading returns the leader of the connected servers; nil: there is none.
func (r *recorder) leading() *server {
	for _, v := range r.connected() {
		if v.up && v.leads() {
			return v
		}
	}
	return nil
}

// atRest reports whether a majority of connected servers serves in one epoch and has
// applied all transactions, none of them knows of others, and no other server serves.
// Without a majority, no server may serve.
func (r *recorder) atRest() bool {
	all, l := r.connected(), r.leading()
	majority := len(all) > RecordedServers/2
	if majority != (l != nil) {
		return false
	}
	for _, v := range r.servers {
		member := majority && !r.down[v.id] && v.id != r.isolated
		if v.up == r.down[v.id] || v.up && v.standing.Serving != member {
			return false
		}
		if member && (v.standing.Epoch != l.standing.Epoch || v.seen.zxid < r.history.Last().Zxid || v.log.Last() > v.seen.zxid) {
			return false
		}
	}
	return true
}
