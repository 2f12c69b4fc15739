package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/peerwire"
	"bellwether/internal/store"
	"bellwether/wire"
)

// gapMax is the longest time without acknowledged writes that the tests accept. It separates
// servers that elect another leader from servers that elect a hung one repeatedly: 3 s is the
// target, and without the rules under test the gap is 40 s or longer.
const gapMax = 15 * time.Second

// defaults sets ZooKeeper's time limits: ticks of 2 s, initLimit 10, syncLimit 5.
func defaults(c *config.Config) {
	c.TickTime = 2 * time.Second
	c.Ensemble.InitLimit, c.Ensemble.SyncLimit = 10, 5
	c.Storage.SnapCount = 1 << 20
}

// gap is a client of some servers. It writes a znode repeatedly and records the longest
// time without an acknowledgement.
type gap struct {
	servers []string
	data    []byte
	stop    atomic.Bool
	done    sync.WaitGroup

	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	writes  int
}

// writing starts to write through the given servers.
func (g *testEnsemble) writing(size int, servers ...*testServer) *gap {
	w := &gap{data: make([]byte, size), last: time.Now()}
	for _, m := range servers {
		w.servers = append(w.servers, m.Addr().String())
	}
	w.done.Go(func() {
		for i := 0; !w.stop.Load(); i++ {
			w.attach(w.servers[i%len(w.servers)])
		}
	})
	g.t.Cleanup(w.end)
	return w
}

func (w *gap) end() {
	w.stop.Store(true)
	w.done.Wait()
}

// attach writes on one connection until it fails or is silent for a second.
func (w *gap) attach(address string) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		<-time.After(time.Millisecond)
		return
	}
	defer nc.Close()
	call := func(frame []byte) ([]byte, error) {
		nc.SetDeadline(time.Now().Add(time.Second))
		if _, err := nc.Write(frame); err != nil {
			return nil, err
		}
		return wire.ReadFrame(nc, nil, 1<<20)
	}
	if b, err := call(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)})); err != nil || len(b) == 0 {
		return
	}
	for xid := int32(1); !w.stop.Load(); xid++ {
		frame := request(xid, wire.OpSetData, &wire.SetDataRequest{Path: "/zookeeper", Data: w.data, Version: -1})
		if _, err := call(frame); err != nil {
			return
		}
		w.acknowledged()
	}
}

func (w *gap) acknowledged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.longest, w.last = max(w.longest, now.Sub(w.last)), now
	w.writes++
}

// count returns the number of acknowledged writes.
func (w *gap) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// most returns the longest time without an acknowledged write, including the time until
// now.
func (w *gap) most() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(w.longest, time.Since(w.last))
}

// goesOn waits for some more writes, and fails if a gap was longer than gapMax.
func (w *gap) goesOn(t *testing.T) {
	t.Helper()
	from := w.count()
	eventually(t, "writes go on", func() bool { return w.count() >= from+20 || w.most() > gapMax })
	t.Logf("longest time without an acknowledged write: %v", w.most().Round(time.Millisecond))
	if w.most() > gapMax {
		t.Fatalf("no write was acknowledged for %v", w.most())
	}
}

// led makes this server the leader.
func (g *testEnsemble) led(m *testServer) {
	g.t.Helper()
	l := g.settled()
	if l == m {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), eventTimeout)
	defer cancel()
	if _, err := l.TransferLeadership(ctx, m.id); err != nil {
		g.t.Fatal(err)
	}
	g.settled()
}

// hang makes the disk of a server hang until the test ends.
func (m *testServer) hang(t *testing.T) *store.Mem {
	disk := m.fs.(*store.Mem)
	disk.Hang()
	t.Cleanup(disk.EndHang)
	return disk
}

// startDefault runs servers with ZooKeeper's time limits and fixed client ports.
func startDefault(t *testing.T, voters int) *testEnsemble {
	t.Helper()
	g := newTestEnsemble(t, voters, 0, false)
	ports := freePorts(t, voters)
	g.queueMax = 4 << 20
	g.change = func(c *config.Config) {
		defaults(c)
		c.Client.Port = ports[c.Ensemble.ID-1]
	}
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	return g
}

