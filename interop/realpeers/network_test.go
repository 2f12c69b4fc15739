package realpeers

import (
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/portblock"
	"bellwether/internal/sim"
	"bellwether/internal/zab"
	"bellwether/interop/target"
)

// network connects the servers of a run. All connections between them pass through its
// proxies, of which each ordered pair of servers has two. It records the packets when they
// are sent, even while the connection is cut.
//
// One lock guards everything, and each change wakes all goroutines that wait: there are few
// of them.
type network struct {
	proxies []*proxy
	wait    sync.WaitGroup

	mu       sync.Mutex
	changed  sync.Cond
	over     bool
	isolated ensemble.ServerID          // the server that is cut off; 0: none
	up       map[ensemble.ServerID]bool // servers whose process runs
	conns    map[net.Conn]bool
	step     int
	lastLink zab.LinkID
	packets  []sim.SentPacket
}

// proxy passes connections from one server to a port of another: to its election port, or
// to its port for learners. While the process of the other one does not run, it refuses
// connections.
type proxy struct {
	net      *network
	from, to ensemble.ServerID
	election bool
	addr     string // where it listens
	target   string
	listener net.Listener
}

// newNetwork reserves the addresses of the proxies. They end with the test.
func newNetwork(t testing.TB, servers int) *network {
	t.Helper()
	n := &network{up: map[ensemble.ServerID]bool{}, conns: map[net.Conn]bool{}}
	n.changed.L = &n.mu
	ports, err := portblock.Free("127.0.0.1", 2*servers*(servers-1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range servers {
		for j := range servers {
			if i == j {
				continue
			}
			for _, election := range []bool{false, true} {
				addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[len(n.proxies)]))
				n.proxies = append(n.proxies, &proxy{net: n, from: ensemble.ServerID(i + 1), to: ensemble.ServerID(j + 1), election: election, addr: addr})
			}
		}
	}
	t.Cleanup(n.end)
	return n
}

// find returns the proxy between two servers.
func (n *network) find(from, to ensemble.ServerID, election bool) *proxy {
	for _, p := range n.proxies {
		if p.from == from && p.to == to && p.election == election {
			return p
		}
	}
	return nil
}

// places returns the places of servers that reach each other through the proxies.
func (n *network) places(servers int) []target.Place {
	all := make([]target.Place, servers)
	for i := range all {
		all[i].Calls = map[int][2]string{}
		for j := range servers {
			if from, to := ensemble.ServerID(i+1), ensemble.ServerID(j+1); from != to {
				all[i].Calls[j+1] = [2]string{n.find(from, to, false).addr, n.find(from, to, true).addr}
			}
		}
	}
	return all
}

// leadTo tells the proxies where the servers listen.
func (n *network) leadTo(e *target.Ensemble) {
	for _, p := range n.proxies {
		quorum, election := e.Ports(int(p.to) - 1)
		if p.target = quorum; p.election {
			p.target = election
		}
	}
}

// switchOn lets connections to a server pass. Its process runs.
func (n *network) switchOn(id ensemble.ServerID) error {
	n.set(func() { n.up[id] = true })
	for _, p := range n.proxies {
		if p.to != id {
			continue
		}
		l, err := net.Listen("tcp", p.addr)
		if err != nil {
			return err
		}
		p.listener = l
		n.wait.Go(func() { p.accept(l) })
	}
	return nil
}

// switchOff refuses connections to a server. Its process has ended.
func (n *network) switchOff(id ensemble.ServerID) {
	n.set(func() { n.up[id] = false })
	for _, p := range n.proxies {
		if p.to == id && p.listener != nil {
			_ = p.listener.Close()
			p.listener = nil
		}
	}
}

// isolate cuts a server off from all others; 0: none is cut off any more. What is on its
// way waits, and arrives when the server is connected again.
func (n *network) isolate(id ensemble.ServerID) { n.set(func() { n.isolated = id }) }

// begin says that from now on packets belong to this step.
func (n *network) begin(step int) { n.set(func() { n.step = step }) }

// sent returns the packets that were sent so far.
func (n *network) sent() []sim.SentPacket {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.packets[:len(n.packets):len(n.packets)]
}

// set changes something and wakes all that wait.
func (n *network) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	n.changed.Broadcast()
}

// record adds a packet to those that were sent.
func (n *network) record(p sim.SentPacket) {
	n.set(func() {
		p.Step = n.step
		n.packets = append(n.packets, p)
	})
}

func (n *network) end() {
	for id := range n.up {
		n.switchOff(id)
	}
	n.set(func() {
		n.over = true
		for c := range n.conns {
			_ = c.Close()
		}
	})
	n.wait.Wait()
}

// hold keeps a connection until drop. It returns false if the test is over.
func (n *network) hold(c net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[c] = true
	return !n.over
}

// nextLink returns a number for a new connection.
func (n *network) nextLink() zab.LinkID {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lastLink++
	return n.lastLink
}

func (n *network) drop(c net.Conn) {
	_ = c.Close()
	n.set(func() { delete(n.conns, c) })
}

// cutLocked reports whether packets between the servers of this proxy wait.
func (p *proxy) cutLocked() bool {
	return !p.net.over && p.net.isolated != 0 && (p.from == p.net.isolated || p.to == p.net.isolated)
}

func (p *proxy) accept(l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		p.net.wait.Go(func() { p.serve(in) })
	}
}

// serve connects the two servers and copies both ways until either end closes.
func (p *proxy) serve(in net.Conn) {
	n := p.net
	defer n.drop(in)
	if !n.hold(in) {
		return
	}
	link := n.nextLink()
	there, back := &stream{proxy: p, link: link}, &stream{proxy: p, link: link, back: true}
	n.wait.Go(func() { there.read(in) })
	out, err := p.dial(there)
	if err != nil {
		return
	}
	defer n.drop(out)
	if !n.hold(out) {
		return
	}
	n.wait.Go(func() { back.read(out) })
	var both sync.WaitGroup
	both.Go(func() { there.write(out, in) })
	both.Go(func() { back.write(in, out) })
	both.Wait()
}

// dialMax bounds how long a proxy tries to reach a server whose process runs. A server opens
// its port for learners only when it leads, so the learner may be early. The proxy has
// already accepted the connection: to the learner, the network looks slow.
const dialMax = 3 * time.Second

// dialPause is the time between two attempts.
const dialPause = 5 * time.Millisecond

// dial connects to the target, for a server that has not closed its own end meanwhile.
func (p *proxy) dial(there *stream) (net.Conn, error) {
	for end := time.Now().Add(dialMax); ; <-time.After(dialPause) {
		if !p.awaitPassage(there) {
			return nil, net.ErrClosed
		}
		out, err := net.Dial("tcp", p.target)
		if err == nil || time.Now().After(end) {
			return out, err
		}
	}
}

// awaitPassage waits while the servers are cut off from each other. It returns false if
// there is nothing to connect any more.
func (p *proxy) awaitPassage(there *stream) bool {
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for p.cutLocked() && !there.ended {
		n.changed.Wait()
	}
	return !n.over && !there.ended && n.up[p.to]
}
