package realpeers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/sim"
	"bellwether/interop/target"
	"bellwether/zk"
)

// waitMax bounds every wait for the real servers.
const waitMax = 3 * time.Minute

// replay is a recorded run that real servers repeat.
type replay struct {
	t        *testing.T
	rec      *sim.Recording
	slowdown float64
	net      *network
	e        *target.Ensemble
	ctx      context.Context
	up       map[ensemble.ServerID]bool
	isolated ensemble.ServerID
	znodes   int
}

// repeat repeats a recorded run. The compatible server is Apache ZooKeeper, the others are
// Bellwether. Each step begins when the ensemble is at rest, as in the recorded run, and as
// much later as there, times the slowdown.
func repeat(t *testing.T, rec *sim.Recording, slowdown float64) *replay {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitMax)
	t.Cleanup(cancel)
	r := &replay{t: t, rec: rec, slowdown: slowdown, net: newNetwork(t, sim.RecordedServers), ctx: ctx, up: map[ensemble.ServerID]bool{}}
	kinds := make([]target.Kind, sim.RecordedServers)
	for i := range kinds {
		if kinds[i] = target.Bellwether; i+1 == int(rec.Compatible) {
			kinds[i] = target.Apache
		}
	}
	e, err := target.NewEnsemble(t.TempDir(), target.EnsembleOptions{
		Kinds: kinds, Places: r.net.places(sim.RecordedServers), Extra: map[string]string{
			"tickTime":  fmt.Sprint(int(sim.RecordedTickMS * slowdown)),
			"initLimit": fmt.Sprint(sim.RecordedInitLimit),
			"syncLimit": fmt.Sprint(sim.RecordedSyncLimit),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.e = e
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(target.Report(e.Servers...))
		}
		e.Kill()
	})
	r.net.leadTo(e)
	for i, s := range rec.Steps {
		r.step(i, s)
	}
	r.pause(sim.RecordedPauseMS * 1000) // until the last packets were sent
	return r
}

// pause lets as much time pass as in the recorded run, in µs, times the slowdown.
func (r *replay) pause(us int64) {
	<-time.After(time.Duration(float64(us)*r.slowdown) * time.Microsecond)
}

func (r *replay) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// step repeats a step, and waits until the ensemble is at rest.
func (r *replay) step(i int, s sim.RecordedStep) {
	if i > 0 {
		r.pause(s.At - r.rec.Steps[i-1].Rest)
	}
	r.net.begin(i)
	switch s.Kind {
	case sim.StepStart:
		r.start(s.Server)
	case sim.StepKill:
		r.up[s.Server] = false
		r.server(s.Server).Kill()
		r.net.switchOff(s.Server)
	case sim.StepCut:
		r.isolate(s.Server)
	case sim.StepJoin:
		r.isolate(0)
	case sim.StepWrite:
		r.write(s)
	case sim.StepCutWriting:
		r.cutWriting(s)
	}
	leader := r.awaitRest(s.Step)
	if leader != s.Leader {
		r.t.Fatalf("after step %d (%v) server %d leads; in the recorded run, server %d did", i, s.Step, leader, s.Leader)
	}
}

func (r *replay) server(id ensemble.ServerID) *target.Server { return r.e.Servers[id-1] }

// start starts a process. Others can connect to it as soon as it answers.
func (r *replay) start(id ensemble.ServerID) {
	r.up[id] = true
	s := r.server(id)
	r.must(s.Begin())
	r.await(fmt.Sprintf("server %d answers", id), func() bool {
		if !s.Running() {
			r.t.Fatalf("server %d has ended", id)
		}
		_, err := s.Word("ruok")
		return err == nil
	})
	r.must(r.net.switchOn(id))
}

func (r *replay) isolate(id ensemble.ServerID) {
	r.isolated = id
	r.net.isolate(id)
}

// write lets a client open a session, make and write a znode, and close the session.
func (r *replay) write(s sim.RecordedStep) {
	c, path := r.session(s.Server)
	for range s.Value {
		_, err := c.Set(r.ctx, path, []byte("value"), -1)
		r.must(err)
	}
	r.must(c.Close(r.ctx))
}