// TestHungDiskDoesNotWinElections: of five servers the one with the highest id, which
// wins every tie, has a hung disk. The leader is killed, and another server leads. With
// writes the hung disk is detected before the election. Without writes the server with the
// hung disk detects it only when it has won.
func TestHungDiskDoesNotWinElections(t *testing.T) {
	for _, busy := range []bool{true, false} {
		t.Run(fmt.Sprintf("busy=%v", busy), func(t *testing.T) {
			g := startDefault(t, 5)
			old, hung := g.servers[3], g.servers[4]
			g.led(old)
			disk := hung.hang(t)
			if busy {
				w := g.writing(100, g.servers[:3]...)
				eventually(t, "the disk is reported", func() bool { return hung.Status().Disk != nil })
				w.end()
			}
			g.kill(old)
			w := g.writing(100, g.servers[:3]...)
			w.goesOn(t)
			g.start(old)
			if hung.serves(peerwire.Leading) {
				t.Error("the server with the hung disk leads")
			}
			eventually(t, "its disk is reported", func() bool { return hung.Status().Disk != nil })
			disk.EndHang()
			w.end()
			g.settled()
			g.equal()
		})
	}
}

// TestLeaderWithAHungDiskGivesUp: the leader's disk hangs under a load of more bytes than
// may wait for it. The leader ends its term, the others elect, and it follows when its
// disk answers.
func TestLeaderWithAHungDiskGivesUp(t *testing.T) {
	g := startDefault(t, 3)
	l := g.settled()
	disk := l.hang(t)
	var others []*testServer
	for _, m := range g.servers {
		if m != l {
			others = append(others, m)
		}
	}
	var load []*gap
	for range 8 { // of almost a MiB each, so that the limit is reached
		load = append(load, g.writing(900<<10, g.servers...))
	}
	w := g.writing(100, others...)
	eventually(t, "another one leads", func() bool {
		now := g.leader()
		return now != nil && now != l || w.most() > gapMax
	})
	w.goesOn(t)
	for _, m := range load {
		m.end()
	}
	disk.EndHang()
	w.end()
	g.settled()
	g.equal()
}

// TestFollowerWithAHungDiskCausesNoGap: a follower whose disk hangs disturbs nothing: the
// leader and its term stay, and writes continue.
func TestFollowerWithAHungDiskCausesNoGap(t *testing.T) {
	g := startDefault(t, 3)
	l := g.settled()
	epoch := l.ReplicaStatus().Epoch
	f := g.follower()
	var others []*testServer
	for _, m := range g.servers {
		if m != f {
			others = append(others, m)
		}
	}
	w := g.writing(900<<10, others...)
	more := g.writing(900<<10, others...)
	disk := f.hang(t)
	eventually(t, "its disk is reported", func() bool { return f.Status().Disk != nil })
	eventually(t, "more was written than may wait for the disk", func() bool {
		return w.count()+more.count() > 3*g.queueMax/(900<<10)
	})
	if now := g.leader(); now != l || now.ReplicaStatus().Epoch != epoch {
		t.Errorf("there was an election because of a follower's disk")
	}
	t.Logf("longest time without an acknowledged write: %v", w.most().Round(time.Millisecond))
	if w.most() > gapMax {
		t.Errorf("no write was acknowledged for %v", w.most())
	}
	disk.EndHang()
	more.end()
	w.end()
	g.settled()
	g.equal()
}

// TestFilteredQuorumPort: the server that would win every election cannot be reached at
// its quorum port, while its election port is open. Another server leads, although no
// disk hangs. When the port is open again it joins the ensemble.
func TestFilteredQuorumPort(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	ports := freePorts(t, 3)
	var filtered atomic.Bool
	s, _ := g.members.Server(3)
	quorum := fmt.Sprintf("%s:%d", s.Addresses[0].Host, s.Addresses[0].QuorumPort)
	g.hooks.Dial = func(ctx context.Context, address string) (net.Conn, error) {
		if filtered.Load() && address == quorum {
			<-ctx.Done() // like a packet filter that drops: the dial is neither accepted nor refused
			return nil, ctx.Err()
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	g.change = func(c *config.Config) {
		defaults(c)
		c.Client.Port = ports[c.Ensemble.ID-1]
	}
	for _, m := range g.servers {
		g.start(m)
	}
	old, next := g.servers[1], g.servers[2]
	g.led(old)
	old.connect().create("/written", "") // so that all have the same history
	g.equal()
	filtered.Store(true)
	g.kill(old)
	eventually(t, "server 3 has won", func() bool { return next.ReplicaStatus().Role == peerwire.Leading })
	g.start(old)
	w := g.writing(100, g.servers[0], g.servers[1])
	w.goesOn(t)
	if next.serves(peerwire.Leading) {
		t.Error("the unreachable server leads")
	}
	filtered.Store(false)
	w.end()
	g.settled()
	g.equal()
}
