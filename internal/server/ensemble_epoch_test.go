package server

import (
	"bufio"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// simulatedPair simulates servers 1 and 2 of three: 2 leads and 1 follows it. They behave like
// Apache ZooKeeper, whose leader keeps leading its epoch whatever a learner has promised.
type simulatedPair struct {
	t    *testing.T
	done sync.WaitGroup

	mu    sync.Mutex
	epoch wire.Epoch // the epoch of the leader
	round wire.Epoch
	elect bool // the two servers look for a leader, in the next round
	conns []net.Conn
	lines map[ensemble.ServerID]net.Conn // election connections of server 3
	asked []time.Time                    // times at which server 3 tried to join
	joins chan wire.Epoch                // the epochs that it promised

	votes    [][]byte // sent before the first vote
	openings [][]byte // sent before the epoch of the leader
}

// newSimulatedPair makes the two simulated servers listen at their addresses.
func newSimulatedPair(t *testing.T, m *ensemble.Membership) *simulatedPair {
	s := &simulatedPair{t: t, epoch: 5, round: 1, joins: make(chan wire.Epoch, 1), lines: map[ensemble.ServerID]net.Conn{}}
	var ports []net.Listener
	listen := func(address string, serve func(net.Conn)) {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, ln)
		s.done.Go(func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				s.mu.Lock()
				s.conns = append(s.conns, c)
				s.mu.Unlock()
				s.done.Go(func() {
					defer c.Close()
					serve(c)
				})
			}
		})
	}
	for id := ensemble.ServerID(1); id <= 2; id++ {
		own, _ := m.Server(id)
		listen(own.Addresses[0].Election(), func(c net.Conn) { s.vote(id, c) })
		if id == 2 {
			listen(own.Addresses[0].Quorum(), s.lead)
		}
	}
	t.Cleanup(func() {
		for _, ln := range ports {
			ln.Close()
		}
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.done.Wait()
	})
	return s
}

// says returns what a server tells server 3. The lock must be held.
func (s *simulatedPair) says(id ensemble.ServerID) []byte {
	n := &peerwire.Notification{Leader: 2, Zxid: 7, ElectionEpoch: s.round, PeerEpoch: 5, Version: peerwire.NotificationPlain}
	n.State = map[ensemble.ServerID]peerwire.ServerState{1: peerwire.Following, 2: peerwire.Leading}[id]
	if s.elect {
		n.State, n.ElectionEpoch = peerwire.Looking, s.round+1
	}
	return wire.AppendFrame(nil, n)
}

// vote answers a server that looks for a leader.
func (s *simulatedPair) vote(id ensemble.ServerID, c net.Conn) {
	r := bufio.NewReader(c)
	if err := wire.ReadRecord(r, new(peerwire.InitialMessage), peerwire.InitialMax); err != nil {
		return
	}
	for {
		b, err := peerwire.ReadElectionFrame(r, nil)
		if err != nil {
			return
		}
		var n peerwire.Notification
		if err := wire.Decode(b, &n); err != nil {
			s.t.Error(err)
			return
		}
		s.mu.Lock()
		s.lines[id] = c
		if n.State == peerwire.Looking && id == 1 {
			for _, v := range s.votes {
				c.Write(v)
			}
		}
		if n.State == peerwire.Looking {
			c.Write(s.says(id))
		}
		s.mu.Unlock()
	}
}

// lead tells a learner the epoch and reads its promise.
func (s *simulatedPair) lead(c net.Conn) {
	r := bufio.NewReader(c)
	var p peerwire.QuorumPacket
	if peerwire.ReadPacket(r, &p, peerwire.PacketMax) != nil || p.Type != peerwire.PacketFollowerInfo {
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, time.Now())
	epoch := wire.MakeZxid(s.epoch, 0)
	if n := len(s.asked); n <= len(s.openings) {
		c.Write(s.openings[n-1])
		s.mu.Unlock()
		io.Copy(io.Discard, r)
		return
	}
	s.mu.Unlock()
	c.Write(packet(peerwire.PacketLeaderInfo, epoch, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion}))
	if peerwire.ReadPacket(r, &p, peerwire.PacketMax) == nil && p.Type == peerwire.PacketAckEpoch {
		select {
		case s.joins <- epoch.Epoch():
		case <-s.t.Context().Done(): // the test does not wait for a server that joins again
		}
	}
}

// times returns the times at which server 3 tried to join.
func (s *simulatedPair) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.asked...)
}

