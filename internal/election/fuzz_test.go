package election

import (
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// FuzzHeard gives a server any decodable notifications, from any server, while time
// passes. The server does not fail, sends little, and still completes its election when
// the others behave correctly again.
func FuzzHeard(f *testing.F) {
	e := alone(3, 1)
	for _, n := range []peerwire.Notification{
		says(e, peerwire.Looking, Vote{3, 0x100000001, 1}, 1), says(e, peerwire.Leading, Vote{2, 0x100000001, 1}, 7),
		says(e, peerwire.Following, Vote{1, 0x100000001, 1}, 1), says(e, peerwire.Looking, noVote, 1),
		{Version: peerwire.NotificationBare}, {Version: peerwire.NotificationPlain, Leader: 1, Zxid: 0x7fffffffffffffff},
	} {
		for from := range byte(5) {
			f.Add([]byte{from, 3}, wire.Append(nil, &n), wire.Append(nil, &n))
		}
	}
	f.Fuzz(func(t *testing.T, script, a, b []byte) {
		e := New(Options{ID: 1, Committed: plain(0, 3)})
		e.Step(0, Look{Zxid: 0x100000001, Epoch: 1, Why: "started"})
		now := int64(0)
		for i, s := range script {
			var n peerwire.Notification
			if wire.Decode([][]byte{a, b}[i%2], &n) != nil {
				return
			}
			now += int64(s >> 3)
			e.Step(now, Heard{From: ensemble.ServerID(s & 7), First: s&8 != 0, Notification: n})
			e.Step(now, Tick{})
			r := e.Ready()
			if len(r.Send) > 4 { // to the two other voters, and to servers without a vote that asked
				t.Fatalf("sent %d messages", len(r.Send))
			}
			if r.GiveUp != "" {
				e.Step(now, Look{Zxid: 0x100000001, Epoch: 1, Why: r.GiveUp})
			}
		}
		mustEnd(t, e, now)
		for _, r := range e.Records() {
			if r.String() == "" || r.Explain() == "" {
				t.Fatal("a record without words")
			}
		}
	})
}

// mustEnd makes the two other servers vote for the better of the two, in the round of the
// server under test.
func mustEnd(t *testing.T, e *Election, now int64) {
	if e.State().Role != peerwire.Looking {
		e.Step(now, Look{Zxid: 0x100000001, Epoch: 1, Why: "again"})
	}
	round := e.State().Round
	e.Step(now, Heard{From: 2, Notification: says(e, peerwire.Following, Vote{3, 0x1000000ff, 1}, round)})
	e.Step(now, Heard{From: 3, Notification: says(e, peerwire.Leading, Vote{3, 0x1000000ff, 1}, round)})
	if st := e.State(); st.Role != peerwire.Following || st.Vote.Leader != 3 {
		t.Fatalf("%+v, want FOLLOWING 3", st)
	}
}
