package election

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// recorded has messages captured between servers of Apache ZooKeeper 3.8.0, and results
// of their rules for votes. The tests of peerwire use the same file.
const recorded = "../peerwire/testdata/election.json"

type recordedVote struct {
	ID, Leader    ensemble.ServerID
	Zxid          wire.Zxid
	PeerEpoch     wire.Epoch
	ElectionEpoch wire.Epoch
	Version       peerwire.NotificationVersion
	State         string
}

type recordedFile struct {
	Vectors []struct {
		Name, Scenario, Conn, Kind, Hex string
		T                               float64 `json:"t_ms"`
		From, To                        *ensemble.ServerID
	}
	Probes []struct {
		Name, Hex, Expected string
	}
	Predicate []struct {
		New, Current recordedVote
		WeightOfNew  int64
		NewWins      bool
	}
	VoteEquality []struct {
		A, B  recordedVote
		Equal bool
		Note  string
	}
}

func readRecorded(t *testing.T) *recordedFile {
	t.Helper()
	b, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	f := new(recordedFile)
	if err := json.Unmarshal(b, f); err != nil {
		t.Fatal(err)
	}
	// These connections were recorded without their first message, so their servers are
	// named here. There are three servers, and the second one leads next.
	far := map[string]ensemble.ServerID{"56066>23231": 2, "56078>23231": 3, "39822>23232": 3}
	for i := range f.Vectors {
		v := &f.Vectors[i]
		id, ok := far[v.Conn]
		if v.From == nil && ok {
			v.From = &id
		}
		if v.To == nil && ok {
			v.To = &id
		}
		if v.From == nil || v.To == nil {
			t.Fatal(v.Name, "is nobody's")
		}
	}
	return f
}

// TestOrderOfVotes: the order of two votes is that of ZooKeeper.
func TestOrderOfVotes(t *testing.T) {
	rows := readRecorded(t).Predicate
	if len(rows) != 10 {
		t.Errorf("%d rows, want 10", len(rows))
	}
	for _, r := range rows {
		weigh := func(id ensemble.ServerID) int64 {
			if id == r.New.ID {
				return r.WeightOfNew
			}
			return 1
		}
		a := Vote{r.New.ID, r.New.Zxid, r.New.PeerEpoch}
		b := Vote{r.Current.ID, r.Current.Zxid, r.Current.PeerEpoch}
		if got := beats(a, b, weigh); got != r.NewWins {
			t.Errorf("%s beats %s: %v, want %v", a, b, got, r.NewWins)
		}
	}
}

// TestEqualityOfVotes: two ballots count as the same if they do in ZooKeeper, in either
// order.
func TestEqualityOfVotes(t *testing.T) {
	rows := readRecorded(t).VoteEquality
	if len(rows) != 8 {
		t.Errorf("%d rows, want 8", len(rows))
	}
	for _, r := range rows {
		a, b := r.A.ballot(t), r.B.ballot(t)
		if a.agrees(b) != r.Equal || b.agrees(a) != r.Equal {
			t.Errorf("%+v and %+v: %v, %v, want %v (%s)", a, b, a.agrees(b), b.agrees(a), r.Equal, r.Note)
		}
	}
}

func (r recordedVote) ballot(t *testing.T) ballot {
	b := ballot{Vote: Vote{r.Leader, r.Zxid, r.PeerEpoch}, round: r.ElectionEpoch, version: r.Version}
	for s := peerwire.Looking; s <= peerwire.Observing; s++ {
		if s.String() == r.State {
			b.state = s
			return b
		}
	}
	t.Fatalf("state %s", r.State)
	return b
}

// notification decodes a frame.
func notification(text string) (*peerwire.Notification, error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, err
	}
	if b, err = peerwire.ReadElectionFrame(bytes.NewReader(b), nil); err != nil {
		return nil, err
	}
	n := new(peerwire.Notification)
	return n, wire.Decode(b, n)
}

