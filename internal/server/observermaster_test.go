package server

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/secure"
	"bellwether/internal/store"
	"bellwether/wire"
)

// newObserverEnsemble makes three voters and observers that learn from followers. Each server has an address of its own, because
// all servers have the same observer master port.
func newObserverEnsemble(t testing.TB, observers int) *testEnsemble {
	t.Helper()
	ports := freePorts(t, 3)
	var text bytes.Buffer
	g := &testEnsemble{t: t}
	for i := range 3 + observers {
		role := "participant"
		if i >= 3 {
			role = "observer"
		}
		fmt.Fprintf(&text, "server.%d=127.0.0.%d:%d:%d:%s\n", i+1, i+1, ports[0], ports[1], role)
		g.servers = append(g.servers, &testServer{id: ensemble.ServerID(i + 1), dir: "data", down: true, fs: store.NewMem(uint64(i + 1))})
	}
	var err error
	if g.members, err = ensemble.Parse(text.String()); err != nil {
		t.Fatal(err)
	}
	g.change = func(c *config.Config) { c.Ensemble.ObserverMasterPort = ports[2] }
	return g
}

// mastersChosen waits until every running observer learns from a follower that runs, and returns the master of each by
// the observer's id.
func (g *testEnsemble) mastersChosen() map[ensemble.ServerID]*testServer {
	g.t.Helper()
	masters := map[ensemble.ServerID]*testServer{}
	eventually(g.t, "every observer has a master that runs", func() bool {
		g.settled()
		for _, m := range g.servers[3:] {
			if m.down {
				continue
			}
			st := m.ReplicaStatus()
			if st.Master == peerwire.NoServer || g.servers[st.Master-1].down { // it may not know yet that its master has ended
				return false
			}
			masters[m.id] = g.servers[st.Master-1]
		}
		return true
	})
	for id, m := range masters {
		if m == g.leader() {
			g.t.Fatalf("observer %d learns from the leader", id)
		}
	}
	return masters
}

// TestObserversOfFollowers: observers connect to followers and not to the leader, with and without TLS and SASL between servers. Their
// clients write, see all writes after a sync, and keep their sessions when the master or the leader dies.
func TestObserversOfFollowers(t *testing.T) {
	for _, secured := range []bool{false, true} {
		t.Run(fmt.Sprint("secured ", secured), func(t *testing.T) {
			g := newObserverEnsemble(t, 4)
			if secured {
				port, certs := g.change, newCerts(t).settings(secure.Servers, "hostnameVerification=false")
				g.change = func(c *config.Config) {
					port(c)
					c.TLS = config.TLS{Quorum: true, Servers: certs}
					c.SASL.Quorum = digestLogins(peerPassword)
				}
			}
			for _, m := range g.servers {
				g.start(m)
			}
			masters := g.mastersChosen()
			l := g.leader()
			for _, f := range g.servers[:3] {
				want := 0
				for _, master := range masters {
					if master == f {
						want++
					}
				}
				if got := f.figure("synced_observers"); got != float64(want) {
					t.Errorf("server %d has %v observers, want %d", f.id, got, want)
				}
			}
			if got := l.figure("learners"); got != 2 {
				t.Errorf("the leader has %v learners", got)
			}
			var clients []*client
			for _, o := range g.servers[3:] {
				if got := o.figure("observer_master_id"); got != float64(masters[o.id].id) {
					t.Errorf("observer %d names %v as its master", o.id, got)
				}
				c := o.connect()
				c.create(fmt.Sprintf("/by%d", o.id), "x")
				clients = append(clients, c)
			}
			reader := clients[0]
			l.connect().create("/new", "y")
			reader.call(wire.OpSync, &wire.PathRequest{Path: "/"}, nil)
			if got := reader.data("/new"); got != "y" {
				t.Errorf("after a sync: %q", got)
			}
			g.equal()
			gone := masters[4]
			g.kill(gone)
			if now := g.mastersChosen(); now[4] == gone || now[5] == gone {
				t.Errorf("masters %v", now)
			}
			for i, c := range clients {
				if got := c.data("/new"); got != "y" {
					t.Errorf("client %d after the change of masters: %q", i, got)
				}
			}
			g.start(gone)
			g.settled()
			g.kill(g.leader())
			g.settled()
			for i, c := range clients {
				c.create(fmt.Sprintf("/after%d", i), "z")
			}
			g.equal()
		})
	}
}

// TestSlowObserverIsCutOff: an observer that does not read what its master sends is disconnected when more than
// observerMaster.sizeLimit bytes wait for it. The log says so. Writes go on meanwhile.
func TestSlowObserverIsCutOff(t *testing.T) {
	g := newObserverEnsemble(t, 1)
	book := &logBook{}
	port := g.change
	g.book, g.change = book, func(c *config.Config) {
		port(c)
		c.Ensemble.ObserverQueueMax = 4 << 20
	}
	g.servers = g.servers[:3]
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	f := g.follower()
	c := l.connect()
	c.create("/large", "")
	g.equal()
	o := stuckObserver(t, g, f)
	defer o.Close()
	eventually(t, "the observer is synchronised", func() bool { return f.figure("synced_observers") == 1 })
	data := bytes.Repeat([]byte("x"), 512<<10)
	eventually(t, "the observer is cut off", func() bool {
		c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/large", Data: data, Version: -1}, nil)
		return f.figure("synced_observers") == 0
	})
	if want := "it does not keep up"; !strings.Contains(book.String(), want) {
		t.Errorf("the log does not say %q", want)
	}
	g.equal()
}

// stuckObserver connects to a follower as observer 4, lets the follower synchronise it, and then reads nothing more.
func stuckObserver(t *testing.T, g *testEnsemble, f *testServer) net.Conn {
	t.Helper()
	self, _ := g.members.Server(f.id)
	address := ensemble.HostPort{Host: self.Addresses[0].Host, Port: f.config().Ensemble.ObserverMasterPort}.String()
	var conn net.Conn
	eventually(t, "the observer master port is open", func() (ok bool) {
		var err error
		conn, err = net.Dial("tcp", address)
		return err == nil
	})
	send := func(p *peerwire.QuorumPacket) {
		if _, err := conn.Write(wire.Append(nil, p)); err != nil {
			t.Fatal(err)
		}
	}
	r := bufio.NewReader(conn)
	await := func(kind peerwire.PacketType) *peerwire.QuorumPacket {
		p := new(peerwire.QuorumPacket)
		for p.Type != kind {
			if err := peerwire.ReadPacket(r, p, peerwire.PacketMax); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	send(&peerwire.QuorumPacket{Type: peerwire.PacketObserverInfo, Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 4, Version: peerwire.QuorumVersion})})
	epoch := await(peerwire.PacketLeaderInfo).Zxid
	send(&peerwire.QuorumPacket{Type: peerwire.PacketAckEpoch, Zxid: f.Tree().LastZxid(), Data: wire.Append(nil, &peerwire.EpochAck{})})
	await(peerwire.PacketNewLeader)
	send(&peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: epoch})
	await(peerwire.PacketUpToDate)
	return conn
}
