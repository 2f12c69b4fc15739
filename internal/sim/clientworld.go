package sim

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// world is the simulation as clients see it. It is a [client.World].
type world struct{ s *Sim }

func (w world) Now() int64               { return w.s.now }
func (w world) After(d int64, do func()) { w.s.after(d, do) }
func (w world) Random() *machine.Random  { return w.s.random }
func (w world) Phase() client.Phase {
	return client.Phase{Calm: w.s.calm, Quiet: w.s.quiet, Idle: w.s.idle}
}
func (w world) Servers() int             { return len(w.s.servers) }
func (w world) HasLeader() bool          { return w.s.leader() != nil }
func (w world) History() *check.History  { return &w.s.history }
func (w world) See(o any)                { w.s.see(o) }
func (w world) Detailed() bool           { return w.s.detailed }
func (w world) Reach(x client.Situation) { w.s.reach(ofClients[x]) }
func (w world) Kill(client int)          { w.s.Do(Act{Kind: Kill, A: -client}) }
func (w world) Hang(client int)          { w.s.Do(Act{Kind: Hang, A: -client}) }

func (w world) Listed(id ensemble.ServerID) bool { return !w.s.server(id).absent }

func (w world) Fail(rule, format string, args ...any) { w.s.fail(rule, format, args...) }
func (w world) Tell(format string, args ...any)       { w.s.tell(format, args...) }
func (w world) Detail(format string, args ...any)     { w.s.detail(format, args...) }

func (w world) Settings() client.Settings {
	o := &w.s.opt
	return client.Settings{Recipe: o.Recipe, Leases: o.Leases, TermMS: o.TermMS, TickMS: o.TickMS, SessionMS: int32(int64(o.SessionTicks) * o.TickMS), ThinkMS: o.ThinkMS, LocalSessions: o.LocalSessions > 0, Careless: o.Careless > 0}
}

func (w world) Behind(seen wire.Zxid) ensemble.ServerID {
	for _, v := range w.s.servers {
		if v.up && v.tree.LastZxid() == seen-1 {
			return v.id
		}
	}
	return 0
}

func (w world) Reaches(from *machine.Host, to ensemble.ServerID) bool {
	v := w.s.server(to)
	return w.s.net.through(from, &v.Host) && v.On
}

func (w world) RoundTrip(from *machine.Host, to ensemble.ServerID) int64 {
	return w.s.net.latency(from, &w.s.server(to).Host) * 2
}

func (w world) Connect(from *machine.Host, to ensemble.ServerID, take func(any), gone func()) client.Connection {
	v := w.s.server(to)
	if !v.up {
		return nil
	}
	if v.paused {
		w.s.reach(situationStoppedAccepts)
	}
	k := w.s.net.newConn(from, &v.Host)
	k.ends[0].take, k.ends[0].gone = take, func(string) { gone() }
	v.accept(k)
	return clientEnd{k}
}

// clientEnd is the client's end of a connection.
type clientEnd struct{ tcp *tcpConn }

func (c clientEnd) Send(message any) { c.tcp.send(0, message) }
func (c clientEnd) Close()           { c.tcp.close(0) }

func (c clientEnd) Vanish() bool {
	if !c.tcp.ends[0].open {
		return false
	}
	c.tcp.vanish(0)
	return true
}

// ofClients maps each situation of package client to the situation of a run.
var ofClients = [...]situation{
	client.Resumed: situationResumed, client.Moved: situationMoved, client.MovedLeaderless: situationMovedLeaderless, client.ReadOnly: situationReadOnly,
	client.WatchesAgain: situationWatchesAgain, client.TreeAgain: situationTreeAgain, client.Since: situationSince, client.HolderStopped: situationHolderStopped,
	client.HalfOpen: situationHalfOpen, client.ClientSlept: situationClientSlept, client.ClientClockBack: situationClientClockBack,
	client.ClientClockAhead: situationClientClockAhead, client.ClientJumped: situationClientJumped,
}
