package server

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/store"
	"bellwether/wire"
)

// throw sends bytes to a port, then waits until the other side has closed the connection
// or read all of them.
func throw(t *testing.T, address string, b []byte, closes bool) {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(eventTimeout))
	nc.Write(b)
	if closes {
		if _, err := io.Copy(io.Discard, nc); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%x: %v", b[:min(len(b), 20)], err)
		}
		return
	}
	nc.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, nc)
}

// packet returns a packet between leader and learner.
func packet(kind peerwire.PacketType, z wire.Zxid, data wire.Record) []byte {
	p := &peerwire.QuorumPacket{Type: kind, Zxid: z}
	if data != nil {
		p.Data = wire.Append(nil, data)
	}
	return wire.Append(nil, p)
}

// TestBadInputFromServers: bad input on the ports of an ensemble, from unknown programs
// or faulty servers, is logged once with the sender's address and closes the connection.
// The term continues: no server looks for a leader again, and each serves its clients.
func TestBadInputFromServers(t *testing.T) {
	book := new(logBook)
	g := newTestEnsemble(t, 3, 0, false)
	g.book = book
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	looked := map[*testServer]float64{}
	for _, m := range g.servers {
		looked[m] = m.figure("looking_count")
	}
	self, _ := g.members.Server(l.id)
	election, quorum := self.Addresses[0].Election(), self.Addresses[0].Quorum()
	other := l.id%3 + 1

	greeting := func(id ensemble.ServerID) []byte {
		return wire.Append(nil, &peerwire.InitialMessage{Version: peerwire.InitialMany, Server: id, Addresses: []string{"127.0.0.1:9"}})
	}
	vote := wire.AppendFrame(nil, &peerwire.Notification{Leader: 77, Zxid: 1 << 40, ElectionEpoch: 1, PeerEpoch: 200, Version: peerwire.NotificationConfig})
	unknown := wire.AppendFrame(nil, &peerwire.Notification{State: 9, Leader: 77, Version: peerwire.NotificationConfig})
	hello := func(id ensemble.ServerID, accepted wire.Zxid) []byte {
		return packet(peerwire.PacketFollowerInfo, accepted, &peerwire.LearnerInfo{Server: id, Version: peerwire.QuorumVersion})
	}
	epoch := l.ReplicaStatus().Epoch
	zero := wire.MakeZxid(epoch, 0)
	promise := func(last wire.Zxid) []byte {
		return packet(peerwire.PacketAckEpoch, last, &peerwire.EpochAck{CurrentEpoch: 1})
	}
	oversize := wire.Append(nil, &peerwire.QuorumPacket{Type: peerwire.PacketFollowerInfo})[:12]
	oversize = append(oversize, 0x40, 0, 0, 0)
	for range 3 {
		for _, c := range []struct {
			to     string
			bytes  []byte
			closes bool
		}{
			{election, []byte("GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 400)), true},
			{election, greeting(-7), true},
			{election, greeting(l.id), true},
			{election, greeting(77)[:10], false},
			{election, append(greeting(77), vote...), false},
			{election, append(greeting(78), vote[:20]...), false},
			{election, append(greeting(79), 0x40, 0, 0, 0), true},
			{election, append(greeting(80), 0xff, 0xff, 0xff, 0xff), true},
			{election, append(greeting(81), unknown...), false},
			{election, wire.Append(nil, &peerwire.InitialMessage{Version: -65530, Server: 82, Addresses: []string{"127.0.0.1:9"}}), true},
			{quorum, []byte("GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 400)), true},
			{quorum, oversize, true},
			{quorum, hello(l.id, 0), true},
			{quorum, hello(other, wire.MakeZxid(1<<30, 0)), true},
			{quorum, hello(other, 0)[:9], false},
			{quorum, wire.Append(nil, &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: 5}), true},
			{quorum, packet(peerwire.PacketFollowerInfo, 0, &peerwire.LearnerInfo{Server: other, Version: 0x999}), true},
			{quorum, append(hello(90, 0), promise(wire.MakeZxid(epoch+5, 1))...), true},
			{quorum, slices.Concat(hello(91, 0), promise(0), packet(peerwire.PacketAck, zero, nil), packet(peerwire.PacketAck, zero+1<<20, nil)), true},
		} {
			throw(t, c.to, c.bytes, c.closes)
		}
	}
	for _, m := range g.servers {
		m.connect().create(fmt.Sprintf("/by%d", m.id), "x")
	}
	g.equal()
	for _, m := range g.servers {
		if n := m.figure("looking_count"); n != looked[m] {
			t.Errorf("server %d has looked for a leader again", m.id)
		}
	}
	for what, times := range map[string]int{
		"did not begin with a server's id": 1, "an invalid server id": 1, "has this server's id": 1,
		"takes part without a vote": 5, "refuses server 77": 1, "a notification was cut off": 1,
		"sent bytes that are not a notification": 1, "a notification cannot be decoded": 1,
		"sent bytes that are not a packet": 1, "claims this server's id": 1, "too far ahead of": 1, "before anything was sent to it": 1,
		"speaks version 0x999": 1, fmt.Sprintf("which epoch %d cannot follow", epoch): 1, "which was never proposed": 1,
	} {
		line := regexp.MustCompile(`level=WARN msg="[^"]*` + what + `[^"]*" server=` + fmt.Sprint(l.id) + ` peer=127\.0\.0\.1:\d+`)
		if n := len(line.FindAllString(book.String(), -1)); n != times && times == 1 || n == 0 {
			t.Errorf("%q is logged %d times with the peer's address, want %d", what, n, times)
		}
	}
}

// TestLongRequests: with a large jute.maxbuffer the servers take each other's packets. If they did
// not, no leader could serve after a write of more than 4 MB.
func TestLongRequests(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, true)
	g.change = func(c *config.Config) { c.Limits.FrameBytes = 8 << 20 }
	for _, m := range g.servers {
		g.start(m)
	}
	data := strings.Repeat("x", 6<<20)
	// On a busy machine the long write may end the term, and with it the connection.
	write := func(path string, at func() *testServer) {
		for {
			g.settled()
			err := at().connect().try(wire.OpCreate, create(path, data), &wire.PathResponse{})
			if err == nil || err == wire.ErrNodeExists {
				return
			}
			t.Log("again: ", err)
		}
	}
	write("/leader", g.settled)
	write("/follower", g.follower)
	g.equal()
}

// TestTwoServersWithOneID: a second process with the id of a follower, on another
// machine, starts and stops. The servers log that and refuse it. The other two serve
// all the time, and all three serve when the second process is gone.
func TestTwoServersWithOneID(t *testing.T) {
	book := new(logBook)
	g := newTestEnsemble(t, 3, 0, false)
	g.book = book
	for _, m := range g.servers {
		g.start(m)
	}
	l, f := g.settled(), g.follower()
	c := l.connect()
	c.create("/before", "x")

	// The other machine has the same myid, and its own ports in its own zoo.cfg.
	twin := newTestEnsemble(t, 3, 0, false)
	twin.book = book
	ports := freePorts(t, 2)
	var lines []string
	for _, s := range g.members.Servers() {
		a := s.Addresses[0]
		if s.ID == f.id {
			a.QuorumPort, a.ElectionPort = ports[0], ports[1]
		}
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d:participant", s.ID, a.QuorumPort, a.ElectionPort))
	}
	var err error
	if twin.members, err = ensemble.Parse(strings.Join(lines, "\n")); err != nil {
		t.Fatal(err)
	}
	double := twin.servers[f.id-1]
	twin.start(double)
	told := regexp.MustCompile(`two servers have this myid|use the same server id`)
	for n := 0; !told.MatchString(book.String()); n++ {
		c.create(fmt.Sprintf("/meanwhile%d", n), "x")
		if n > 100_000 {
			t.Fatal("no server logs that two servers have this id")
		}
	}
	eventually(t, "the other is turned away", func() bool { return strings.Contains(book.String(), "two servers have this myid") })
	twin.kill(double)
	g.settled()
	g.equal()
	if !l.serves(peerwire.Leading) {
		t.Error("the leader was lost")
	}
	told = regexp.MustCompile(`msg="([^"]*(two servers have this myid|use the same server id)[^"]*)" server=(\d) peer=127\.0\.0\.1:\d+`)
	lines = lines[:0]
	for _, m := range told.FindAllStringSubmatch(book.String(), -1) {
		if said := m[3] + " says: " + m[1]; slices.Contains(lines, said) {
			t.Errorf("logged twice: %s", said)
		} else {
			lines = append(lines, said)
		}
	}
	if len(lines) == 0 {
		t.Error("no log entry has the address of the other server")
	}
}

// TestEmptyDiskElectsNobody: a server that has lost its disk votes for no server until it
// is synchronised, even if its id is the highest. The others elect one of themselves,
// nothing is lost, and it joins. It logs once from which server it has heard of a
// history.
func TestEmptyDiskElectsNobody(t *testing.T) {
	book := new(logBook)
	g := startTestEnsemble(t, 3, 0, false)
	g.settled().connect().create("/kept", "x")
	g.equal()
	want, _ := g.leader().Tree().Digest()
	for _, m := range g.servers {
		g.kill(m)
	}
	g.book = book
	lost := g.servers[2]
	lost.fs = store.NewMem(77)
	g.start(lost)
	for _, m := range g.servers[:2] {
		g.start(m)
	}
	l := g.settled()
	if l == lost {
		t.Error("the empty server leads")
	}
	l.connect().create("/later", "x") // a snapshot of this term now ends at a transaction of the term, not at its counter 0
	g.equal()
	for _, m := range g.servers {
		if z, _ := m.Tree().Digest(); z < want {
			t.Errorf("server %d is at %v, %v was acknowledged", m.id, z, want)
		}
		if m.connect().data("/kept") != "x" {
			t.Errorf("server %d has lost what was acknowledged", m.id)
		}
	}
	said := regexp.MustCompile(`level=WARN msg="is empty, but server \d votes for [^"]*" server=3 peer=127\.0\.0\.1:\d+`)
	if n := len(said.FindAllString(book.String(), -1)); n != 1 {
		t.Errorf("logged %d times that the disk is empty", n)
	}
}
