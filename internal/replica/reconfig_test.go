package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// reconfigurable starts an ensemble of three whose membership can change. The leader comes first.
func reconfigurable(t *testing.T) (*cluster, []*server) {
	t.Helper()
	h, order := leaderFirst(t, true)
	h.reconfig = true
	for _, s := range order {
		h.kill(s)
	}
	for _, s := range order {
		h.start(s)
	}
	h.run(1000)
	l := h.leader()
	for i, s := range order {
		if s == l {
			order[0], order[i] = order[i], order[0]
		}
	}
	return h, order
}

// remove asks for a membership without a server.
func (h *cluster) remove(at *server, conn ConnID, xid int32, gone *server) {
	body := wire.Append(nil, &wire.ReconfigRequest{Leaving: wire.Text(fmt.Sprint(gone.id)), ConfigID: -1})
	at.inbox = append(at.inbox, &Request{Conn: conn, Xid: xid, Op: wire.OpReconfig, Body: body})
}

// answers returns the xids and error codes of the replies to a client.
func (c *client) answers() (all []string) {
	for _, o := range c.replies {
		all = append(all, fmt.Sprint(o.Header.Xid, " ", o.Header.Err))
	}
	return all
}

// TestReconfigurationWaitsForFollowers: clients of the leader, of the next leader and of a
// follower ask to remove the leader, one after the other. The leader transfers leadership first. The next leader
// has a quorum before the other server of the new membership follows it. The request is answered
// when that server does, and what its session requests afterwards is answered after it.
// Other sessions do not wait.
func TestReconfigurationWaitsForFollowers(t *testing.T) {
	for at, name := range []string{"a client of the leader", "a client of the next leader"} {
		t.Run(name, func(t *testing.T) {
			h, s := reconfigurable(t)
			c, id := h.connect(s[at], 0)
			other, otherID := h.connect(s[at], 0)
			next := s[1]
			if s[2].id < s[1].id {
				t.Fatal("the next leader would be another server")
			}
			h.delay = h.packets(s[2], next)
			h.remove(s[at], id, 1, s[0])
			h.create(s[at], id, 2, "/after")
			h.create(s[at], id, 3, "/after/that")
			h.create(s[at], otherID, 1, "/meanwhile")
			h.run(1000)
			if l := h.leader(); l != next {
				t.Fatalf("server %d leads", l.id)
			}
			if got := fmt.Sprint(c.answers(), other.answers()); got != "[] [1 ok]" {
				t.Fatal(got)
			}
			if slices.ContainsFunc(s[0].seen, func(o Observation) bool { _, is := o.(Reconfigures); return is }) {
				t.Error("the leader that transfers leadership proposes its own removal")
			}
			h.release()
			h.run(1000)
			if got := fmt.Sprint(c.answers()); got != "[1 ok 2 ok 3 ok]" {
				t.Error(got)
			}
			if got := h.leader().r.Memberships().Committed.Voters(); fmt.Sprint(got) != fmt.Sprint([]any{next.id, s[2].id}) {
				t.Error(got)
			}
		})
	}
}

// TestReconfigurationWaitsOnlyForAWhile: too few servers of the new membership follow the
// leader. Soon after its term began the answer waits, and then it is a refusal. Later the refusal comes at once.
func TestReconfigurationWaitsOnlyForAWhile(t *testing.T) {
	h, s := reconfigurable(t)
	c, id := h.ask(s[0], Connect{TimeoutMS: 40_000}) // outlives the wait
	h.kill(s[2])
	h.remove(s[0], id, 1, s[1])
	h.create(s[0], id, 2, "/after")
	h.run(100)
	if got := c.answers(); len(got) != 0 {
		t.Fatal(got)
	}
	h.run(10_000)
	want := fmt.Sprint("1 ", wire.ErrNewConfigNoQuorum)
	if got := fmt.Sprint(c.answers()); got != "["+want+" 2 ok]" {
		t.Error(got)
	}
	again, id := h.connect(s[0], 0)
	h.remove(s[0], id, 1, s[1])
	h.run(10)
	if got := fmt.Sprint(again.answers()); got != "["+want+"]" {
		t.Error(got)
	}
}

