package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// observed starts three voters, 1 to 3, and the observers 4 to last, which learn from followers. The
// function set changes the cluster before the servers start; nil: nothing.
func observed(t *testing.T, last int, set func(*cluster)) *cluster {
	t.Helper()
	var text strings.Builder
	for id := 1; id <= last; id++ {
		role := "participant"
		if id > 3 {
			role = "observer"
		}
		fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d:%s\n", id, 1000+id, 2000+id, role)
	}
	h := emptyCluster(t, true, text.String())
	h.masters = true
	if set != nil {
		set(h)
	}
	for id := 1; id <= last; id++ {
		h.start(h.add(ensemble.ServerID(id)))
	}
	h.run(1500)
	return h
}

// masterOf returns the server from which an observer learns; nil if the observer does not serve.
func (h *cluster) masterOf(o *server) *server {
	st := o.r.Status()
	if !st.Serving || st.Role != peerwire.Observing {
		return nil
	}
	return h.server(st.Master)
}

// codes returns the xids and codes of the replies of a client.
func (c *client) codes() (got []string) {
	for _, o := range c.replies {
		got = append(got, fmt.Sprint(o.Header.Xid, " ", int(o.Header.Err)))
	}
	return got
}

// useObserver does everything that a client can do at an observer: a new session, writes, reads, a sync and a
// ping. Then it moves the session to another server and back.
func useObserver(h *cluster, o, other *server, path string) {
	t := h.t
	t.Helper()
	c, id := h.connect(o, 0)
	if c.session == 0 && !h.local {
		t.Fatalf("observer %d: no session", o.id)
	}
	h.create(o, id, 1, path)
	o.inbox = append(o.inbox, &Request{Conn: id, Xid: 2, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"})})
	h.create(o, id, 3, path)
	o.inbox = append(o.inbox, &Request{Conn: id, Xid: wire.XidPing, Op: wire.OpPing})
	h.run(2500)
	got := c.codes()
	slices.Sort(got)
	if want := []string{"-2 0", "1 0", "2 0", "3 -110"}; !slices.Equal(got, want) {
		t.Errorf("observer %d answered %v, want %v", o.id, got, want)
	}
	if h.local {
		return
	}
	for _, at := range []*server{other, o} {
		again, id := h.connect(at, c.session)
		h.run(300)
		if again.session != c.session || again.closed {
			t.Fatalf("session %v was not resumed at server %d: %+v", c.session, at.id, again)
		}
		if h.create(at, id, 1, path+"x"); at == o {
			at.inbox = append(at.inbox, &Request{Conn: id, Xid: 2, Op: wire.OpCloseSession})
		}
		h.run(300)
		if len(again.replies) == 0 || again.replies[0].Header.Err != wire.OK && at == other {
			t.Errorf("server %d: %v", at.id, again.codes())
		}
	}
	if _, open := h.leader().r.tree.Session(c.session); open {
		t.Errorf("session %v was closed and is open", c.session)
	}
}

// TestObserversLearnFromFollowers: observers connect to followers, evenly, and serve clients there, whichever of
// the servers have the native extensions.
func TestObserversLearnFromFollowers(t *testing.T) {
	for _, compatible := range [][]ensemble.ServerID{{}, {1, 2, 3}, {1}, {3}, {2, 3}, {4, 5}, {1, 4}, {1, 2, 3, 4, 5}} {
		t.Run(fmt.Sprint(compatible), func(t *testing.T) {
			h := observed(t, 5, func(h *cluster) {
				h.compatible = map[ensemble.ServerID]bool{}
				for _, id := range compatible {
					h.compatible[id] = true
				}
			})
			four, five := h.server(4), h.server(5)
			if a, b := h.masterOf(four), h.masterOf(five); a == nil || b == nil || a == b || a == h.leader() || b == h.leader() {
				t.Fatalf("masters: %+v, %+v", four.r.Status(), five.r.Status())
			}
			useObserver(h, four, five, "/a")
			useObserver(h, five, h.masterOf(five), "/b")
			useObserver(h, four, h.masterOf(four), "/c")
			useObserver(h, four, h.leader(), "/d")
			for _, s := range h.servers {
				if got, want := s.r.Applied(), h.leader().r.Applied(); got != want {
					t.Errorf("server %d is at %v, the leader at %v", s.id, got, want)
				}
			}
			if n := len(h.leader().r.Learners()); n != 2 {
				t.Errorf("the leader has %d learners", n)
			}
			if l := h.masterOf(five).r.Learners(); len(l) != 1 || l[0].Server != 5 || !l[0].Observer || !l[0].Synced {
				t.Errorf("observers of a master: %+v", l)
			}
		})
	}
}

// TestObserverChangesItsMaster: an observer whose master dies learns from the next follower. A client whose
// connection has no request in flight keeps it.
func TestObserverChangesItsMaster(t *testing.T) {
	h := observed(t, 4, nil)
	o := h.server(4)
	first := h.masterOf(o)
	idle, conn := h.connect(o, 0)
	h.kill(first)
	h.run(1500)
	second := h.masterOf(o)
	if second == nil || second == first || second == h.leader() {
		t.Fatalf("after the death of master %d: %+v", first.id, o.r.Status())
	}
	h.create(o, conn, 1, "/kept")
	h.run(300)
	if idle.closed || !slices.Equal(idle.codes(), []string{"1 0"}) {
		t.Errorf("closed %v, answers %v", idle.closed, idle.codes())
	}
}

// TestObserverKeepsClientsWhenTheLeaderDies: the clients of an observer behind a follower keep their connections when
// the leader changes, as those of a follower do, and each write takes effect once.
func TestObserverKeepsClientsWhenTheLeaderDies(t *testing.T) {
	h := observed(t, 5, nil)
	o, first := h.server(5), h.leader()
	c, conn := h.connect(o, 0)
	h.create(o, conn, 1, "/a")
	h.batch(o) // the write is on its way to the master
	h.kill(first)
	h.create(o, conn, 2, "/b")
	h.run(2500)
	if m := h.masterOf(o); m == nil || h.leader() == first {
		t.Fatalf("%+v", o.r.Status())
	}
	if c.closed || !slices.Equal(c.codes(), []string{"1 0", "2 0"}) {
		t.Errorf("closed %v, answers %v", c.closed, c.codes())
	}
}

// TestLateRequestOfAFormerMaster: a request that an observer has sent to its former master, and that arrives at
// the leader after the observer has found another master, has no effect: its client may have left the
// connection.
func TestLateRequestOfAFormerMaster(t *testing.T) {
	for _, local := range []bool{false, true} {
		h := observed(t, 4, func(h *cluster) { h.local = local })
		o, leader := h.server(4), h.leader()
		former := h.masterOf(o)
		_, conn := h.connect(o, 0)
		h.run(300)
		h.delay = h.requests(former, leader)
		h.create(o, conn, 1, "/late")
		h.run(10)
		for id, l := range h.links {
			if l.from == o {
				h.breakLink(id)
			}
		}
		h.run(1500)
		if m := h.masterOf(o); m == nil || m == former {
			t.Fatalf("the observer has master %+v", o.r.Status())
		}
		if len(h.delayed) != 1 {
			t.Fatalf("%d requests are late", len(h.delayed))
		}
		h.release()
		h.run(500)
		var stat wire.StatResponse
		if code := leader.r.tree.Exists(anonymousReader{}, "/late", false, &stat); code != wire.ErrNoNode {
			t.Errorf("local %v: a write that came through the former master took effect: %v", local, code)
		}
		if h.masterOf(o) == nil {
			t.Error("the observer does not serve")
		}
	}
}

// requests returns a function for cluster.delay that selects the requests that one server sends to another.
func (h *cluster) requests(from, to *server) func(*server, Event) bool {
	packets := h.packets(from, to)
	return func(at *server, e Event) bool {
		if !packets(at, e) {
			return false
		}
		return e.(Zab).Event.(zab.Received).Packet.Type == peerwire.PacketRequest
	}
}

// TestObserversFallBackToTheLeader: without followers that serve observers, observers learn from the leader, and say why.
func TestObserversFallBackToTheLeader(t *testing.T) {
	h := observed(t, 5, func(h *cluster) { h.masters = false })
	for _, o := range h.servers[3:] {
		o.r.member.opt.ObserverMasters = true
		for id, l := range h.links {
			if l.from == o {
				h.breakLink(id)
			}
		}
	}
	h.run(6000)
	for _, o := range h.servers[3:] {
		if m := h.masterOf(o); m != h.leader() {
			t.Errorf("observer %d: %+v", o.id, o.r.Status())
		}
		if !slices.ContainsFunc(o.seen, func(x Observation) bool { _, ok := x.(NoMaster); return ok }) {
			t.Errorf("observer %d does not say that no follower accepts it", o.id)
		}
	}
}

// TestServingObserverCountsItsAttemptsAnew: an observer that loses its master again and again, but serves in between, always finds
// another follower. It does not put load on the leader.
func TestServingObserverCountsItsAttemptsAnew(t *testing.T) {
	h := observed(t, 4, nil)
	o := h.server(4)
	for i := range 2*masterRounds + 1 { // more attempts than at the two followers before the leader is tried
		for id, l := range h.links {
			if l.from == o {
				h.breakLink(id)
			}
		}
		h.run(1000)
		if m := h.masterOf(o); m == nil || m == h.leader() {
			t.Fatalf("after %d lost links: %+v", i+1, o.r.Status())
		}
	}
}
