package zab

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
)

// TestRecordedObserverMaster plays a follower of ZooKeeper that served an observer: it gives this follower what the
// leader and the observer of the recording sent, in their order. The observer must get the bytes that it got from the recorded
// follower, and the leader the same requests, except for the origin. An empty observer gets a
// snapshot here, as from a leader, and an empty DIFF from ZooKeeper's follower. Pings are left out: each kind of follower sends them at times of its own.
func TestRecordedObserverMaster(t *testing.T) {
	const leader, observer = "60856>23223", "56342>om23250"
	all := of(recordings(t, "s13-observermaster"), leader, observer)
	r := NewLearner(0, LearnerOptions{
		TermStart: TermStart{ID: 1, Committed: recordedConfiguration(t, "s13-observermaster", "0"), TickMS: 2000, InitLimit: 10, SyncLimit: 5},
		Link:      1, Leader: 3, Master: 3, Reconfig: true, CompatibleOnly: true, ServeObservers: true,
	}, NewLog(0, 0))
	var got, want, forwarded, forwards []string
	take := func() {
		for range 4 { // a duty is answered at once and may lead to the next one
			rd := r.Ready()
			for _, m := range rd.Send {
				switch {
				case m.Packet.Type == peerwire.PacketPing:
				case m.Link == 2:
					got = append(got, encoded(m.Packet))
				case m.Packet.Type == peerwire.PacketRequest:
					if o, ok := peerwire.OriginOf(m.Packet.Zxid); !ok || o != (peerwire.Origin{Server: 4}) {
						t.Errorf("the request has the origin %+v", o)
					}
					m.Packet.Zxid = -1
					forwards = append(forwards, encoded(m.Packet))
				}
			}
			r.Step(0, Saved{Accepted: rd.SaveAccepted, Current: rd.SaveCurrent, Generation: rd.Generation})
			r.Step(0, Synced{Zxid: r.log.Last(), Generation: rd.Generation})
		}
	}
	for _, p := range all {
		toHere := *p.To == 1
		switch {
		case p.Conn == leader && toHere:
			r.Step(0, Received{1, p.packet})
		case p.Conn == observer && toHere:
			if p.packet.Type == peerwire.PacketObserverInfo {
				r.Step(0, Opened{2})
			}
			r.Step(0, Received{2, p.packet})
		case p.packet.Type == peerwire.PacketPing:
		case p.Conn == observer:
			want = append(want, encoded(p.packet))
		case p.packet.Type == peerwire.PacketRequest:
			forwarded = append(forwarded, encoded(p.packet))
		}
		take()
	}
	if len(want) < 8 || len(got) != len(want) || !strings.HasPrefix(got[1], "SNAP") || !strings.HasPrefix(want[1], "DIFF") {
		t.Fatalf("the observer got\n%s\nrecorded\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	got, want = slices.Delete(got, 1, 2), slices.Delete(want, 1, 2)
	if !slices.Equal(got, want) {
		t.Errorf("the observer got\n%s\nrecorded\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(forwarded) < 4 || !slices.Equal(forwards, forwarded) {
		t.Errorf("the leader got\n%s\nrecorded\n%s", strings.Join(forwards, "\n"), strings.Join(forwarded, "\n"))
	}
}