// TestReconfigurationInProgress: a change is refused while another one is not committed, and accepted
// afterwards.
func TestReconfigurationInProgress(t *testing.T) {
	h, s := reconfigurable(t)
	c, id := h.connect(s[0], 0)
	other, otherID := h.connect(s[0], 0)
	h.delay = func(to *server, e Event) bool { return to == s[0] && isAck(e) }
	h.remove(s[0], id, 1, s[1])
	h.run(20)
	h.remove(s[0], otherID, 1, s[1])
	h.run(20)
	h.release()
	h.run(100)
	want := fmt.Sprint("[1 ok] [1 ", wire.ErrReconfigInProgress, "]")
	if got := fmt.Sprint(c.answers(), " ", other.answers()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	h.remove(s[0], otherID, 2, s[1])
	h.run(100)
	if got := other.answers(); got[len(got)-1] != "2 ok" {
		t.Error(got)
	}
}

// TestRemovedLeaderWithoutKeptClients: if connections end with the leader's term, no request can be held. The leader
// commits the change that removes it, and names the next leader, which leads without an election.
func TestRemovedLeaderWithoutKeptClients(t *testing.T) {
	h, s := reconfigurable(t)
	for _, x := range s {
		x.r.member.opt.KeepClients = false
	}
	epoch := s[0].r.Status().Epoch
	c, id := h.connect(s[0], 0)
	h.remove(s[0], id, 1, s[0])
	h.run(1000)
	l := h.leader()
	if now := l.r.Memberships().Committed; l == s[0] || wire.Zxid(now.Version()).Epoch() != epoch || len(now.Voters()) != 2 {
		t.Errorf("server %d leads, membership %x %v", l.id, now.Version(), now.Voters())
	}
	if !c.closed {
		t.Error("the connection was kept")
	}
	all := l.r.Elections()
	if last := all[len(all)-1]; last.Decision.Ending != election.Named {
		t.Error(last.String())
	}
}

// TestNobodyCanTakeOver: the other servers have just become too silent to take over when a request asks to remove the leader.
// No transfer begins, so that this leader carries the request out itself, and the client gets its answers.
func TestNobodyCanTakeOver(t *testing.T) {
	h, s := reconfigurable(t)
	c, id := h.connect(s[0], 0)
	h.now.Mono += s[0].r.member.leader.LeaseMS() + 1
	h.remove(s[0], id, 1, s[0])
	h.create(s[0], id, 2, "/after")
	h.run(1000)
	if got := fmt.Sprint(c.answers()); h.leader() == s[0] || got != "[1 ok 2 ok]" {
		t.Errorf("server %d leads, answers %s", h.leader().id, got)
	}
}

// TestVoterBecomesObserver: a server takes the role that a change gives to it, without an election.
func TestVoterBecomesObserver(t *testing.T) {
	h, s := reconfigurable(t)
	c, id := h.connect(s[0], 0)
	line, _ := h.members.Server(s[2].id)
	text := strings.Replace(line.Line(), ":participant", ":observer", 1) + ";9"
	body := wire.Append(nil, &wire.ReconfigRequest{Joining: wire.Text(text), ConfigID: -1})
	s[0].inbox = append(s[0].inbox, &Request{Conn: id, Xid: 1, Op: wire.OpReconfig, Body: body})
	h.run(200)
	if got := fmt.Sprint(c.answers()); got != "[1 ok]" {
		t.Fatal(got)
	}
	all := s[2].r.Elections()
	if st := s[2].r.Status(); st.Role != peerwire.Observing || !st.Serving || all[len(all)-1].Decision.Ending != election.Named {
		t.Errorf("%+v after %s", st, all[len(all)-1].String())
	}
}

// TestElectionFollowsTheMembership: a server that was removed does not help to elect a leader.
func TestElectionFollowsTheMembership(t *testing.T) {
	h, s := reconfigurable(t)
	c, id := h.connect(s[0], 0)
	h.remove(s[0], id, 1, s[1])
	h.run(200)
	if got := fmt.Sprint(c.answers()); got != "[1 ok]" {
		t.Fatal(got)
	}
	h.kill(s[0])
	for range 100 {
		h.run(50)
		for _, x := range s[1:] {
			if role := x.r.Status().Role; role != peerwire.Looking {
				t.Fatalf("server %d is %v without a quorum of the new membership", x.id, role)
			}
		}
	}
}
