package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"

	"bellwether/internal/ensemble"
	"bellwether/internal/notice"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// strangersMax is how many servers outside the membership may be connected: servers that
// are to join, or have left.
const strangersMax = 64

// Mesh is the election port: one connection to each other server, for notifications. It
// dials by itself and keeps every connection as long as both servers run.
type Mesh struct {
	o          *Options
	notices    *notice.Log
	handshakes *handshakes
	figures    Figures
	ctx        context.Context
	cancel     context.CancelFunc
	done       sync.WaitGroup // remotes and their connections

	mu        sync.Mutex
	closed    bool
	remotes   map[ensemble.ServerID]*remote
	own       []string // the addresses of this server
	ports     *ports
	anonymous ensemble.ServerID // the last id given to an observer without one
}

// NewMesh opens the election port and begins to dial the other servers.
func NewMesh(o Options) (*Mesh, error) {
	m := &Mesh{o: o.filled(), remotes: map[ensemble.ServerID]*remote{}}
	m.notices = notice.New(m.o.Log)
	m.handshakes = &handshakes{timeout: m.o.HandshakeTimeout}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.own = electionAddresses(o.ID, o.Membership)
	if len(m.own) == 0 {
		return nil, fmt.Errorf("server %d is not in the membership: add its server.%[1]d line, or correct myid", o.ID)
	}
	var err error
	m.ports, err = openPorts(m.o, m.notices, "election", local(m.own, o.ListenOnAll), m.accept)
	if err != nil {
		return nil, err
	}
	m.SetMembership(o.Membership, nil)
	return m, nil
}

// Failure returns why this server does not listen at one of its election addresses; nil: it does. Each attempt to
// open an address again may change it. It may be called at any time.
func (m *Mesh) Failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ports.failure()
}

// Figures returns the counters. It may be called at any time.
func (m *Mesh) Figures() *Figures { return &m.figures }

// electionAddresses returns the election addresses of a server in all memberships.
func electionAddresses(id ensemble.ServerID, memberships ...*ensemble.Membership) []string {
	return addresses(id, ensemble.Address.Election, memberships)
}

func addresses(id ensemble.ServerID, of func(ensemble.Address) string, memberships []*ensemble.Membership) []string {
	var out []string
	for _, m := range memberships {
		if m == nil {
			continue
		}
		s, _ := m.Server(id)
		for _, a := range s.Addresses {
			if address := of(a); !slices.Contains(out, address) {
				out = append(out, address)
			}
		}
	}
	return out
}

// SetMembership sets the servers of the ensemble; proposed (or nil) are those that may
// soon belong to it. It dials new servers, closes the connections of those that left, and
// moves the port if this server's address has changed. Only one goroutine at a time may
// call it.
func (m *Mesh) SetMembership(committed, proposed *ensemble.Membership) {
	wanted := map[ensemble.ServerID][]string{}
	for _, ms := range []*ensemble.Membership{committed, proposed} {
		if ms == nil {
			continue
		}
		for _, s := range ms.Servers() {
			wanted[s.ID] = electionAddresses(s.ID, committed, proposed)
		}
	}
	own := electionAddresses(m.o.ID, committed, proposed)
	delete(wanted, m.o.ID)
	keep := func(id ensemble.ServerID) bool {
		return isVoter(m.o.ID, committed, proposed) || isVoter(id, committed, proposed)
	}
	m.adopt(wanted, keep)
	m.move(own)
}

func isVoter(id ensemble.ServerID, memberships ...*ensemble.Membership) bool {
	return slices.ContainsFunc(memberships, func(m *ensemble.Membership) bool {
		return m != nil && m.IsVoter(id)
	})
}

