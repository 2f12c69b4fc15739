package replica

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// newerThan returns a membership of the same servers with the next version.
func newerThan(m *ensemble.Membership) *ensemble.Membership { return m.WithVersion(m.Version() + 1) }

// TestServerThatCannotLeadIsNotAppointed: a reconfiguration names this server as the next leader while its disk is
// full or does not answer. It takes no role, and without a full disk it looks for a leader at once.
func TestServerThatCannotLeadIsNotAppointed(t *testing.T) {
	for _, c := range []struct {
		what         string
		before       Event
		named, looks bool
	}{
		{"healthy", nil, true, false},
		{"its disk is full", LogFull{}, false, false},
		{"its disk does not answer", DiskStalled{Duty: "fsync of x"}, false, true},
	} {
		_, s := reconfigurable(t)
		r := s[1].r
		if c.before != nil {
			r.Step(r.now, c.before)
		}
		m := r.member
		m.role = peerwire.Looking
		m.learner = nil
		r.appoint(&zab.Reconfigured{Zxid: m.log.Last(), Members: m.opt.Members, Leader: s[1].id})
		r.Ready()
		all := r.Elections()
		last := all[len(all)-1].Decision.Ending
		if (last == election.Named) != c.named || (last == election.Unfinished) != c.looks || (m.leader != nil) != c.named {
			t.Errorf("%s: %v, leads: %v", c.what, last, m.leader != nil)
		}
	}
}

// TestNewerMembershipIsAdopted: a server that looks for a leader counts with a newer membership that another server has
// committed, and writes it to its files, before it joins anybody. An older one changes nothing.
func TestNewerMembershipIsAdopted(t *testing.T) {
	h, s := reconfigurable(t)
	r := s[1].r
	h.kill(s[0])
	h.kill(s[2])
	h.run(100)
	if role := r.Status().Role; role != peerwire.Looking {
		t.Fatal(role)
	}
	known := r.Memberships().Committed
	hear := func(m *ensemble.Membership) Ready {
		r.Step(h.now, Vote{election.Heard{From: s[0].id, Notification: peerwire.Notification{
			State: peerwire.Looking, Leader: s[0].id, ElectionEpoch: 1, Version: peerwire.NotificationConfig, Config: m.String()}}})
		return r.Ready()
	}
	next := newerThan(known)
	rd := hear(next)
	if now := r.Memberships().Committed; now.Version() != next.Version() || rd.Members == nil || rd.Members.Committed.Version() != next.Version() {
		t.Fatalf("version %x after a notification with %x", now.Version(), next.Version())
	}
	if n := len(rd.Duties); n != 1 || rd.Duties[0].Committed == nil || rd.Duties[0].Committed.Committed.Version() != next.Version() {
		t.Errorf("%d duties: %+v", n, rd.Duties)
	}
	if rd := hear(known); r.Memberships().Committed.Version() != next.Version() || len(rd.Duties) > 0 {
		t.Error("an older membership replaces a newer one")
	}
}

// TestFilesAreWrittenAgainAfterARefusal: the disk has refused a duty and skips what was handed out after it, which may have
// been the files of the membership. So they are written once more.
func TestFilesAreWrittenAgainAfterARefusal(t *testing.T) {
	_, s := reconfigurable(t)
	r := s[1].r
	r.Step(r.now, Tick{})
	r.Ready()
	want := r.Memberships().Committed
	r.Step(r.now, Zab{zab.Refused{Zxid: r.member.log.Last(), Generation: r.member.generation, Why: "no space"}})
	var written []*Memberships
	for _, d := range r.Ready().Duties {
		if d.Committed != nil {
			written = append(written, d.Committed)
		}
	}
	if len(written) != 1 || written[0].Committed != want {
		t.Errorf("%d times the files are written: %v", len(written), written)
	}
}

