package realpeers

import (
	"bufio"
	"net"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// peer is a server that the replay plays. It opens and accepts connections as ZooKeeper's
// servers do: in elections, the server with the larger id dials.
type peer struct {
	*wires
	id, zooKeeper     ensemble.ServerID
	quorum, elections string // its addresses
	toElections       string // ZooKeeper's address

	listeners []net.Listener

	// The lock of the wires guards these.
	up       bool
	dialling bool
	votes    net.Conn // the election connection; nil: there is none
	lastVote []byte
	sent     []*peerwire.Notification // what ZooKeeper has sent
	links    []*learnerConn           // those that ZooKeeper has opened, oldest first
}

// start lets ZooKeeper connect to the peer.
func (p *peer) start() error {
	for _, port := range []struct {
		addr  string
		serve func(net.Conn)
	}{{p.quorum, p.acceptLearner}, {p.elections, p.acceptVotes}} {
		l, err := net.Listen("tcp", port.addr)
		if err != nil {
			return err
		}
		p.listeners = append(p.listeners, l)
		p.wait.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if p.hold(c) {
					port.serve(c)
				} else {
					p.drop(c)
				}
			}
		})
	}
	p.set(func() { p.up = true })
	return nil
}

// stop closes all connections of the peer.
func (p *peer) stop() {
	for _, l := range p.listeners {
		_ = l.Close()
	}
	p.listeners = nil
	p.set(func() {
		p.up, p.lastVote = false, nil
		if p.votes != nil {
			_ = p.votes.Close()
			p.votes = nil
		}
		for _, l := range p.links {
			_ = l.conn.Close()
		}
		p.links = nil
	})
}

func (p *peer) acceptLearner(c net.Conn) {
	l := p.newLearnerConn(c, false)
	p.set(func() { p.links = append(p.links, l) })
}

// acceptVotes takes an election connection that ZooKeeper has opened. If the peer has the
// larger id, it dials instead.
func (p *peer) acceptVotes(c net.Conn) {
	p.wait.Go(func() {
		r := bufio.NewReader(c)
		var m peerwire.InitialMessage
		switch err := wire.ReadRecord(r, &m, peerwire.InitialMax); {
		case err != nil:
			p.drop(c)
		case p.id > p.zooKeeper:
			p.drop(c)
			p.connect()
		default:
			p.readVotes(c, r)
		}
	})
}

// connect makes sure that there is an election connection to ZooKeeper, which runs.
func (p *peer) connect() {
	begin := false
	p.set(func() {
		begin = p.up && p.votes == nil && !p.dialling
		p.dialling = p.dialling || begin
	})
	if !begin {
		return
	}
	p.wait.Go(func() {
		defer p.set(func() { p.dialling = false })
		c := p.dial(p.toElections, func() bool { return p.up && p.votes == nil })
		if c == nil {
			return
		}
		m := &peerwire.InitialMessage{Version: peerwire.InitialOne, Server: p.id, Addresses: []string{p.elections}}
		if _, err := c.Write(wire.Append(nil, m)); err != nil {
			p.drop(c)
			return
		}
		if p.id > p.zooKeeper {
			p.wait.Go(func() { p.readVotes(c, bufio.NewReader(c)) })
			p.await(func() bool { return p.votes != nil || !p.up })
			return
		}
		_, _ = c.Read(make([]byte, 1)) // ZooKeeper closes the connection, and dials
		p.drop(c)
	})
}

// readVotes reads an election connection, which replaces the one before. The peer sends its last
// vote again, because the earlier connection may have lost it.
func (p *peer) readVotes(c net.Conn, r *bufio.Reader) {
	defer p.drop(c)
	var up bool
	var last []byte
	p.set(func() {
		if up = p.up; up {
			p.votes, last = c, p.lastVote
		}
	})
	if up && last != nil {
		_, _ = c.Write(last) // without success, the connection ends
	}
	for up {
		b, err := peerwire.ReadElectionFrame(r, nil)
		n := new(peerwire.Notification)
		if err != nil || wire.Decode(b, n) != nil {
			break
		}
		p.set(func() { p.sent = append(p.sent, n) })
	}
	p.set(func() {
		if p.votes == c {
			p.votes = nil
		}
	})
}

// vote sends a notification to ZooKeeper, and again if the connection ends.
func (p *peer) vote(n *peerwire.Notification) bool {
	b := wire.AppendFrame(nil, n)
	p.set(func() { p.lastVote = b })
	for {
		p.connect()
		var c net.Conn
		if !p.await(func() bool { c = p.votes; return c != nil }) {
			return false
		}
		if _, err := c.Write(b); err == nil {
			return true
		}
		if !p.await(func() bool { return p.votes != c }) {
			return false
		}
	}
}
