package peer

import (
	"bufio"
	"context"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// TestEveryPairTalks: three servers find each other, each pair exchanges messages, and both ends
// measure the round trip.
func TestEveryPairTalks(t *testing.T) {
	l := newLAN(t, 3, 0)
	var ms [4]*Mesh
	var ss [4]*sink
	for id := 1; id <= 3; id++ {
		ms[id], ss[id] = l.mesh(id)
	}
	for to := 1; to <= 3; to++ {
		for from := 1; from <= 3; from++ {
			if from != to {
				ms[from].Send(ensemble.ServerID(to), vote(from*10+to))
				await(t, ss[to], heard(from, from*10+to))
			}
		}
	}
	for id := 1; id <= 3; id++ {
		m := ms[id]
		eventually(t, "a connection to each other server", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.remotes) == 2 && m.remotes[ensemble.ServerID(id%3+1)].conn != nil
		})
	}
}

// TestBothEndsMeasureTheRoundTrip: both ends report the connection and the measured round trip.
func TestBothEndsMeasureTheRoundTrip(t *testing.T) {
	l := newLAN(t, 2, 0)
	_, sa := l.mesh(1)
	_, sb := l.mesh(2)
	for s, other := range map[*sink]ensemble.ServerID{sa: 2, sb: 1} {
		if r := await(t, s, func(r RoundTrip) bool { return r.Server == other }); r.Took <= 0 {
			t.Errorf("%+v", r)
		}
		await(t, s, up(int(other)))
	}
}

// TestFirstMessageIsMarked: a connection is reported before its messages, and its first message is marked.
func TestFirstMessageIsMarked(t *testing.T) {
	l := newLAN(t, 2, 0)
	_, s := l.mesh(1)
	f := callAs(t, l.election(1), 2, l.election(2))
	await(t, s, up(2))
	for round := 1; round <= 3; round++ {
		f.send(frame(vote(round)))
		if h := await(t, s, heard(2, round)); h.First != (round == 1) {
			t.Errorf("%+v", h)
		}
	}
}

// TestLastMessageIsSentAgain: on a new connection the last message is sent again before any other.
func TestLastMessageIsSentAgain(t *testing.T) {
	l := newLAN(t, 2, 0)
	m, s := l.mesh(1)
	own := l.election(2)
	first := callAs(t, l.election(1), 2, own)
	await(t, s, up(2))
	m.Send(2, vote(7))
	if n := first.receive(); n.ElectionEpoch != 7 {
		t.Fatalf("round %d", n.ElectionEpoch)
	}
	second := callAs(t, l.election(1), 2, own)
	await(t, s, up(2))
	if n := second.receive(); n.ElectionEpoch != 7 {
		t.Errorf("round %d was sent again", n.ElectionEpoch)
	}
	first.over() // the newest connection replaces the others
	m.Send(2, vote(8))
	if n := second.receive(); n.ElectionEpoch != 8 {
		t.Errorf("round %d", n.ElectionEpoch)
	}
	for _, e := range s.list() {
		if _, measured := e.(RoundTrip); !measured { // the round trip of the second connection may be reported after Up
			t.Errorf("a replaced connection brought %v", e)
		}
	}
}

// TestOneSlotForEachServer: a newer message replaces an older one that was not sent yet.
func TestOneSlotForEachServer(t *testing.T) {
	l := newLAN(t, 2, 0)
	m, s := l.mesh(1)
	for round := range 5 {
		m.Send(2, vote(round))
	}
	f := callAs(t, l.election(1), 2, l.election(2))
	await(t, s, up(2))
	if n := f.receive(); n.ElectionEpoch != 4 {
		t.Errorf("round %d came first", n.ElectionEpoch)
	}
	if n := m.Figures().Replaced.Value(); n != 4 {
		t.Errorf("%d were replaced", n)
	}
}

// TestZookeeper2164SmallerIDIsDialledBackAlsoFromAWildcard: a connection from a server with a smaller
// id is closed. This server then dials the address which that server has announced, in either form of
// the initial message. If the announced address is a wildcard, this server uses the address of the
// connection with the announced port (ZOOKEEPER-2164).
func TestZookeeper2164SmallerIDIsDialledBackAlsoFromAWildcard(t *testing.T) {
	l := newLAN(t, 2, 0)
	_, s := l.mesh(2, func(o *Options) { o.RetryMax = time.Hour })
	for _, form := range []string{"127.0.0.1", "0.0.0.0", "[::]"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := portOf(ln.Addr().String())
		knock := callAs(t, l.election(2), 1, form+":"+itoa(port))
		knock.over()
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		var msg peerwire.InitialMessage
		r := bufio.NewReader(c)
		if err := wire.ReadRecord(r, &msg, peerwire.InitialMax); err != nil || msg.Server != 2 || msg.Addresses[0] != l.election(2) {
			t.Errorf("dialled back with %+v, %v", msg, err)
		}
		c.Write(frame(vote(port)))
		await(t, s, heard(1, port))
		c.Close()
		ln.Close()
	}
}

