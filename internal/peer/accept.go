package peer

import (
	"bufio"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// observerWithoutID is the id that old observers send. This server gives each of them a
// negative id of its own.
const observerWithoutID ensemble.ServerID = math.MaxInt64

// welcome reads and checks the initial message of an accepted connection. It reports
// whether this server keeps the connection. It keeps only those of servers with a larger
// id.
func (m *Mesh) welcome(raw net.Conn) bool {
	tune(raw, electionDead)
	c, err := m.o.Secure.server(raw, ForElection, peerwire.NoServer)
	if err != nil {
		m.refuse(raw, peerwire.NoServer, refusal("a connection to the election port was refused", err), err)
		return false
	}
	r := bufio.NewReader(c)
	var msg peerwire.InitialMessage
	err = wire.ReadRecord(r, &msg, peerwire.InitialMax)
	if err == nil && msg.Version == peerwire.InitialBare && !m.known(msg.Server) {
		err = wire.ErrValue // any eight bytes are an id of that form, so only members may use it
	}
	if err != nil {
		if err != io.EOF { // a connection that sends nothing is a port scan or a health check
			m.refuse(raw, peerwire.NoServer, "a connection to the election port did not begin with a server's id", err)
		}
		return false
	}
	if msg.Server < 0 {
		m.refuse(raw, msg.Server, "a connection to the election port announced an invalid server id", errNoID)
		return false
	}
	if msg.Server == m.o.ID {
		m.refuse(raw, msg.Server, "another server has this server's id", errSameID)
		return false
	}
	if c, err = m.o.Secure.server(buffered{c, r}, ForVotes, msg.Server); err != nil {
		m.refuse(raw, msg.Server, refusal("a server is not allowed on the election port", err), err)
		return false
	}
	if took, ok := roundTrip(raw); ok && m.known(msg.Server) {
		m.o.Handle(RoundTrip{msg.Server, took})
	}
	if msg.Server < m.o.ID || msg.Server == observerWithoutID {
		m.announcement(raw, &msg)
		return false
	}
	c.SetDeadline(time.Time{})
	return m.keep(c, raw, &msg)
}

// known reports whether a server is a member or connected.
func (m *Mesh) known(id ensemble.ServerID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remotes[id] != nil
}

// keep uses a connection that a server with a larger id has opened as the only connection to that server.
func (m *Mesh) keep(c, raw net.Conn, msg *peerwire.InitialMessage) bool {
	m.mu.Lock()
	r, complaint := m.find(msg.Server)
	if r == nil {
		m.mu.Unlock()
		m.complain(raw, msg.Server, complaint)
		return false
	}
	twice := r.advertise(useful(msg.Addresses, raw))
	r.cancelDial()
	start := r.attach(c)
	m.mu.Unlock()
	m.complain(raw, msg.Server, complaint+twice)
	start()
	return true
}

// announcement handles the initial message of a server with a smaller id, which connects only
// to announce itself. An older connection to that server is stale: this server closes it, and
// dials the address in the message.
func (m *Mesh) announcement(raw net.Conn, msg *peerwire.InitialMessage) {
	complaint := m.callBack(msg.Server, useful(msg.Addresses, raw))
	m.complain(raw, msg.Server, complaint)
}

func (m *Mesh) callBack(id ensemble.ServerID, advertised []string) (complaint string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id == observerWithoutID {
		m.anonymous--
		id = m.anonymous
	}
	r, complaint := m.find(id)
	if r == nil {
		return complaint
	}
	complaint += r.advertise(advertised)
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
	// If the server announces itself again while it is being dialled back, the address that it
	// has announced does not work.
	r.advertisedFailed = r.advertisedFailed || r.callsLeft > 0 && r.dialling != nil
	r.callsLeft = callsMax
	r.cancelDial()
	r.backoff, r.next = retryMin, time.Now()
	r.wakeRun()
	return complaint
}

// advertise stores the addresses that a server has announced. It returns a complaint if two
// servers seem to have the same id. The caller holds the lock.
func (r *remote) advertise(addresses []string) (complaint string) {
	if r.conn != nil && len(r.advertised) > 0 && !slices.Equal(r.advertised, addresses) {
		complaint = "connections from different addresses use the same server id: give each server its own myid"
	}
	r.advertised = addresses
	return complaint
}

// complain logs what is wrong with a server that has connected, if anything.
func (m *Mesh) complain(raw net.Conn, id ensemble.ServerID, what string) {
	if what != "" {
		m.notices.Say(slog.LevelWarn, what, raw.RemoteAddr().String(), "sid", id)
	}
}

// find returns the remote with this id, and makes one for a stranger; nil if there are
// too many strangers. The caller holds the lock.
func (m *Mesh) find(id ensemble.ServerID) (r *remote, complaint string) {
	if r := m.remotes[id]; r != nil || m.closed {
		return r, ""
	}
	strangers := 0
	for _, r := range m.remotes {
		if r.stranger {
			strangers++
		}
	}
	if strangers >= strangersMax {
		m.o.refused(&m.figures)
		return nil, "a server that is not in the membership was refused, because too many of them are connected"
	}
	r = m.add(id)
	r.stranger = true
	return r, "a server that is not in the membership takes part without a vote"
}

// useful returns the addresses at which a server can be reached, made from those that it
// has announced. A wildcard address says only the port, so the host is the one from which
// the server has connected (ZOOKEEPER-2164).
func useful(advertised []string, from net.Conn) []string {
	var out []string
	for _, address := range advertised {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		if wildcard(host) {
			if host, _, err = net.SplitHostPort(from.RemoteAddr().String()); err != nil {
				continue
			}
		}
		if address = net.JoinHostPort(host, port); len(out) < advertisedMax && !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out
}

// advertisedMax is how many addresses of one server are used.
const advertisedMax = 16