// TestProbesOfALeader: a leader gets the messages that a real leader got, and sends the
// same answers. Messages that cannot be decoded do not reach an Election.
func TestProbesOfALeader(t *testing.T) {
	f := readRecorded(t)
	if len(f.Probes) != 14 {
		t.Errorf("%d probes, want 14", len(f.Probes))
	}
	first, err := notification(f.Probes[0].Hex)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Probes {
		t.Run(strings.TrimPrefix(p.Name, "probe/"), func(t *testing.T) {
			e := inRole(t, 2, first.Config, Decision{State: peerwire.Leading, Vote: Vote{2, 0x100000009, 1}, Round: 2, Ending: Agreed}, 2)
			n, err := notification(p.Hex)
			answered := strings.Contains(p.Expected, "answered") || strings.HasPrefix(p.Expected, "processed")
			if strings.HasPrefix(p.Expected, "DESTROYS") {
				answered = true // ZooKeeper does not count this answer; here it is a vote like any other
			}
			if err != nil {
				if answered {
					t.Fatal(err)
				}
				return
			}
			e.Step(1000, Heard{From: 3, Notification: *n})
			sent := e.Ready().Send
			if !answered {
				if len(sent) != 0 {
					t.Errorf("answered %+v", sent)
				}
				return
			}
			want := e.message(peerwire.Leading, Vote{2, 0x100000009, 2}, 2)
			if len(sent) != 1 || sent[0].To != 3 || sent[0].Notification != want {
				t.Errorf("answered %+v, want %+v", sent, want)
			}
		})
	}
}

// inRole makes a server that has decided. It serves if epoch is not 0.
func inRole(t *testing.T, id ensemble.ServerID, config string, d Decision, epoch wire.Epoch) *Election {
	t.Helper()
	m, err := ensemble.Parse(config)
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{ID: id, Committed: m, IntervalMaxMS: 60_000})
	e.Step(0, Appointed{Leader: d.Vote.Leader, Zxid: d.Vote.Zxid})
	e.takeRole(d)
	e.round = d.Round
	if epoch != 0 {
		e.Step(0, Established{epoch})
	}
	e.Ready()
	return e
}

// replay is a server of a recorded scenario that an Election replaces.
type replay struct {
	scenario  string
	id        ensemble.ServerID
	role      peerwire.ServerState // Looking: it looks for a leader from the start
	round     wire.Epoch           // the round before the recording
	unreached ensemble.ServerID    // a server that was not there to receive the messages
	again     float64              // when the server looks once more; 0: it does not
	// sooner says that the Election decides before ZooKeeper does, which waits again after
	// every message and not only after a better vote. In that case only the last message to
	// servers without a vote is compared.
	sooner bool
	// part of the recording, in ms. Before and after it the server has another role. to
	// is 0 if the part ends with the recording.
	part part
	// decision is the expected decision; empty if the recording ends before it.
	decision string
}

type part struct{ from, to float64 }

var whole part

// has reports whether a message at this time belongs to the part.
func (p part) has(at float64) bool { return at >= p.from && (p.to == 0 || at < p.to) }