// TestUnreachableAdvertisedAddress: if the address that a server announces cannot be reached, this
// server finds it at its address in the membership, however often the other server announces the wrong
// one.
func TestUnreachableAdvertisedAddress(t *testing.T) {
	l := newLAN(t, 2, 0)
	l.free(l.election(1))
	const nowhere = "192.0.2.1:3888"
	tried := make(chan struct{}, 100)
	l.mesh(2, func(o *Options) {
		o.ConnectTimeout = time.Hour
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			if address == nowhere {
				tried <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	})
	callAs(t, l.election(2), 1, nowhere).over()
	<-tried
	ln, err := net.Listen("tcp", l.election(1))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ln.(*net.TCPListener).SetDeadline(time.Now().Add(eventTimeout))
	callAs(t, l.election(2), 1, nowhere).over()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var msg peerwire.InitialMessage
	if err := wire.ReadRecord(bufio.NewReader(c), &msg, peerwire.InitialMax); err != nil || msg.Server != 2 {
		t.Errorf("introduced as %+v, %v", msg, err)
	}
}

// TestRecordedInitialMessages: the initial messages that ZooKeeper servers accepted or refused are
// accepted or refused here too.
func TestRecordedInitialMessages(t *testing.T) {
	l := newLAN(t, 3, 0)
	_, s := l.mesh(2)
	for _, p := range electionVectors(t).InitialProbes {
		f := rawDial(t, l.election(2))
		b, err := hex.DecodeString(p.Hex)
		if err != nil {
			t.Fatal(err)
		}
		f.send(b)
		if strings.HasPrefix(p.Expected, "accepted") {
			await(t, s, func(u Up) bool { return u.Server >= 3 })
		} else {
			f.over() // a connection with this server's own id is closed too; ZooKeeper leaks it
		}
	}
}

// TestZookeeper3769RecordedNotificationsLeaveTheReceiverAlive checks the notifications that ZooKeeper
// servers exchanged. Valid ones are received. Those that ZooKeeper dropped are dropped, and the
// connection stays (ZOOKEEPER-3769). Those that made ZooKeeper close the connection make this server
// close it.
func TestZookeeper3769RecordedNotificationsLeaveTheReceiverAlive(t *testing.T) {
	l := newLAN(t, 2, 0)
	_, s := l.mesh(1)
	v := electionVectors(t)
	f := callAs(t, l.election(1), 2, l.election(2))
	await(t, s, up(2))
	for _, r := range v.Vectors {
		if r.Kind != "NOTIFICATION" {
			continue
		}
		b, _ := hex.DecodeString(r.Hex)
		f.send(b)
		h := await[Heard](t, s, nil)
		if got := hex.EncodeToString(frame(h.Notification)); got != r.Hex {
			t.Fatalf("%s arrived as %s", r.Name, got)
		}
	}
	for i, p := range v.Probes {
		b, _ := hex.DecodeString(p.Hex)
		f.send(b)
		if strings.Contains(p.Expected, "connection closed") {
			f.over()
			f = callAs(t, l.election(1), 2, l.election(2))
		}
		f.send(frame(vote(1000 + i)))
		await(t, s, heard(2, 1000+i))
	}
}

// TestSilentAndHalfwayConnectionsHoldUpNobody: a notification that is cut in half, and connections that
// never send anything, delay no other connection (ZOOKEEPER-3769, and an upstream bug in which a port
// probe blocks the acceptor).
func TestSilentAndHalfwayConnectionsHoldUpNobody(t *testing.T) {
	l := newLAN(t, 3, 0)
	_, s := l.mesh(1)
	for range handshakesMax + 10 {
		rawDial(t, l.election(1))
	}
	half := callAs(t, l.election(1), 2, l.election(2))
	half.send(frame(vote(1))[:20])
	f := callAs(t, l.election(1), 3, l.election(3))
	f.send(frame(vote(2)))
	await(t, s, heard(3, 2))
	half.Close()
	again := callAs(t, l.election(1), 2, l.election(2))
	again.send(frame(vote(3)))
	await(t, s, heard(2, 3))
}

// TestStrangeInputIsRefusedAndLoggedOnce: invalid bytes, a frame beyond the limit, a negative id and
// this server's own id are refused, and each is logged once for each address. Other connections are not
// affected.
func TestStrangeInputIsRefusedAndLoggedOnce(t *testing.T) {
	l := newLAN(t, 3, 0)
	log, lines := logLines()
	_, s := l.mesh(1, func(o *Options) { o.Log = log })
	good := callAs(t, l.election(1), 3, l.election(3))
	await(t, s, up(3))
	for range 3 {
		f := rawDial(t, l.election(1))
		f.send([]byte("GET / HTTP/1.1\r\nHost: election\r\n\r\n" + strings.Repeat("x", 4096)))
		f.over()
		callAs(t, l.election(1), 1, l.election(2)).over()
		callAs(t, l.election(1), -5, l.election(2)).over()
		large := callAs(t, l.election(1), 2, l.election(2))
		large.send([]byte{0, 8, 0, 1})
		large.over()
	}
	good.send(frame(vote(9)))
	await(t, s, heard(3, 9))
	for _, want := range []string{"did not begin with a server's id", "has this server's id", "an invalid server id", "bytes that are not a notification"} {
		want := want
		eventually(t, "one line: "+want, func() bool { return strings.Count(lines(), want) == 1 })
	}
}

// TestOnlyARefusedDialIsDown: a refused dial is reported as Down, again for each Send. A dial that is
// not answered is not reported.
func TestOnlyARefusedDialIsDown(t *testing.T) {
	l := newLAN(t, 3, 0)
	l.free(l.election(2))
	silent := l.election(3)
	m, s := l.mesh(1, func(o *Options) {
		o.RetryMax = time.Hour
		o.ConnectTimeout = time.Hour
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			if address == silent {
				ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
				defer cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	})
	for range 3 {
		m.Send(2, vote(1))
		m.Send(3, vote(1))
		await(t, s, down(2))
	}
	eventually(t, "time-outs", func() bool { return m.Figures().DialFailures.Value() >= 8 })
	for _, e := range s.list() {
		if d, ok := e.(Down); ok && d.Server == 3 {
			t.Error("a time-out was taken for an end")
		}
	}
}

// TestEndAndReturnOfAServer checks that the other servers report a server that ends as Down at once, and
// that all connect again when it is back.
func TestEndAndReturnOfAServer(t *testing.T) {
	for _, end := range []int{1, 2} {
		l := newLAN(t, 2, 0)
		stay := 3 - end
		_, s := l.mesh(stay)
		gone, _ := l.mesh(end)
		await(t, s, up(end))
		gone.Close()
		await(t, s, down(end))
		back, _ := l.mesh(end)
		back.Send(ensemble.ServerID(stay), vote(5))
		await(t, s, heard(end, 5))
	}
}

// TestZookeeper3756SilentAddressDelaysNobody: an address that neither accepts nor refuses connections
// delays no other server (ZOOKEEPER-3756, 2164).
func TestZookeeper3756SilentAddressDelaysNobody(t *testing.T) {
	l := newLAN(t, 5, 0)
	silent := map[string]bool{l.election(3): true, l.election(4): true, l.election(5): true}
	m, _ := l.mesh(1, func(o *Options) {
		o.ConnectTimeout = time.Hour
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			if silent[address] {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	})
	for id := ensemble.ServerID(2); id <= 5; id++ {
		m.Send(id, vote(1))
	}
	_, s := l.mesh(2)
	await(t, s, heard(1, 1))
	callAs(t, l.election(1), 5, l.election(5)).receive() // the silent address does not keep server 5 from connecting
}

// TestAllAddressesOfAServer: if a server has several addresses, the one that works is dialled. If the
// options ask for it, a server announces all its addresses and listens on all of them.
func TestAllAddressesOfAServer(t *testing.T) {
	l := newLAN(t, 2, 0)
	dead := l.port()
	l.free("127.0.0.1:" + itoa(dead))
	extra := ensemble.Address{Host: "127.0.0.1", QuorumPort: l.port(), ElectionPort: l.port()}
	one, _ := l.ms.Server(1)
	two, _ := l.ms.Server(2)
	one.Addresses = append([]ensemble.Address{{Host: "127.0.0.1", QuorumPort: 1, ElectionPort: dead}}, one.Addresses...)
	two.Addresses = append([]ensemble.Address{extra}, two.Addresses...)
	l.ms = l.membership(ensemble.Definition{Servers: []ensemble.Server{one, two}})
	l.free("127.0.0.1:" + itoa(dead))
	m, _ := l.mesh(2, func(o *Options) { o.ManyAddresses = true })
	ln, err := l.listen(one.Addresses[1].Election())
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	m.Send(1, vote(1))
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var msg peerwire.InitialMessage
	err = wire.ReadRecord(bufio.NewReader(c), &msg, peerwire.InitialMax)
	if err != nil || msg.Version != peerwire.InitialMany || len(msg.Addresses) != 2 {
		t.Errorf("introduced as %+v, %v", msg, err)
	}
	callAs(t, extra.Election(), 3, "127.0.0.1:1") // both addresses accept
}

// TestZookeeper2080And2778MembershipChangesUnderLoad: a reconfiguration that happens while dials
// hang, messages are sent and connections arrive must not cause a deadlock (ZOOKEEPER-2080, 2778).
func TestZookeeper2080And2778MembershipChangesUnderLoad(t *testing.T) {
	l := newLAN(t, 4, 0)
	silent := l.election(4)
	hang := func(o *Options) {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			if address == silent {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	three := l.membership(ensemble.Definition{Servers: l.ms.Servers()[:3]})
	a, _ := l.mesh(1, hang)
	b, sb := l.mesh(2, hang)
	c, _ := l.mesh(3, hang)
	for round := range 60 {
		for _, m := range []*Mesh{a, b, c} {
			m.Send(ensemble.ServerID(round%4+1), vote(round))
			if round%2 == 0 {
				m.SetMembership(three, l.ms)
			} else {
				m.SetMembership(three, nil)
			}
		}
	}
	a.Send(2, vote(1000))
	await(t, sb, heard(1, 1000))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.remotes[4] != nil {
		t.Error("a removed server is still dialled")
	}
}

// TestMembershipDialsAndDrops: a member that is removed loses its connection. A member
// that is added is dialled.
func TestMembershipDialsAndDrops(t *testing.T) {
	l := newLAN(t, 3, 0)
	two := l.membership(ensemble.Definition{Servers: l.ms.Servers()[:2]})
	m, _ := l.mesh(2, func(o *Options) { o.Membership = two })
	ln, err := l.listen(l.election(3))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	m.SetMembership(two, l.ms)
	knock, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	knock.Close()
	f := callAs(t, l.election(2), 3, l.election(3))
	m.Send(3, vote(1))
	f.receive()
	m.SetMembership(two, nil)
	f.over()
}

// TestZookeeper4886StrangersAreServedAndForgotten: a server that is not a member is heard and answered,
// also an observer with a small id (ZOOKEEPER-4886). It is forgotten when its connection ends.
func TestZookeeper4886StrangersAreServedAndForgotten(t *testing.T) {
	l := newLAN(t, 2, 0)
	m, s := l.mesh(2)
	f := callAs(t, l.election(2), 99, "127.0.0.1:1")
	f.send(frame(vote(1)))
	await(t, s, heard(99, 1))
	m.Send(99, vote(2))
	if n := f.receive(); n.ElectionEpoch != 2 {
		t.Error("another answer")
	}
	f.Close()
	eventually(t, "the stranger is forgotten", func() bool { return !m.known(99) })

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	callAs(t, l.election(2), observerWithoutID, ln.Addr().String()).over()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write(frame(vote(3)))
	await(t, s, heard(-1, 3))
}

// TestZookeeper4736NothingLeaks: connections from other programs and failed dials leave no file
// descriptor and no goroutine behind (ZOOKEEPER-4736). TestMain counts the goroutines.
func TestZookeeper4736NothingLeaks(t *testing.T) {
	l := newLAN(t, 2, 0)
	m, _ := l.mesh(2)
	for id := range ensemble.ServerID(strangersMax + 20) {
		callAs(t, l.election(2), 100+id, "127.0.0.1:1")
	}
	eventually(t, "too many are refused", func() bool { return m.Figures().Refused.Value() == 20 })
}

// TestZookeeper4787InitialMessageIsUTF8: addresses with characters beyond ASCII are sent in
// UTF-8 on every platform (ZOOKEEPER-4787).
func TestZookeeper4787InitialMessageIsUTF8(t *testing.T) {
	l := newLAN(t, 2, 0)
	_, s := l.mesh(1)
	f := callAs(t, l.election(1), 2, "zürich.example:3888")
	f.send(frame(vote(1)))
	await(t, s, heard(2, 1))
}

// TestEmptyConfigurationIsNeverSent: a configuration without members makes ZooKeeper servers ignore
// all further votes, so it is not sent.
func TestEmptyConfigurationIsNeverSent(t *testing.T) {
	l := newLAN(t, 2, 0)
	m, s := l.mesh(1)
	f := callAs(t, l.election(1), 2, l.election(2))
	await(t, s, up(2))
	m.Send(2, peerwire.Notification{Version: peerwire.NotificationConfig})
	if n := f.receive(); n.Version != peerwire.NotificationPlain {
		t.Errorf("version %d", n.Version)
	}
}
