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

// allRecorded are the packets of all scenarios, each with who is at its ends.
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
			t.Fatal(r.Name, "is nobody's")
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

// name fills in who is at the ends of connections that were recorded without
// their first packet.
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

// recordedMembers is the configuration that the recorded leader sent.
func recordedMembers(t *testing.T, all []recorded) *ensemble.Membership {
	t.Helper()
	i := slices.IndexFunc(all, func(r recorded) bool { return r.Kind == "NEWLEADER" })
	m, err := ensemble.Parse(string(all[i].packet.Data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A recorded learner's packets, in their order, are answered by our leader
// byte for byte as the recorded leader answered. What differs on purpose: a SYNC
// or REVALIDATE waits for an answered ping, which the recorded learners are made
// to give.
func leaderAnswers(t *testing.T, seen *ledger) {
	for _, c := range []struct {
		scenario   string
		next       string   // goes on in the same connections
		conns      []string // those of this leader, where there are others
		id         ensemble.ServerID
		epochs     wire.Epoch // accepted and current before
		base       string     // of the leader's snapshot
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
			l := NewLeader(0, LeaderOptions{Plain: true, Terms: Terms{ // so that snapshots have ZooKeeper's zxid
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

// toLeader feeds what learners sent and compares, for each connection, what the
// leader sends. What it proposed for its own clients is proposed when it turns up.
type toLeader struct {
	t         *testing.T
	seen      *ledger
	l         *Leader
	all       []recorded
	now       int64
	links     map[string]LinkID
	got, want map[LinkID][]string
	pings     map[LinkID]*peerwire.QuorumPacket // the last one sent
	owed      map[LinkID]bool                   // that is not answered yet
}

// replayToLeader plays packets. links are the connections that there are already.
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

// play takes the next packet.
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

// carry answers for the disk, and for pings but those of spare, at once.
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

// carryOutInput does what the recorded leader did: it proposes what that made
// of a request.
func carryOutInput(t *testing.T, l *Leader, in Input, all []recorded) {
	switch {
	case in.Revalidation != nil:
		l.Step(l.now, Revalidated{in.Link, peerwire.Revalidated{Session: in.Revalidation.Session, Valid: in.Revalidation.Session != 0x1234}})
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

// Recorded leaders' histories (DIFF of proposals, TRUNC, SNAP) are sent by our
// leader in the same packets, where the recording began after it was
// established.
func leaderSynchronises(t *testing.T, seen *ledger) {
	for _, c := range []struct {
		scenario, conn, base string
		id                   ensemble.ServerID
		epoch                wire.Epoch
		reads                []string // entries known besides the recorded proposals
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

// establishedLeader leads an epoch, alone so far: the others' votes are given
// to it directly.
func establishedLeader(t testing.TB, id ensemble.ServerID, epoch wire.Epoch, m *ensemble.Membership, g *Log) *Leader {
	t.Helper()
	l := NewLeader(0, LeaderOptions{Terms: Terms{
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

// A recorded leader's packets are answered by our learner as the recorded
// learner answered them. What differs on purpose: the log of 3.8.0 also
// acknowledged what it was synchronised with.
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
			if c.scenario == "s1-start" && c.id != 4 { // the observer had heard of it already
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
	snap      *peerwire.QuorumPacket // whose snapshot is still to come
	ping      *peerwire.QuorumPacket // that is still to be given to it
	pings     int                    // answered
	token     uint64                 // of touches
}

func wireLearner(t *testing.T, seen *ledger, m *ensemble.Membership, id ensemble.ServerID, accepted, current wire.Epoch, g *Log) *playedLearner {
	t.Helper()
	s, _ := m.Server(id) // one that is not named is a follower without a vote
	return &playedLearner{t: t, seen: seen, Learner: NewLearner(0, LearnerOptions{
		Terms: Terms{ID: id, Accepted: accepted, Current: current, Committed: m, TickMS: 2000, InitLimit: 10, SyncLimit: 5},
		Link:  1, Leader: 9, Observer: s.Role == ensemble.Observer, Reconfig: true, Plain: true,
	}, g)}
}

// playAll takes all packets of a connection.
func (w *playedLearner) playAll(all []recorded) {
	for _, r := range all {
		w.carry()
		w.play(r)
		w.carry()
	}
	w.unanswered()
}

// play takes a recorded packet: gives it to the learner, or expects it of it.
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

// hear gives the learner a packet; a SNAP when its snapshot has been read.
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

// expect does what brings a packet about. The log of 3.8.0 has acknowledged
// what it was synchronised with; ours has the whole history acknowledged by then.
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