// TestOnlyAProposedMembershipIsSavedAsProposed: a membership that is committed by now gets no file of a proposed one, which
// nobody would remove.
func TestOnlyAProposedMembershipIsSavedAsProposed(t *testing.T) {
	_, s := reconfigurable(t)
	r := s[1].r
	r.Ready()
	committed := r.Memberships().Committed
	for seen, want := range map[*ensemble.Membership]bool{committed: false, newerThan(committed): true} {
		r.duties(&zab.Ready{LastSeen: seen})
		saved := false
		for _, d := range r.Ready().Duties {
			saved = saved || d.Proposed == seen
		}
		if saved != want {
			t.Errorf("version %x while %x is committed: saved as proposed: %v", seen.Version(), committed.Version(), saved)
		}
	}
}

// waiting starts an ensemble whose leader holds a reconfiguration back, because only one server of the new
// membership follows it. The leader is the first server, to which the client is connected.
func waiting(t *testing.T) (*cluster, []*server, *client, ConnID) {
	h, s := reconfigurable(t)
	for _, x := range s {
		h.kill(x)
	}
	for _, x := range s {
		h.start(x)
	}
	h.run(600)
	for i, x := range s {
		if x == h.leader() {
			s[0], s[i] = s[i], s[0]
		}
	}
	c, id := h.ask(s[0], Connect{TimeoutMS: 40_000})
	h.delay = h.packets(s[2], s[0]) // so that server 2 counts as a follower and no longer acknowledges
	h.kill(s[2])
	h.remove(s[0], id, 1, s[1])
	h.create(s[0], id, 2, "/after")
	h.run(10)
	if len(s[0].r.member.postponed) == 0 {
		t.Fatal("no request waits")
	}
	return h, s, c, id
}

// TestWaitingReconfigurationHasADeadline: the answer comes exactly at the deadline, which the next wake-up names.
func TestWaitingReconfigurationHasADeadline(t *testing.T) {
	h, s, c, _ := waiting(t)
	m := s[0].r.member
	by := m.joinBy()
	if len(m.postponed) == 0 || by != m.served+joinMaxMS || s[0].wake > by {
		t.Fatalf("%d requests wait until %d, and the server until %d; it serves since %d", len(m.postponed), by, s[0].wake, m.served)
	}
	h.run(by - 1 - h.now.Mono)
	if got := c.answers(); len(got) > 0 || len(m.postponed) == 0 {
		t.Fatalf("before the deadline: %v", got)
	}
	h.run(50)
	want := fmt.Sprint("[1 ", wire.ErrNewConfigNoQuorum, " 2 ok]")
	if got := fmt.Sprint(c.answers()); got != want || len(m.postponed) > 0 || s[0].r.postponedUntil() != Never {
		t.Errorf("%s, want %s; %d requests wait", got, want, len(m.postponed))
	}
}

// TestWaitingReconfigurationOfAClosedConnection: nothing is carried out for a connection that has ended meanwhile.
func TestWaitingReconfigurationOfAClosedConnection(t *testing.T) {
	h, s, _, id := waiting(t)
	m := s[0].r.member
	last := m.log.Last()
	s[0].inbox = append(s[0].inbox, Disconnected{id})
	h.run(m.joinBy() + 100 - h.now.Mono)
	if now := m.log.Last(); now != last || len(m.postponed) > 0 {
		t.Errorf("%v was proposed after %v; %d requests wait", now, last, len(m.postponed))
	}
	for _, o := range s[0].seen {
		if _, refused := o.(ReconfigRefused); refused {
			t.Error("the request of the closed connection was checked again")
		}
	}
}

// TestWaitingReconfigurationEndsWithTheTerm: no request waits beyond the term of its leader, and it is not carried out in
// the next one by this wait.
func TestWaitingReconfigurationEndsWithTheTerm(t *testing.T) {
	h, s, _, _ := waiting(t)
	m := s[0].r.member
	h.kill(s[1]) // no quorum is connected any more
	h.run(50)
	if st := s[0].r.Status(); st.Serving || len(m.postponed) > 0 || s[0].r.postponedUntil() != Never {
		t.Errorf("%+v, %d requests wait", st, len(m.postponed))
	}
}