var replays = []replay{
	{"s1-start", 1, peerwire.Looking, 0, 0, 0, false, whole, "FOLLOWING 3 round 1"},
	{"s1-start", 2, peerwire.Looking, 0, 0, 0, false, whole, "FOLLOWING 3 round 1"},
	{"s1-start", 3, peerwire.Looking, 0, 0, 0, false, whole, "LEADING 3 round 1"},
	{"s1-start", 4, peerwire.Looking, 0, 0, 0, false, whole, "OBSERVING 3 round 1"},
	{"s3-failover", 1, peerwire.Looking, 1, 3, 0, false, whole, "FOLLOWING 2 round 2"},
	{"s3-failover", 2, peerwire.Looking, 1, 3, 0, false, whole, "LEADING 2 round 2"},
	{"s3-failover", 4, peerwire.Looking, 1, 3, 799, false, whole, "OBSERVING 2 round 2"},
	{"s4-diff", 1, peerwire.Following, 2, 0, 0, false, whole, ""},
	{"s4-diff", 2, peerwire.Leading, 2, 0, 0, false, whole, ""},
	{"s4-diff", 3, peerwire.Looking, 0, 0, 0, false, whole, "FOLLOWING 2 round 2"},
	{"s5-snap", 1, peerwire.Looking, 0, 0, 0, false, whole, "FOLLOWING 2 round 2"},
	{"s5-snap", 2, peerwire.Leading, 2, 0, 0, false, whole, ""},
	{"s5-snap", 3, peerwire.Following, 2, 0, 0, false, whole, ""},
	{"s6-trunc", 1, peerwire.Following, 1, 0, 0, false, whole, ""},
	{"s6-trunc", 2, peerwire.Looking, 0, 0, 0, false, whole, "FOLLOWING 3 round 1"},
	{"s6-trunc", 3, peerwire.Leading, 1, 0, 0, false, whole, ""},
	{"s9-rollover", 1, peerwire.Looking, 1, 0, 0, false, whole, "FOLLOWING 2 round 2"},
	{"s9-rollover", 2, peerwire.Looking, 1, 0, 0, false, whole, "LEADING 2 round 2"},
	{"s9-rollover", 3, peerwire.Leading, 1, 0, 0, false, part{0, 700}, ""},
	{"s9-rollover", 3, peerwire.Looking, 1, 0, 0, false, part{700, 0}, "FOLLOWING 2 round 2"},
	{"s11-disklog", 1, peerwire.Looking, 0, 0, 0, false, whole, "FOLLOWING 3 round 1"},
	{"s11-disklog", 2, peerwire.Following, 1, 0, 0, false, whole, ""},
	{"s11-disklog", 3, peerwire.Leading, 1, 0, 0, false, whole, ""},
	{"s13-observermaster", 1, peerwire.Looking, 0, 0, 0, true, whole, "FOLLOWING 3 round 1"},
	{"s13-observermaster", 2, peerwire.Looking, 0, 0, 0, true, whole, "FOLLOWING 3 round 1"},
	{"s13-observermaster", 3, peerwire.Looking, 0, 0, 0, true, whole, "LEADING 3 round 1"},
	{"s13-observermaster", 4, peerwire.Looking, 0, 0, 0, false, whole, "OBSERVING 3 round 1"},
}

// TestRecordedScenarios: an Election replaces each server of the recordings. It gets the
// messages that the server got, sends the same messages to each of the others in the same
// order, and decides the same. Each recorded notification is given to an Election or
// compared with what one sends.
func TestRecordedScenarios(t *testing.T) {
	f := readRecorded(t)
	seen := map[string]bool{}
	for _, r := range replays {
		t.Run(fmt.Sprintf("%s/%d", r.scenario, r.id), func(t *testing.T) { r.play(t, f, seen) })
	}
	n := 0
	for _, v := range f.Vectors {
		if v.Kind != "NOTIFICATION" {
			continue // the first message of a connection, which internal/peer replays
		}
		if n++; !seen[v.Name] {
			t.Errorf("%s was left out", v.Name)
		}
	}
	if n != 132 {
		t.Errorf("%d notifications, want 132", n)
	}
}

// sentMessages holds the messages that a server sent to each other server, in order.
type sentMessages map[ensemble.ServerID][]string

// add adds a message. While it looks, a Bellwether server sends servers without a vote
// its proposal, and a ZooKeeper server sends the vote of the election before. So only
// state and round of these messages are compared.
func (s sentMessages) add(to ensemble.ServerID, n *peerwire.Notification, votes bool) {
	text := show(n)
	if !votes && n.State == peerwire.Looking {
		text = fmt.Sprintf("%s, round %d", n.State, n.ElectionEpoch)
	}
	if had := s[to]; len(had) == 0 || had[len(had)-1] != text {
		s[to] = append(had, text)
	}
}

