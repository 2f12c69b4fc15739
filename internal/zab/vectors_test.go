package zab

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// recorded is a packet captured between servers of Apache ZooKeeper 3.8.0.
type recorded struct {
	Name, Scenario, Conn, Kind, Hex string
	From, To                        *ensemble.ServerID
	packet                          *peerwire.QuorumPacket // nil: snapshot bytes
}

// allRecorded returns the packets of all scenarios, each with the servers at the ends of its connection.
func allRecorded(t *testing.T) []recorded {
	t.Helper()
	b, err := os.ReadFile("../peerwire/testdata/zab.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []recorded }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for i := range file.Vectors {
		r := &file.Vectors[i]
		if name(r); r.From == nil || r.To == nil {
			t.Fatal(r.Name, "has an unknown sender or receiver")
		}
		raw, err := hex.DecodeString(r.Hex)
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind != "SNAPSHOT" {
			r.packet = new(peerwire.QuorumPacket)
			if err := wire.Decode(raw, r.packet); err != nil {
				t.Fatal(r.Name, err)
			}
		}
	}
	return file.Vectors
}

func recordings(t *testing.T, scenario string) []recorded {
	t.Helper()
	out := slices.DeleteFunc(allRecorded(t), func(r recorded) bool { return r.Scenario != scenario })
	if len(out) == 0 {
		t.Fatal("no packets of", scenario)
	}
	return out
}

// name finds out which servers are at the ends of connections whose first packet was not recorded.
func name(r *recorded) {
	id, ok := map[string]ensemble.ServerID{
		"s8-reconfig-leader/51582>23223": 1, "s8-reconfig-leader/51572>23223": 2,
		"s9-rollover/49220>23223": 1, "s9-rollover/49234>23223": 2,
		"s11-disklog/39028>23223": 2,
	}[r.Scenario+"/"+r.Conn]
	if r.From == nil && ok {
		r.From = &id
	}
	if r.To == nil && ok {
		r.To = &id
	}
}