// TestLeaderOfAnEarlierEpoch: a server has promised a later epoch than the leader's. It
// logs that once, with the leader's address, and retries at growing intervals. When the
// others look for a leader it takes part and joins the next one.
func TestLeaderOfAnEarlierEpoch(t *testing.T) {
	book := new(logBook)
	g := newTestEnsemble(t, 3, 0, false)
	g.book = book
	us := g.servers[2]
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	us.fs = seededDisk(t, wire.MakeZxid(4, 1))
	disk, err := store.Open(us.fs, storeOptions(testConfig()))
	must(err)
	_, err = disk.Load(tree.New(tree.Options{}).Loader())
	must(err)
	must(disk.SetCurrentEpoch(4))
	must(disk.SetAcceptedEpoch(9))
	must(disk.Close())
	s := newSimulatedPair(t, g.members)
	g.start(us)

	eventually(t, "it comes nine times", func() bool { return len(s.times()) >= 9 })
	came := s.times()
	for i := 2; i < 9; i++ { // pauses of 10, 20, 40 ... ms on its clock, which counts whole milliseconds
		if gap, least := came[i].Sub(came[i-1]), 10*time.Millisecond<<(i-2)-2*time.Millisecond; gap < least {
			t.Errorf("attempt %d came %v after the one before, want %v", i+1, gap, least)
		}
	}
	leader, _ := g.members.Server(2)
	line := regexp.MustCompile(`level=WARN msg="server 2 leads epoch 5, but this server has promised epoch 9 [^"]*" server=3 peer=` + leader.Addresses[0].Quorum())
	if n := len(line.FindAllString(book.String(), -1)); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
	if n := strings.Count(book.String(), "looks for a leader"); n > 2 {
		t.Errorf("%d attempts are logged", n)
	}

	s.mu.Lock()
	s.elect = true
	for id, c := range s.lines {
		c.Write(s.says(id))
	}
	s.epoch = 10
	s.mu.Unlock()
	for end := time.After(eventTimeout); ; {
		select {
		case e := <-s.joins:
			if e != 10 {
				t.Errorf("promised epoch %d", e)
			}
			return
		case <-end:
			t.Fatal("it does not join the next leader")
		}
	}
}

// TestBadInputFromMembers: Messages that a leader or voter must not send are refused and
// logged once with the sender's address. The server keeps looking for a leader, and joins
// when the leader sends correct messages.
func TestBadInputFromMembers(t *testing.T) {
	book := new(logBook)
	g := newTestEnsemble(t, 3, 0, false)
	g.book = book
	s := newSimulatedPair(t, g.members)
	hello := &peerwire.LeaderInfo{Version: peerwire.QuorumVersion}
	zero := packet(peerwire.PacketLeaderInfo, wire.MakeZxid(5, 0), hello)
	then := func(kind peerwire.PacketType, z wire.Zxid) []byte {
		return slices.Concat(zero, packet(kind, z, nil))
	}
	s.openings = [][]byte{
		[]byte("HTTP/1.1 400 Bad Request\r\n\r\n" + strings.Repeat("x", 400)),
		packet(peerwire.PacketLeaderInfo, wire.MakeZxid(5, 0), &peerwire.LeaderInfo{Version: 7}),
		packet(peerwire.PacketLeaderInfo, wire.MakeZxid(zab.EpochMax+2, 0), hello),
		packet(peerwire.PacketUpToDate, -1, nil),
		then(peerwire.PacketPing, 0),
		then(peerwire.PacketDiff, wire.MakeZxid(6, 1)),
		then(peerwire.PacketTrunc, 77),
		packet(peerwire.PacketLeaderInfo, 0, nil),
	}
	s.openings = append(s.openings, s.openings[1]) // a second time, which is not logged
	vote := peerwire.Notification{State: peerwire.Following, Leader: 2, ElectionEpoch: 1, Version: peerwire.NotificationPlain}
	for _, wrong := range []func(*peerwire.Notification){
		func(n *peerwire.Notification) { n.PeerEpoch = 1 << 40 },
		func(n *peerwire.Notification) { n.ElectionEpoch = 1 << 60 },
		func(n *peerwire.Notification) { n.Zxid = -9 },
		func(n *peerwire.Notification) { n.Leader = 88 },
	} {
		n := vote
		wrong(&n)
		s.votes = append(s.votes, wire.AppendFrame(nil, &n))
	}
	g.start(g.servers[2])
	select {
	case <-s.joins:
	case <-time.After(eventTimeout):
		t.Fatal("it does not join")
	}
	leader, _ := g.members.Server(2)
	voter, _ := g.members.Server(1)
	for what, from := range map[string]string{
		"a server sent bytes that are not a packet":                     leader.Addresses[0].Quorum(),
		"the leader offers epoch 5 in version 0x7":                      leader.Addresses[0].Quorum(),
		"the leader offers epoch 2147483648 in version 0x10000":         leader.Addresses[0].Quorum(),
		"the leader sent UPTODATE instead of its epoch":                 leader.Addresses[0].Quorum(),
		`the leader began the synchronisation with DIFF\(0x600000001\)`: leader.Addresses[0].Quorum(),
		"a truncation to 0x4d, which is not in the log":                 leader.Addresses[0].Quorum(),
		`the leader (began the synchronisation with|sent) PING`:         leader.Addresses[0].Quorum(),
		"the leader's epoch cannot be read":                             leader.Addresses[0].Quorum(),
		"no zxid has this epoch":                                        voter.Addresses[0].Election(),
		"no election reaches this round":                                voter.Addresses[0].Election(),
		"the zxid is negative":                                          voter.Addresses[0].Election(),
		"it follows a server that this server does not know as a voter": voter.Addresses[0].Election(),
	} {
		line := regexp.MustCompile(`level=WARN msg="[^"]*` + what + `[^"]*" server=3 peer=` + from)
		if n := len(line.FindAllString(book.String(), -1)); n != 1 {
			t.Errorf("%q is logged %d times with the address %s, want once", what, n, from)
		}
	}
}