// cutWriting cuts off a leader, which then proposes a write. When others serve, the client
// moves to the next leader and closes its session.
func (r *replay) cutWriting(s sim.RecordedStep) {
	c, path := r.session(s.Server)
	r.awaitRest(sim.Step{Kind: sim.StepWrite})
	r.pause(sim.RecordedPauseMS * 1000)
	r.isolate(s.Server)
	from := len(r.net.sent())
	answered := make(chan error, 1)
	go func() {
		_, err := c.Set(r.ctx, path, []byte("value"), -1)
		answered <- err
	}()
	r.await("the leader has proposed a write", func() bool {
		return slices.ContainsFunc(r.net.sent()[from:], func(p sim.SentPacket) bool {
			return p.From == s.Server && p.Packet != nil && p.Packet.Type == peerwire.PacketProposal
		})
	})
	session := c.Detach() // the client must not connect again before the others serve
	leader := r.awaitRest(s.Step)
	if err := <-answered; err == nil {
		r.t.Fatalf("server %d has carried out a write although no other server got it", s.Server)
	}
	c, err := zk.Connect(r.ctx, r.server(leader).Addr, &zk.Options{Resume: session, OneSession: true})
	r.must(err)
	r.must(c.Close(r.ctx))
}

// session opens a session, whose client makes a znode.
func (r *replay) session(at ensemble.ServerID) (*zk.Client, string) {
	timeout := time.Duration(8*sim.RecordedTickMS*r.slowdown) * time.Millisecond
	c, err := zk.Connect(r.ctx, r.server(at).Addr, &zk.Options{SessionTimeout: timeout, OneSession: true})
	r.must(err)
	r.t.Cleanup(func() { c.Detach() })
	r.znodes++
	path, _, err := c.Create(r.ctx, fmt.Sprintf("/znode-%d", r.znodes), []byte("value"))
	r.must(err)
	return c, path
}

// await waits until a condition holds.
func (r *replay) await(what string, holds func() bool) {
	r.t.Helper()
	for !holds() {
		select {
		case <-r.ctx.Done():
			r.t.Fatalf("not in time: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// awaitRest waits until the ensemble is at rest, and returns its leader; 0: no server leads.
func (r *replay) awaitRest(s sim.Step) ensemble.ServerID {
	r.t.Helper()
	for {
		leader, missing := r.standing(s)
		if missing == "" {
			return leader
		}
		select {
		case <-r.ctx.Done():
			r.t.Fatalf("not at rest after %v: %s", s, missing)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// standing returns the leader of the connected servers, and what is missing until the
// ensemble is at rest; an empty text: nothing. After a write all servers must have the same
// transactions.
func (r *replay) standing(s sim.Step) (leader ensemble.ServerID, missing string) {
	connected := 0
	for id, up := range r.up {
		if up && id != r.isolated {
			connected++
		}
	}
	zxids := map[string]bool{}
	for id, up := range r.up {
		if !up {
			continue
		}
		role, zxid := r.srvr(id)
		member := id != r.isolated && connected > sim.RecordedServers/2
		switch {
		case member != (role == "leader" || role == "follower"):
			missing += fmt.Sprintf(" server %d has the role %q", id, role)
		case role == "leader":
			leader = id
		}
		if member {
			zxids[zxid] = true
		}
	}
	if connected > sim.RecordedServers/2 && leader == 0 {
		missing += " no server leads"
	}
	if s.Kind == sim.StepWrite && len(zxids) > 1 {
		missing += fmt.Sprintf(" the servers have different transactions: %v", zxids)
	}
	return leader, missing
}

// srvr returns the role and the last zxid that a server reports; empty texts if it does not
// serve.
func (r *replay) srvr(id ensemble.ServerID) (role, zxid string) {
	text, err := r.server(id).Word("srvr")
	if err != nil {
		return "", ""
	}
	_, zxid, _ = strings.Cut(text, "\nZxid: ")
	_, role, _ = strings.Cut(text, "\nMode: ")
	zxid, _, _ = strings.Cut(zxid, "\n")
	role, _, _ = strings.Cut(role, "\n")
	return role, zxid
}
