package server

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/driver"
	"bellwether/internal/metrics"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Status are the figures that an operator asks for first.
type Status struct {
	Mode     string // standalone, leader, follower, observer; looking where it has no leader
	Peer     string // zk_peer_state; empty: it is alone
	ReadOnly bool   // writes are refused: the log has no room, or there is no quorum
	Reason   string // why writes are refused; empty: they are not, or for want of a quorum
	// Disk is the call that the disk leaves unanswered; nil: it answers.
	Disk *SlowDisk
	// Latencies of all requests since the last reset, in ms.
	LatencyMin, LatencyAverage, LatencyMax float64
	Received, Sent                         int64
	Connections                            int
	Outstanding                            int64
	Zxid                                   wire.Zxid
	Nodes                                  int64          // as ZooKeeper counts them
	Proposals                              *ProposalSizes // of a leader
}

// noSpace is why a server that is alone refuses writes.
const noSpace = "no space for the transaction log"

// Status returns the figures now.
func (s *Server) Status() Status {
	f := s.stats.latency.Figures()
	o := Status{
		Mode: "standalone", ReadOnly: s.readOnly.Load(),
		LatencyMin: f.Min, LatencyAverage: f.Average, LatencyMax: f.Max,
		Received: s.stats.packetsReceived.Value(), Sent: s.stats.packetsSent.Value(),
		Connections: s.crowd.len(), Outstanding: s.inProcess.Load(),
		Zxid: s.Tree().LastZxid(), Nodes: s.Tree().Counts().Nodes, Disk: s.disk.slow(),
	}
	if o.ReadOnly {
		o.Reason = noSpace
	}
	if st := s.Standing(); st != nil {
		o.Mode, o.Peer, o.ReadOnly, o.Reason = mode(st), peerState(st), st.ReadOnly, st.Disabled
		if st.Serving && o.Mode == "leader" { // an epoch begins with a zxid of its own
			o.Zxid = max(o.Zxid, wire.MakeZxid(st.Epoch, 0))
		}
	}
	if s.member != nil && o.Mode == "leader" {
		p := &s.member.stats.proposal
		o.Proposals = &ProposalSizes{p.last.Load(), p.least(), p.most()}
	}
	return o
}

// ProposalSizes are in bytes, -1 where there was none.
type ProposalSizes struct{ Last, Min, Max int64 }

// Serving reports whether clients are served, be it only those that accept a
// read-only server: the data is loaded, and the server is not about to stop.
func (s *Server) Serving() bool {
	serves, _ := s.Service()
	return serves
}

// Service is Serving, and whether only reads are answered, as of one moment: a
// server that ceases to be read-only may serve nobody for a while.
func (s *Server) Service() (serves, readOnly bool) {
	if s.member == nil {
		return s.serving.Load(), s.readOnly.Load()
	}
	st := s.Standing()
	if st == nil || !st.Serving && !st.ReadOnly {
		return false, false
	}
	return s.serving.Load(), st.ReadOnly
}

// Config is the configuration in force. It must not be changed.
func (s *Server) Config() *config.Config { return s.config() }

// Tree is the server's tree now, for its counts and lists. In an ensemble
// another may take its place.
func (s *Server) Tree() *tree.Tree { return s.tree.Load() }

// Sizes are the bytes on disk.
func (s *Server) Sizes() (store.Sizes, error) { return s.store.Sizes() }

// Metrics are all figures.
func (s *Server) Metrics() *metrics.Registry { return s.stats.registry }

// ResetStats is what the word srst does.
func (s *Server) ResetStats() { s.stats.reset() }

// Connection is one line of the word cons.
type Connection struct {
	Addr        netip.AddrPort
	Session     wire.SessionID // 0: none yet
	Established time.Time
	Timeout     time.Duration
	Queued      int64 // requests in process
	Received    int64
	Sent        int64
	LastOp      wire.OpCode
	LastXid     int32     // negative: none
	LastZxid    wire.Zxid // -1: none
	LastReply   time.Duration
	Answered    int64 // requests that the latencies are of
	// Latencies in ms.
	LastLatency, MinLatency, AverageLatency, MaxLatency int64
	Deadline                                            time.Time // when it ends if nothing is heard of it
}

// Connections lists the open connections, the oldest first.
func (s *Server) Connections() []Connection {
	conns := s.crowd.all()
	slices.SortFunc(conns, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	out := make([]Connection, len(conns))
	for i, c := range conns {
		out[i] = c.describe()
	}
	return out
}

// ResetConnections is what the word crst does.
func (s *Server) ResetConnections() {
	for _, c := range s.crowd.all() {
		c.out.mu.Lock()
		c.out.traffic.reset()
		c.out.mu.Unlock()
	}
}

// describe is the connection's line.
func (c *conn) describe() Connection {
	c.out.mu.Lock()
	t := c.out.traffic
	c.out.mu.Unlock()
	ms := func(ns int64) int64 { return ns / int64(time.Millisecond) }
	o := Connection{
		Addr: c.addr, Session: c.Session(), Established: c.srv.wallAt(t.made),
		Timeout: time.Duration(c.timeout.Load()) * time.Millisecond,
		Queued:  int64(c.outstanding.Load()), Received: t.received, Sent: t.sent,
		LastOp: t.lastOp, LastXid: t.lastXid, LastZxid: t.lastZxid, LastReply: time.Duration(t.lastAt),
		Answered: t.count, LastLatency: ms(t.last), MaxLatency: ms(t.max),
	}
	if t.count > 0 {
		o.MinLatency, o.AverageLatency = ms(t.min), ms(t.total/t.count)
	}
	ends := time.Duration(t.made) + c.srv.config().Limits.Sessionless
	if heard := c.heard.Load(); o.Session != 0 && heard != driver.Sealed {
		ends = time.Duration(heard)*time.Millisecond + o.Timeout
	}
	o.Deadline = c.srv.wallAt(int64(ends))
	return o
}

// wallAt is the wall clock's time at a moment of the server's clock.
func (s *Server) wallAt(clock int64) time.Time { return s.start.Add(time.Duration(clock)) }

// Expiring are the sessions that expire together unless they are heard of.
type Expiring struct {
	At       time.Time
	Sessions []wire.SessionID
}

// Sessions lists all sessions by the time at which they expire. It asks the
// loop, and returns nil when the server ends. A server of an ensemble knows it
// while it leads.
func (s *Server) Sessions() []Expiring { return s.expiring((*replica.Replica).Expiring) }

// LocalSessions is Sessions for those that live on this server alone.
func (s *Server) LocalSessions() []Expiring { return s.expiring((*replica.Replica).ExpiringLocals) }

func (s *Server) expiring(list func(*replica.Replica) []tree.ExpiryBucket) []Expiring {
	var out []Expiring
	s.ask(func(l *loop) {
		for _, b := range list(l.replica) {
			ids := slices.Clone(b.Sessions)
			out = append(out, Expiring{s.wallAt(clampMS(b.Deadline)), ids})
		}
	})
	return out
}

// clampMS turns ms into ns without overflow.
func clampMS(ms int64) int64 {
	return min(ms, math.MaxInt64/int64(time.Millisecond)) * int64(time.Millisecond)
}

// ask has a question answered on the loop's goroutine, if there is one.
func (s *Server) ask(question func(*loop)) {
	if !s.serving.Load() {
		return
	}
	answered := make(chan struct{})
	s.inbox.ask(func(l *loop) {
		question(l)
		close(answered)
	})
	select {
	case <-answered:
	case <-s.loopEnded:
	}
}