// TestWaitingReconfigurationOfALostLink: a learner has forwarded a reconfiguration, which waits. Its link breaks, so its client may have
// left. Nothing of that is carried out later, also if the same observer master passes the observer's requests on again, or if the client
// has another connection to the same server by then.
func TestWaitingReconfigurationOfALostLink(t *testing.T) {
	for _, c := range []struct {
		name     string
		servers  int
		observer bool
		down     ensemble.ServerID
		leaving  string
		lost     bool
		again    bool // the client connects again
	}{
		{"a follower", 5, false, 4, "1,2,3", true, false},
		{"a follower that stays", 5, false, 4, "1,2,3", false, false},
		{"a client that connects again", 5, false, 4, "1,2,3", false, true},
		{"an observer behind a follower", 4, true, 2, "1", true, false},
		{"an observer that stays", 4, true, 2, "1", false, false},
		{"a client of an observer that connects again", 4, true, 2, "1", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, at := memberLines(c.servers), 0
			if c.observer {
				at = c.servers - 1
				lines = strings.Replace(lines, "2004:participant", "2004:observer", 1)
			}
			h := emptyCluster(t, true, lines)
			h.reconfig, h.masters = true, c.observer
			for id := 1; id <= c.servers; id++ {
				h.start(h.add(ensemble.ServerID(id)))
			}
			h.run(1000)
			l, s := h.leader(), h.servers[at]
			master := s.r.Status().Master
			user, conn := h.ask(s, Connect{TimeoutMS: 40_000})
			h.kill(h.server(c.down))
			body := wire.Append(nil, &wire.ReconfigRequest{Leaving: wire.Text(c.leaving), ConfigID: -1})
			s.inbox = append(s.inbox, &Request{Conn: conn, Xid: 1, Op: wire.OpReconfig, Body: body})
			h.create(s, conn, 2, "/after")
			h.run(10)
			m := l.r.member
			if len(m.postponed) != 2 {
				t.Fatalf("%d requests wait", len(m.postponed))
			}
			if c.lost {
				for id, k := range h.links {
					if k.from == s {
						h.breakLink(id)
					}
				}
			}
			if c.again {
				h.connect(s, user.session)
			}
			h.run(m.joinBy() - 1 - h.now.Mono)
			if st := s.r.Status(); !st.Serving || st.Master != master || h.leader() != l {
				t.Fatalf("%+v", st)
			}
			h.run(50)
			refused := l.count(func(o Observation) bool { _, is := o.(ReconfigRefused); return is })
			dropped := c.lost || c.again
			if (refused == 0) != dropped || h.exists("/after") == dropped || len(m.postponed) > 0 {
				t.Errorf("checked again %d times, the write after it took effect: %v, %d requests wait", refused, h.exists("/after"), len(m.postponed))
			}
		})
	}
}

// TestForwardedRequestDuringATransfer: a reconfiguration waits, and the leader begins to transfer leadership. A request that a
// learner forwards now does not wait here too, because this leader can never propose it. It goes to the next leader.
func TestForwardedRequestDuringATransfer(t *testing.T) {
	h, s, _, _ := waiting(t)
	h.release()
	m := s[0].r.member
	_, writer := h.connect(s[0], 0)
	_, changer := h.connect(s[0], 0)
	c, learner := h.connect(s[1], 0)
	h.delay = func(to *server, e Event) bool { return to == s[0] && isAck(e) }
	h.create(s[0], writer, 1, "/outstanding")
	h.remove(s[0], changer, 1, s[1])
	h.run(5)
	s[0].inbox = append(s[0].inbox, TransferLeadership{To: s[1].id})
	h.run(5)
	wait := len(m.postponed)
	h.create(s[1], learner, 1, "/forwarded")
	h.run(5)
	if !s[0].r.transferring() || wait == 0 || len(m.postponed) != wait {
		t.Fatalf("transfers leadership: %v; %d requests wait, before the forwarded one %d", s[0].r.transferring(), len(m.postponed), wait)
	}
	h.release()
	h.run(100)
	if got := fmt.Sprint(c.answers()); h.leader() != s[1] || got != "[1 ok]" {
		t.Errorf("server %d leads, the forwarded request is answered %s", h.leader().id, got)
	}
}