// adopt adds the wanted servers and drops former members. If nothing has to be sent, a
// connection is kept only if one of the two servers votes, because observers send each other
// nothing (ZOOKEEPER-1807).
func (m *Mesh) adopt(wanted map[ensemble.ServerID][]string, keep func(ensemble.ServerID) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	for id, r := range m.remotes {
		if _, ok := wanted[id]; !ok && !r.stranger {
			m.drop(r)
		}
	}
	for id, addresses := range wanted {
		r := m.remotes[id]
		if r == nil {
			r = m.add(id)
		}
		if !slices.Equal(r.addresses, addresses) {
			r.backoff, r.next = retryMin, r.earliest(0)
		}
		r.stranger, r.addresses, r.keep = false, addresses, keep(id)
		r.wakeRun()
	}
}

// move makes this server listen at its present address. A server that is no longer a member
// continues to listen at its last address.
func (m *Mesh) move(own []string) {
	m.mu.Lock()
	old := m.ports
	moved := len(own) > 0 && !slices.Equal(own, m.own) && !m.closed
	if moved {
		m.own = own
	}
	m.mu.Unlock()
	if !moved {
		return
	}
	old.close()
	opened := openPortsLater(m.o, m.notices, "election", local(own, m.o.ListenOnAll), m.accept)
	m.mu.Lock()
	m.ports = opened
	closed := m.closed
	m.mu.Unlock()
	if closed {
		opened.close()
	}
}

// add makes a remote and starts its goroutine. The caller holds the lock.
func (m *Mesh) add(id ensemble.ServerID) *remote {
	r := newRemote(m, id)
	m.remotes[id] = r
	m.done.Go(r.run)
	return r
}

// drop removes a remote and closes its connection. The caller holds the lock.
func (m *Mesh) drop(r *remote) {
	delete(m.remotes, r.id)
	r.cancel()
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}

// Send queues a notification for a server, in place of one that is not sent yet. If there
// is no connection the server is dialled at once. Nothing is sent to a server that is
// neither a member nor connected.
func (m *Mesh) Send(to ensemble.ServerID, n peerwire.Notification) {
	if n.Version >= peerwire.NotificationConfig && n.Config == "" {
		n.Version = peerwire.NotificationPlain // ZooKeeper servers ignore all votes after an empty configuration
	}
	frame := wire.AppendFrame(nil, &n)
	if len(frame) > peerwire.ElectionFrameMax {
		m.o.Log.Error("a notification is too long to be sent", "bytes", len(frame), "max", peerwire.ElectionFrameMax)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.remotes[to]
	if r == nil || m.closed {
		m.figures.Dropped.Add(1)
		return
	}
	if r.slot != nil {
		m.figures.Replaced.Add(1)
	}
	r.slot = frame
	if r.conn != nil {
		r.conn.wakeWriter()
		return
	}
	r.dialSoon()
}

// Close ends all connections and waits for all goroutines.
func (m *Mesh) Close() {
	m.mu.Lock()
	m.closed = true
	opened := m.ports
	m.mu.Unlock()
	opened.close() // first, so that servers that see their connection end are refused when they dial
	m.handshakes.close()
	m.mu.Lock()
	for _, r := range slices.Collect(maps.Values(m.remotes)) {
		m.drop(r)
	}
	m.mu.Unlock()
	m.cancel()
	m.done.Wait()
	m.notices.Close()
}

// accept handles a new connection; it does not block.
func (m *Mesh) accept(c net.Conn) { m.handshakes.add(c, m.welcome) }

// refuse closes a connection and logs why. If the other side has closed it, as it does
// when this server's dial was faster, nothing is logged.
func (m *Mesh) refuse(from net.Conn, id ensemble.ServerID, why string, err error) {
	if endedRemotely(err) {
		return
	}
	m.o.refused(&m.figures)
	args := []any{"err", err}
	if id != peerwire.NoServer {
		args = append(args, "sid", id)
	}
	m.notices.Say(slog.LevelWarn, why, from.RemoteAddr().String(), args...)
}

// errClosed is the reason for the end of a connection that this server closes.
var errClosed = errors.New("this server closed the connection")

// The errors for ids that another server must not have.
var (
	errNoID   = errors.New("a server id cannot be negative")
	errSameID = errors.New("correct myid of one of the two")
)
