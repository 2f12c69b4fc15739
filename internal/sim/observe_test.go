package sim

import (
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// TestRefusedRequestOfTheNewestConnection checks that a server may close the newest connection of a session because of a refused
// request only if it or its leader is a server of ZooKeeper: then the session may have moved unseen.
func TestRefusedRequestOfTheNewestConnection(t *testing.T) {
	for _, c := range []struct {
		name                       string
		newest                     ensemble.ServerID
		follower, leader, complain bool
	}{
		{"Bellwether's servers", 1, false, false, true},
		{"Bellwether's servers, and the session is at another server", 2, false, false, false},
		{"a follower of ZooKeeper", 1, true, false, false},
		{"a leader of ZooKeeper", 1, false, true, false},
	} {
		s := &Sim{opt: Options{LocalSessions: -1}}
		v, l := &server{sim: s, id: 1, compatible: c.follower}, &server{sim: s, id: 2, compatible: c.leader}
		v.standing.Leader = l.id
		s.servers = []*server{v, l}
		s.attachments = map[wire.SessionID]attachment{7: {server: s.server(c.newest)}}
		v.recordObservation(replica.ForwardRefused{Session: 7})
		if s.ended() != c.complain {
			t.Errorf("%s: complains: %v", c.name, s.ended())
		}
	}
}