// play compares what the Election sends to each server with the recording. A newer
// message may have replaced an older one in the slot of a connection, but the last
// message is always sent.
func (r *replay) play(t *testing.T, f *recordedFile, seen map[string]bool) {
	p := r.begin(t, f)
	for _, v := range f.Vectors {
		if v.Scenario != r.scenario || v.Kind != "NOTIFICATION" || !r.part.has(v.T) {
			continue
		}
		n := mustNotification(t, v.Hex)
		switch r.id {
		case *v.From:
			// A server in a role sends LOOKING only as a resent message.
			if r.role == peerwire.Looking || n.State != peerwire.Looking {
				seen[v.Name] = true
				p.want.add(*v.To, n, p.e.isVoter(*v.To))
			}
		case *v.To:
			seen[v.Name] = true
			p.hear(*v.From, n, v.T)
		}
	}
	p.until(p.e.now + 1000)
	if r.sooner {
		for to := range p.want {
			if !p.e.isVoter(to) {
				p.want[to], p.got[to] = p.want[to][len(p.want[to])-1:], p.got[to][len(p.got[to])-1:]
			}
		}
	}
	if p.decision != r.decision {
		t.Errorf("decided %q, want %q", p.decision, r.decision)
	}
	for to, want := range p.want {
		if got := p.got[to]; !within(want, got) || want[len(want)-1] != got[len(got)-1] {
			t.Errorf("said to %d\n got %q\nwant %q", to, got, want)
		}
	}
	for to, got := range p.got {
		if p.want[to] == nil && to != r.unreached {
			t.Errorf("said to %d, which heard nothing: %q", to, got)
		}
	}
}

// within reports whether want is a subsequence of got.
func within(want, got []string) bool {
	for _, g := range got {
		if len(want) > 0 && want[0] == g {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// player is an Election that plays a server of a recorded scenario.
type player struct {
	*replay
	e         *Election
	want, got sentMessages
	decision  string
	serves    wire.Epoch
}

func mustNotification(t *testing.T, text string) *peerwire.Notification {
	t.Helper()
	n, err := notification(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// begin makes the server from its first own message: its vote, or its role.
func (r *replay) begin(t *testing.T, f *recordedFile) *player {
	p := &player{replay: r, want: sentMessages{}, got: sentMessages{}}
	for _, v := range f.Vectors {
		if v.Scenario != r.scenario || v.Kind != "NOTIFICATION" || *v.From != r.id || !r.part.has(v.T) {
			continue
		}
		n := mustNotification(t, v.Hex)
		if n.State != peerwire.Looking {
			p.serves = n.PeerEpoch
		}
		if p.e == nil && n.State == r.role {
			p.e = r.make(t, n, int64(v.T))
		}
	}
	p.collect()
	return p
}

// make begins at the time of the first own message. Earlier messages of others are heard
// at that time.
func (r *replay) make(t *testing.T, n *peerwire.Notification, now int64) *Election {
	v := voteOf(n)
	if r.role != peerwire.Looking {
		d := Decision{State: r.role, Vote: v, Round: n.ElectionEpoch, Ending: Agreed}
		return inRole(t, r.id, n.Config, d, v.PeerEpoch)
	}
	m, err := ensemble.Parse(n.Config)
	if err != nil {
		t.Fatal(err)
	}
	e := New(Options{ID: r.id, Committed: m, IntervalMaxMS: 60_000})
	e.round = r.round
	e.Step(now, Look{Zxid: n.Zxid, Epoch: n.PeerEpoch, Initialized: true, Why: "recorded"})
	return e
}

// hear passes the Election a message that was received at the time at. Each message counts as the first of a
// connection, so that the Election waits for better votes as ZooKeeper does.
func (p *player) hear(from ensemble.ServerID, n *peerwire.Notification, at float64) {
	now := max(int64(at), p.e.now)
	p.until(now)
	if p.again > 0 && at > p.again {
		p.again = 0
		p.e.Step(now, Look{Why: "nobody there"})
		p.collect()
	}
	p.e.Step(now, Heard{From: from, First: true, Notification: *n})
	p.collect()
}

// until lets time pass.
func (p *player) until(at int64) {
	for now := p.e.now; now <= at; now++ {
		p.e.Step(now, Tick{})
		p.collect()
	}
}

// collect takes messages and decisions. After a decision the server serves.
func (p *player) collect() {
	r := p.e.Ready()
	for _, m := range r.Send {
		p.got.add(m.To, &m.Notification, p.e.isVoter(m.To))
	}
	if d := r.Decision; d != nil {
		p.decision = fmt.Sprintf("%s %d round %d", d.State, d.Vote.Leader, d.Round)
		if p.serves > d.Vote.PeerEpoch {
			p.e.Step(p.e.now, Established{p.serves})
		}
	}
}
