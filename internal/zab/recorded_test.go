package zab

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// ledger records the names of the recorded packets that the tests gave to a machine, and of those that
// they compared with a packet of a machine.
type ledger struct{ heard, said map[string]bool }

// TestEveryRecordedPacket plays the recordings, as the leader and as the learners, and
// then checks that no packet was left out: each was given to a machine, or compared byte
// for byte with what a machine sent, or both.
func TestEveryRecordedPacket(t *testing.T) {
	seen := &ledger{map[string]bool{}, map[string]bool{}}
	for name, play := range map[string]func(*testing.T, *ledger){
		"leader/answers": leaderAnswers, "leader/synchronises": leaderSynchronises, "leader/goes on": leaderGoesOn,
		"leader/anew": leaderAnew, "leader/reads its disk": leaderReadsItsDisk,
		"learner/answers": learnerAnswers, "learner/goes on": learnerGoesOn, "learner/anew": learnerAnew,
	} {
		t.Run(name, func(t *testing.T) { play(t, seen) })
	}
	all, both := allRecorded(t), 0
	for _, r := range all {
		heard, said := seen.heard[r.Name], seen.said[r.Name]
		if !heard && !said {
			t.Errorf("%s (%s, connection %s) was left out", r.Name, r.Kind, r.Conn)
		}
		if heard && said {
			both++
		}
	}
	if len(all) != 425 {
		t.Errorf("%d packets, want 425", len(all))
	}
	t.Logf("%d packets: %d were given to a machine, %d compared with what one said, %d both", len(all), len(seen.heard), len(seen.said), both)
}

// encoded returns a packet as text: its type and all its bytes.
func encoded(p *peerwire.QuorumPacket) string {
	return fmt.Sprintf("%v %x", p.Type, wire.Append(nil, p))
}

// expected returns what a machine must send where this packet was recorded.
func (r *recorded) expected() string {
	if r.packet == nil {
		return r.Kind
	}
	return encoded(r.packet)
}

func (r *recorded) ping() bool { return r.packet != nil && r.packet.Type == peerwire.PacketPing }

// touchedIn returns the sessions in an answer to a ping.
func touchedIn(t *testing.T, p *peerwire.QuorumPacket) []peerwire.TouchedSession {
	t.Helper()
	var touched peerwire.TouchedSessions
	if err := wire.Decode(p.Data, &touched); err != nil {
		t.Fatal(err)
	}
	return touched.Sessions
}

// pingedBy plays a recorded ping of the leader. The recordings contain only the first ping and the first
// answer of each kind on a connection, so an answer may be recorded without its ping, and a ping without
// its answer. Half a tick passes, and the leader pings. The answer is the one that was recorded next; if
// none was recorded, the learner answers at once.
func (p *toLeader) pingedBy(r recorded, rest []recorded) {
	id := p.links[r.Conn]
	next := slices.IndexFunc(rest, func(o recorded) bool { return o.Conn == r.Conn })
	spare := LinkID(0)
	if next >= 0 && rest[next].ping() && *rest[next].To == p.l.opt.ID {
		spare = id
	}
	p.halfTick(spare)
	if got := p.pings[id]; got == nil || encoded(got) != encoded(r.packet) {
		p.t.Errorf("%s: pinged by %v", r.Name, got)
	}
	p.seen.said[r.Name] = true
}

// answeredBy gives the leader a recorded answer to a ping, and requires that the sessions of the answer
// are among the leader's Inputs.
func (p *toLeader) answeredBy(r recorded) {
	id := p.links[r.Conn]
	if !p.owed[id] {
		p.halfTick(id)
	}
	if got := p.pings[id]; got == nil || got.Zxid != r.packet.Zxid {
		p.t.Errorf("%s answers %v", r.Name, got)
	}
	p.owed[id] = false
	p.l.Step(p.now, Received{id, r.packet})
	out := p.l.Ready()
	var touched []peerwire.TouchedSession
	for _, in := range out.Inputs {
		touched = append(touched, in.Touched...)
	}
	if p.l.links[id] == nil || !slices.Equal(touched, touchedIn(p.t, r.packet)) {
		p.t.Errorf("%s: touched %v, closed %v", r.Name, touched, out.Close)
	}
	p.collect(out, 0)
	p.seen.heard[r.Name] = true
}

// halfTick lets half a tick pass, so that the leader pings the learners. One learner keeps its answer back.
func (p *toLeader) halfTick(spare LinkID) {
	p.now += p.l.opt.TickMS / 2
	p.l.Step(p.now, Tick{})
	p.carry(spare)
}

// pingedHere keeps a recorded ping of the leader for this learner. The learner gets the ping together with
// the next recorded packet: if that packet is the answer, it says which sessions were touched.
func (w *playedLearner) pingedHere(r recorded) {
	w.ping = r.packet
	w.seen.heard[r.Name] = true
}

// unanswered gives the learner a ping whose answer was not recorded.
func (w *playedLearner) unanswered() {
	if p := w.ping; p != nil {
		w.ping = nil
		w.echo(p, "")
	}
}

// echoed plays a recorded answer to a ping. The ping itself may not have been recorded.
func (w *playedLearner) echoed(r recorded) {
	if w.ping == nil || w.ping.Zxid != r.packet.Zxid {
		w.unanswered()
		w.ping = &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: r.packet.Zxid}
	}
	p := w.ping
	w.ping = nil
	if touched := touchedIn(w.t, r.packet); len(touched) > 0 {
		w.token++
		w.Step(0, Touched{Sessions: touched, Token: w.token})
	}
	w.echo(p, encoded(r.packet))
	w.seen.said[r.Name] = true
}

// echo gives the learner a ping and compares its answer. After an answer with sessions, this learner
// sends a sync to a ZooKeeper leader, to find out whether the leader has read them. ZooKeeper's learner
// does not do that.
func (w *playedLearner) echo(p *peerwire.QuorumPacket, want string) {
	w.Step(0, Received{1, p})
	out := w.Ready()
	if want == "" {
		want = encoded(&peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: p.Zxid, Data: []byte{}})
	}
	if len(out.Send) == 0 || encoded(out.Send[0].Packet) != want {
		w.t.Errorf("answered a ping by %v, recorded was %s", out.Send, want)
		return
	}
	w.pings++
	if len(out.Send) == 2 && out.Send[1].Packet.Type == peerwire.PacketRequest {
		w.Step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketSync}})
		if got := w.Ready().Confirmed; got != w.token {
			w.t.Errorf("the touches up to %d are confirmed, want %d", got, w.token)
		}
	}
}