// recordedMembers returns the configuration that the recorded leader sent.
func recordedMembers(t *testing.T, all []recorded) *ensemble.Membership {
	t.Helper()
	i := slices.IndexFunc(all, func(r recorded) bool { return r.Kind == "NEWLEADER" })
	m, err := ensemble.Parse(string(all[i].packet.Data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// leaderAnswers gives a recorded learner's packets to a leader of this package, in their order. The
// leader answers byte for byte as the recorded leader did. One difference is intended: a SYNC or
// REVALIDATE waits for an answered ping, so the test makes the recorded learners answer one.
func leaderAnswers(t *testing.T, seen *ledger) {
	for _, c := range []struct {
		scenario   string
		next       string   // the scenario that goes on over the same connections
		conns      []string // the connections of this leader, if the scenario has others too
		id         ensemble.ServerID
		epochs     wire.Epoch // accepted and current epoch before the recording
		base       string     // where the leader's snapshot ends
		configZero bool
	}{
		{scenario: "s1-start", id: 3, configZero: true},
		{scenario: "s1-start", next: "s2-write", id: 3, configZero: true},
		{scenario: "s3-failover", conns: []string{"49436>23222", "49442>23222"}, id: 2, epochs: 1, base: "1.9"},
	} {
		t.Run(c.scenario+c.next, func(t *testing.T) {
			all := recordings(t, c.scenario)
			m := recordedMembers(t, all)
			if c.configZero {
				m = m.WithVersion(0)
			}
			if c.next != "" {
				all = append(all, recordings(t, c.next)...)
			}
			if c.conns != nil {
				all = of(all, c.conns...)
			}
			l := NewLeader(0, LeaderOptions{CompatibleOnly: true, TermStart: TermStart{ // so that snapshots have the same zxid as ZooKeeper's
				ID: c.id, Accepted: c.epochs, Current: c.epochs, Committed: m, TickMS: 2000, InitLimit: 10, SyncLimit: 5,
			}}, NewLog(zx(orZero(c.base)), 0))
			replayToLeader(t, seen, l, all, nil)
		})
	}
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

// toLeader gives a leader the packets of learners and compares, for each connection, the packets that the
// leader sends. If the recorded leader proposed a transaction for its own clients, the test proposes it
// when its packet comes.
type toLeader struct {
	t         *testing.T
	seen      *ledger
	l         *Leader
	all       []recorded
	now       int64
	links     map[string]LinkID
	got, want map[LinkID][]string
	pings     map[LinkID]*peerwire.QuorumPacket // the last ping that was sent
	owed      map[LinkID]bool                   // whether this ping has not been answered yet
}

// replayToLeader plays packets. links are the connections that exist already.
func replayToLeader(t *testing.T, seen *ledger, l *Leader, all []recorded, links map[string]LinkID) {
	if links == nil {
		links = map[string]LinkID{}
	}
	p := &toLeader{t: t, seen: seen, l: l, all: all, links: links, got: map[LinkID][]string{}, want: map[LinkID][]string{},
		pings: map[LinkID]*peerwire.QuorumPacket{}, owed: map[LinkID]bool{}}
	compared := len(seen.said)
	for i, r := range all {
		p.play(r, all[i+1:])
	}
	if len(p.want) == 0 && len(seen.said) == compared {
		t.Fatal("nothing was compared")
	}
	for id := range p.want {
		if g, w := strings.Join(p.got[id], "\n"), strings.Join(p.want[id], "\n"); g != w {
			t.Errorf("connection %d: sent\n%s\nrecorded\n%s", id, g, w)
		}
	}
}

// play plays the next packet.
func (p *toLeader) play(r recorded, rest []recorded) {
	id, ok := p.links[r.Conn]
	if !ok {
		id = LinkID(len(p.links) + 1)
		p.links[r.Conn] = id
		p.l.Step(p.now, Opened{id})
	}
	p.carry(0)
	switch to := *r.To == p.l.opt.ID; {
	case r.ping() && to:
		p.answeredBy(r)
	case r.ping():
		p.pingedBy(r, rest)
	case to:
		p.seen.heard[r.Name] = true
		p.l.Step(p.now, Received{id, r.packet})
	default:
		if next, ok := p.l.NextZxid(); ok && r.packet != nil && r.packet.Type == peerwire.PacketProposal && r.packet.Zxid == next {
			p.l.Step(p.now, Propose{recordedTxn(p.t, r)})
		}
		p.want[id] = append(p.want[id], r.expected())
		p.seen.said[r.Name] = true
	}
	p.carry(0)
}

// carry acknowledges at once what the leader gives to its disk, and answers the leader's pings
// on all links except spare.
func (p *toLeader) carry(spare LinkID) {
	for range 6 {
		p.collect(p.l.Ready(), spare)
	}
}

func (p *toLeader) collect(r Ready, spare LinkID) {
	for _, m := range r.Send {
		switch {
		case m.Packet.Type != peerwire.PacketPing:
			p.got[m.Link] = append(p.got[m.Link], encoded(m.Packet))
			if m.Snapshot {
				p.got[m.Link] = append(p.got[m.Link], "SNAPSHOT")
			}
		case m.Link == spare:
			p.pings[m.Link], p.owed[m.Link] = m.Packet, true
		default:
			p.pings[m.Link] = m.Packet
			if p.l.links[m.Link] != nil && p.l.links[m.Link].state == linkServing {
				p.l.Step(p.now, Received{m.Link, &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: m.Packet.Zxid}})
			}
		}
	}
	p.l.Step(p.now, Synced{p.l.log.Last(), r.Generation})
	if r.SaveAccepted+r.SaveCurrent != 0 {
		p.l.Step(p.now, Saved{r.SaveAccepted, r.SaveCurrent, r.Generation})
	}
	for _, in := range r.Inputs {
		carryOutInput(p.t, p.l, in, p.all)
	}
}

func recordedTxn(t *testing.T, r recorded) *record.Txn {
	t.Helper()
	x, err := record.DecodeTxn(r.packet.Data)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// carryOutInput proposes the transaction that the recorded leader has made from a request.
func carryOutInput(t *testing.T, l *Leader, in Input, all []recorded) {
	switch {
	case in.Revalidation != nil:
		l.Step(l.now, Revalidated{Link: in.Link, Question: in.Question, Answer: peerwire.Revalidated{Session: in.Revalidation.Session, Valid: in.Revalidation.Session != 0x1234}})
	case in.Request != nil && in.Request.Op == wire.OpSync:
		l.Step(l.now, Sync{Link: in.Link})
	case in.Request != nil:
		for _, r := range all {
			if r.packet == nil || r.packet.Type != peerwire.PacketProposal {
				continue
			}
			x := recordedTxn(t, r)
			if next, _ := l.NextZxid(); x.Zxid == next && x.Session == in.Request.Session && x.Cxid == in.Request.Cxid {
				l.Step(l.now, Propose{x})
				return
			}
		}
	}
}

// leaderSynchronises checks that the leader of this package sends histories (DIFF with proposals, TRUNC,
// SNAP) in the same packets as the recorded leaders, for recordings that begin after the leader was
// established.
func leaderSynchronises(t *testing.T, seen *ledger) {
	for _, c := range []struct {
		scenario, conn, base string
		id                   ensemble.ServerID
		epoch                wire.Epoch
		reads                []string // entries that the leader has besides the recorded proposals
	}{
		{scenario: "s4-diff", conn: "41722>23222", id: 2, epoch: 2, base: "1.8", reads: []string{"1.9"}},
		{scenario: "s5-snap", conn: "41736>23222", id: 2, epoch: 2, base: "2.5"},
		{scenario: "s6-trunc", conn: "57364>23223", id: 3, epoch: 3, base: "2.6", reads: []string{"2.7"}},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			all := of(recordings(t, c.scenario), c.conn)
			g := NewLog(zx(c.base), 0)
			for _, x := range txns(strings.Join(c.reads, " ")) {
				if err := g.Append(x); err != nil {
					t.Fatal(err)
				}
			}
			l := establishedLeader(t, c.id, c.epoch, recordedMembers(t, all), g)
			for _, r := range all {
				if r.packet != nil && r.packet.Type == peerwire.PacketProposal {
					x := recordedTxn(t, r)
					l.Step(0, Propose{x})
					l.Step(0, Synced{x.Zxid, l.generation})
				}
			}
			l.log.MarkApplied(l.log.last)
			l.Ready()
			replayToLeader(t, seen, l, all, nil)
		})
	}
}

// establishedLeader returns a leader that has no learners yet. It is given the packets of the other
// voters directly.
func establishedLeader(t testing.TB, id ensemble.ServerID, epoch wire.Epoch, m *ensemble.Membership, g *Log) *Leader {
	t.Helper()
	l := NewLeader(0, LeaderOptions{TermStart: TermStart{
		ID: id, Accepted: epoch - 1, Current: epoch - 1, Committed: m, TickMS: 2000, InitLimit: 10, SyncLimit: 5,
	}}, g)
	for i := range ensemble.ServerID(8) {
		l.servers[i] = &link{server: i, state: linkSynced, acks: acks{promised: true, adopted: true}}
	}
	l.discover()
	gen := l.Ready().Generation
	l.Step(0, Synced{g.Last(), gen})
	l.Step(0, Saved{Accepted: epoch, Generation: gen})
	l.Step(0, Saved{Current: epoch, Generation: gen})
	if !l.Serving() {
		t.Fatal("not established")
	}
	clear(l.servers)
	return l
}

// learnerAnswers checks that a learner of this package answers the packets of a recorded leader as the
// recorded learner did. One difference is intended: the log of 3.8.0 also acknowledged the transactions
// of the synchronisation.
func learnerAnswers(t *testing.T, seen *ledger) {
	for _, c := range []struct {
		scenario string
		next     string
		conn     string
		id       ensemble.ServerID
		accepted wire.Epoch
		current  wire.Epoch
		base     string
		entries  string
	}{
		{scenario: "s1-start", conn: "35012>23223", id: 1, base: "0"},
		{scenario: "s1-start", conn: "35018>23223", id: 2, base: "0"},
		{scenario: "s1-start", conn: "35024>23223", id: 4, base: "0"},
		{scenario: "s1-start", next: "s2-write", conn: "35012>23223", id: 1, base: "0"},
		{scenario: "s1-start", next: "s2-write", conn: "35018>23223", id: 2, base: "0"},
		{scenario: "s1-start", next: "s2-write", conn: "35024>23223", id: 4, base: "0"},
		{scenario: "s3-failover", conn: "49436>23222", id: 1, accepted: 1, current: 1, base: "1.9"},
		{scenario: "s3-failover", conn: "49442>23222", id: 4, accepted: 1, current: 1, base: "1.9"},
		{scenario: "s4-diff", conn: "41722>23222", id: 3, accepted: 1, current: 1, base: "1.9"},
		{scenario: "s5-snap", conn: "41736>23222", id: 1, base: "0"},
		{scenario: "s6-trunc", conn: "57364>23223", id: 2, accepted: 2, current: 2, base: "2.5", entries: "2.6 2.7 2.8"},
	} {
		t.Run(fmt.Sprint(c.scenario, c.next, "/", c.id), func(t *testing.T) {
			all := recordings(t, c.scenario)
			m := recordedMembers(t, all)
			if c.scenario == "s1-start" && c.id != 4 { // the observer had received the configuration before
				m = m.WithVersion(0)
			}
			if c.next != "" {
				all = append(all, recordings(t, c.next)...)
			}
			w := wireLearner(t, seen, m, c.id, c.accepted, c.current, logOf(t, c.base, c.entries))
			w.playAll(of(all, c.conn))
			if g, want := strings.Join(w.got, "\n"), strings.Join(w.want, "\n"); g != want || want == "" {
				t.Errorf("sent\n%s\nrecorded\n%s", g, want)
			}
			if !w.Serving() {
				t.Error("it does not serve")
			}
		})
	}
}

// playedLearner is a learner whose disk answers at once.
type playedLearner struct {
	*Learner
	t         *testing.T
	seen      *ledger
	got, want []string
	snap      *peerwire.QuorumPacket // the SNAP packet whose snapshot has not arrived yet
	ping      *peerwire.QuorumPacket // a ping that the learner has not received yet
	pings     int                    // number of pings that the learner has answered
	token     uint64                 // token of the last Touched
}

func wireLearner(t *testing.T, seen *ledger, m *ensemble.Membership, id ensemble.ServerID, accepted, current wire.Epoch, g *Log) *playedLearner {
	t.Helper()
	s, _ := m.Server(id) // a server that is not named is a follower without a vote
	return &playedLearner{t: t, seen: seen, Learner: NewLearner(0, LearnerOptions{
		TermStart: TermStart{ID: id, Accepted: accepted, Current: current, Committed: m, TickMS: 2000, InitLimit: 10, SyncLimit: 5},
		Link:      1, Leader: 9, Observer: s.Role == ensemble.Observer, Reconfig: true, CompatibleOnly: true,
	}, g)}
}

// playAll plays all packets of a connection.
func (w *playedLearner) playAll(all []recorded) {
	for _, r := range all {
		w.carry()
		w.play(r)
		w.carry()
	}
	w.unanswered()
}

// play plays a recorded packet: it gives a packet of the leader to the learner, and expects a packet of
// the learner from it.
func (w *playedLearner) play(r recorded) {
	to := *r.To == w.opt.ID
	switch {
	case r.ping() && to:
		w.unanswered()
		w.pingedHere(r)
		return
	case r.ping():
		w.echoed(r)
		return
	}
	w.unanswered()
	if to {
		w.hear(r)
	} else {
		w.expect(r)
	}
}

// hear gives the learner a packet. It gives a SNAP packet only after its snapshot has been read.
func (w *playedLearner) hear(r recorded) {
	w.seen.heard[r.Name] = true
	switch {
	case r.packet == nil:
		w.Step(0, Progress{1})
		w.Step(0, Received{1, w.snap})
	case r.packet.Type == peerwire.PacketSnap:
		w.snap = r.packet
	default:
		w.Step(0, Received{1, r.packet})
	}
}

// expect does what must happen before the learner sends a packet. The log of 3.8.0 acknowledged each
// transaction of the synchronisation; here the learner has acknowledged the whole history by then.
func (w *playedLearner) expect(r recorded) {
	switch r.packet.Type {
	case peerwire.PacketAck:
		if r.packet.Zxid.Counter() != 0 && r.Scenario == "s4-diff" {
			return
		}
	case peerwire.PacketRevalidate:
		var q peerwire.Revalidation
		_ = wire.Decode(r.packet.Data, &q)
		w.Step(0, Revalidate{q})
	case peerwire.PacketRequest:
		var q peerwire.ForwardedRequest
		_ = wire.Decode(r.packet.Data, &q)
		if f := (Forward{q, r.packet.Auth}); q.Op == wire.OpSync {
			w.Step(0, Sync{Token: 7, Request: f})
		} else {
			w.Step(0, f)
		}
	}
	w.want = append(w.want, encoded(r.packet))
	w.seen.said[r.Name] = true
}

func (w *playedLearner) carry() {
	for range 4 {
		r := w.Ready()
		for _, m := range r.Send {
			w.got = append(w.got, encoded(m.Packet))
		}
		if r.Install != nil {
			w.Step(0, Installed{r.Install.Zxid, r.Generation})
		}
		w.Step(0, Synced{w.log.Last(), r.Generation})
		if r.SaveAccepted+r.SaveCurrent != 0 {
			w.Step(0, Saved{r.SaveAccepted, r.SaveCurrent, r.Generation})
		}
	}
}
