package server

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// newTestEnsembleOf makes servers with empty disks from the lines of a configuration.
func newTestEnsembleOf(t testing.TB, n int, lines string) *testEnsemble {
	t.Helper()
	g := newTestEnsemble(t, n, 0, false)
	var err error
	if g.members, err = ensemble.Parse(lines); err != nil {
		t.Fatal(err)
	}
	return g
}

// serverLines returns the lines of n servers, each with the addresses that line makes
// from two free ports.
func serverLines(t testing.TB, host string, n int, line func(id, quorum, election int) string) string {
	t.Helper()
	ports := freePortsOf(t, host, 2*n)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "server.%d=%s\n", i+1, line(i+1, ports[2*i], ports[2*i+1]))
	}
	return b.String()
}

// lives starts all servers and checks that they serve, that they serve after the leader
// is lost, and that the old leader joins again.
func (g *testEnsemble) lives() {
	g.t.Helper()
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	for _, m := range g.servers {
		m.connect().create(fmt.Sprintf("/by%d", m.id), "x")
	}
	g.equal()
	old := g.leader()
	g.kill(old)
	g.settled().connect().create("/again", "y")
	g.start(old)
	g.settled()
	g.equal()
	if got := old.connect().data("/again"); got != "y" {
		g.t.Errorf("the former leader has %q", got)
	}
}

// TestEnsembleOverIPv6: Elections and synchronisation work over IPv6 as over IPv4.
func TestEnsembleOverIPv6(t *testing.T) {
	g := newTestEnsembleOf(t, 3, serverLines(t, "::1", 3, func(_, quorum, election int) string {
		return fmt.Sprintf("[::1]:%d:%d:participant", quorum, election)
	}))
	g.change = func(c *config.Config) { c.Client = ensemble.HostPort{Host: "::1"} }
	g.lives()
	for _, m := range g.servers {
		for _, l := range m.Learners() {
			if !m.serves(peerwire.Leading) || l.Server == m.id {
				t.Errorf("server %d has learner %+v", m.id, l)
			}
		}
	}
}

// TestEnsembleWithADeadNetwork: each server has two addresses, one of them on a network
// that does not work. The other address is used for votes and for histories, whichever is
// listed first.
func TestEnsembleWithADeadNetwork(t *testing.T) {
	for name, line := range map[string]string{
		"first": "192.0.2.7:%[1]d:%[2]d|[::1]:%[1]d:%[2]d:participant",
		"last":  "127.0.0.1:%[1]d:%[2]d|192.0.2.7:%[1]d:%[2]d:participant",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := "127.0.0.1"
			if strings.Contains(line, "[::1]") {
				host = "::1"
			}
			g := newTestEnsembleOf(t, 3, serverLines(t, host, 3, func(_, quorum, election int) string {
				return fmt.Sprintf(line, quorum, election)
			}))
			g.change = func(c *config.Config) { c.Ensemble.MultiAddress = true }
			g.lives()
		})
	}
}

// agrees waits until each of the given servers has heard that all others vote for the same
// server, and checks that all of them are still looking, because they are not a quorum.
func (g *testEnsemble) agrees(ids ...ensemble.ServerID) {
	g.t.Helper()
	for _, id := range ids {
		m := g.servers[id-1]
		eventually(g.t, fmt.Sprintf("server %d hears that all others vote for the same", id), func() bool {
			heard := map[ensemble.ServerID]map[ensemble.ServerID]bool{} // by candidate, then by voter
			for _, e := range m.Elections() {
				for _, v := range e.Votes {
					if v.State != peerwire.Looking {
						continue
					}
					if heard[v.Vote.Leader] == nil {
						heard[v.Vote.Leader] = map[ensemble.ServerID]bool{}
					}
					heard[v.Vote.Leader][v.From] = true
				}
			}
			for _, from := range heard {
				if len(from) == len(ids)-1 {
					return true
				}
			}
			return false
		})
	}
	for _, id := range ids {
		if st := g.servers[id-1].ReplicaStatus(); st.Role != peerwire.Looking || st.Serving {
			g.t.Errorf("server %d: %+v", id, st)
		}
	}
}

// TestWeightsDecide: server 1 has more weight than the two others together, so it can
// serve without them and they cannot serve without it.
func TestWeightsDecide(t *testing.T) {
	g := newTestEnsembleOf(t, 3, serverLines(t, "127.0.0.1", 3, func(_, quorum, election int) string {
		return fmt.Sprintf("127.0.0.1:%d:%d:participant", quorum, election)
	})+"group.1=1:2:3\nweight.1=3\nweight.2=1\nweight.3=1\n")
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	heavy, light := g.servers[0], g.servers[1:]
	for _, m := range light {
		g.stopped(m)
	}
	g.settled()
	heavy.connect().create("/alone", "1")
	g.stopped(heavy)
	for _, m := range light {
		g.start(m)
	}
	g.agrees(2, 3)
	g.start(heavy)
	g.settled()
	if got := light[0].connect().data("/alone"); got != "1" {
		t.Errorf("what the heavy server wrote without the others: %q", got)
	}
	g.equal()
}

// TestGroupsDecide: of three groups two are needed for a quorum, each with its majority.
// Five of nine servers can lack a quorum, and four can have one.
func TestGroupsDecide(t *testing.T) {
	g := newTestEnsembleOf(t, 9, serverLines(t, "127.0.0.1", 9, func(_, quorum, election int) string {
		return fmt.Sprintf("127.0.0.1:%d:%d:participant", quorum, election)
	})+"group.1=1:2:3\ngroup.2=4:5:6\ngroup.3=7:8:9\n")
	for _, id := range []int{1, 2, 3, 4, 7} {
		g.start(g.servers[id-1])
	}
	g.agrees(1, 2, 3, 4, 7)
	g.stopped(g.servers[2])
	g.stopped(g.servers[6])
	g.start(g.servers[4])
	g.settled().connect().create("/four", "x") // 1 2 and 4 5
	g.equal()
}

// TestWeightZeroNeverLeads: a server with weight 0 votes for others and does not lead,
// although its id is the highest.
func TestWeightZeroNeverLeads(t *testing.T) {
	g := newTestEnsembleOf(t, 3, serverLines(t, "127.0.0.1", 3, func(_, quorum, election int) string {
		return fmt.Sprintf("127.0.0.1:%d:%d:participant", quorum, election)
	})+"group.1=1:2:3\nweight.1=1\nweight.2=1\nweight.3=0\n")
	for _, m := range g.servers {
		g.start(m)
	}
	if l := g.settled(); l.id == 3 {
		t.Error("server 3 leads with weight 0")
	}
	g.servers[2].connect().create("/by3", "x")
	g.equal()
}
