package server

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/driver"
	"bellwether/internal/ensemble"
	"bellwether/internal/metrics"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Status holds the most important figures for an operator.
type Status struct {
	Mode     string // standalone, leader, follower or observer; looking if there is no leader
	Peer     string // zk_peer_state; empty on a standalone server
	ReadOnly bool   // writes are refused: there is no space for the log, or no quorum
	Reason   string // why writes are refused; empty if they are not or there is no quorum
	// Prefers is the server to which this leader will transfer leadership, once that server has
	// been fit to lead for PrefersFor; peerwire.NoServer: none.
	Prefers    ensemble.ServerID
	PrefersFor time.Duration
	// Disk is the call that the disk has not answered; nil if it answers. SlowCall is how long the
	// longest call of the last minutes took if the disk is slow, else 0.
	Disk     *SlowDisk
	SlowCall time.Duration
	// GivesWay says why another server should lead; empty if this one can.
	GivesWay string
	// Differs says that the tree is known to differ from the leader's; empty if it is not.
	Differs string
	// ClosedPort says why the election port is not open; empty if it is.
	ClosedPort string
	// Busy is how long the loop has been carrying out one batch, if that is long; else 0.
	Busy time.Duration
	// Unfit names the learners of this leader that say that they should not lead; empty: none.
	Unfit string
	// Latencies of all requests since the last reset, in ms.
	LatencyMin, LatencyAverage, LatencyMax float64
	Received, Sent                         int64
	Connections                            int
	Outstanding                            int64
	Responses                              ProposalSizes // of replies
	AuthFailed                             int64         // logins of clients that failed
	SlowSyncs                              int64         // fsyncs that took longer than the warning threshold
	Zxid                                   wire.Zxid
	Uptime                                 time.Duration
	Nodes                                  int64          // counted as in ZooKeeper
	Proposals                              *ProposalSizes // only on a leader
	// ClientCertificate and QuorumCertificate are the times at which the first certificate of
	// this server or of its issuers expires; zero: no port of that kind uses TLS.
	ClientCertificate, QuorumCertificate time.Time
}

// noSpace is the reason for which a standalone server refuses writes.
const noSpace = "no space for the transaction log"

// Status returns the current figures.
func (s *Server) Status() Status {
	f := s.stats.latency()
	o := Status{
		Mode: "standalone", Prefers: peerwire.NoServer, ReadOnly: s.readOnly.Load(),
		LatencyMin: f.Min, LatencyAverage: f.Average, LatencyMax: f.Max,
		Received: s.stats.packetsReceived.Value(), Sent: s.stats.packetsSent.Value(),
		Connections: s.conns.len(), Outstanding: s.inProcess.Load(),
		Zxid: s.Tree().LastZxid(), Nodes: s.Tree().Counts().Nodes, Disk: s.disk.slow(), SlowCall: s.disk.slowest(), Busy: s.busy.busy(),
		Responses:  ProposalSizes{s.stats.response.last.Load(), s.stats.response.least(), s.stats.response.most()},
		AuthFailed: s.stats.authFailed.Value(), SlowSyncs: s.stats.slowSyncs.Value(), Uptime: time.Since(s.start),
	}
	if o.ReadOnly {
		o.Reason = noSpace
	}
	if st := s.ReplicaStatus(); st != nil {
		o.Mode, o.Peer, o.ReadOnly, o.Reason = mode(st), peerState(st), st.ReadOnly, st.Disabled
		o.GivesWay, o.Differs, o.Unfit = st.GivesWay, st.Differs, st.Unfit
		o.Prefers, o.PrefersFor = st.Prefers, time.Duration(st.PrefersMS)*time.Millisecond
		if st.Serving && o.Mode == "leader" { // an epoch starts with a zxid of its own
			o.Zxid = max(o.Zxid, wire.MakeZxid(st.Epoch, 0))
		}
	}
	if s.member != nil && s.member.mesh != nil {
		if err := s.member.mesh.Failure(); err != nil {
			o.ClosedPort = err.Error()
		}
	}
	o.ClientCertificate, o.QuorumCertificate = expires(s.certs.clients), expires(s.certs.servers)
	if s.member != nil && o.Mode == "leader" {
		p := &s.member.stats.proposal
		o.Proposals = &ProposalSizes{p.last.Load(), p.least(), p.most()}
	}
	return o
}

// Partial says why the server serves only in part: all reasons; empty if there are none.
// Package fourletter knows some of them by their first words.
func (s *Status) Partial() (why []string) {
	if s.Disk != nil {
		why = append(why, s.SlowDiskText())
	}
	if s.Busy > 0 {
		why = append(why, fmt.Sprintf("its main loop has been busy with one batch for %v", s.Busy.Round(time.Millisecond)))
	}
	if s.Differs != "" {
		why = append(why, s.Differs)
	}
	if s.ClosedPort != "" {
		why = append(why, s.ClosedPort)
	}
	if s.GivesWay != "" {
		why = append(why, "another server should lead: "+s.GivesWay)
	}
	return why
}

// SlowDiskText describes the disk that does not answer, which must not be nil, the
// consequence, and what an operator can do.
func (s *Status) SlowDiskText() string {
	follows := "this server takes no part in elections"
	if s.Mode == "standalone" {
		follows = "writes wait"
	}
	return fmt.Sprintf("the disk does not answer: %v; until it answers, %s; check the device and its file system", s.Disk, follows)
}

// ProposalSizes are in bytes; -1 if there was no proposal.
type ProposalSizes struct{ Last, Min, Max int64 }

// Serving reports whether the server serves clients. It is also true if the server is
// read-only, and so serves only clients that accept this. It is false while the server
// loads its data, and from when it begins to stop.
func (s *Server) Serving() bool {
	serves, _ := s.Service()
	return serves
}

// Service returns what Serving returns, and whether only reads are answered. Both are of the
// same moment: a server that stops being read-only may serve no clients for a while.
func (s *Server) Service() (serves, readOnly bool) {
	if s.member == nil {
		return s.serving.Load(), s.readOnly.Load()
	}
	st := s.ReplicaStatus()
	if st == nil || !st.Serving && !st.ReadOnly {
		return false, false
	}
	return s.serving.Load(), st.ReadOnly
}

// Config returns the configuration in force. The caller must not change it.
func (s *Server) Config() *config.Config { return s.config() }

// Tree returns the server's current tree, for its counts and lists. In an ensemble
// another tree may replace it.
func (s *Server) Tree() *tree.Tree { return s.tree.Load() }

// Sizes returns the sizes of the files on disk.
func (s *Server) Sizes() (store.Sizes, error) { return s.store.Sizes() }

// Metrics returns all figures.
func (s *Server) Metrics() *metrics.Registry { return s.stats.registry }

// ResetStats carries out the four-letter word srst.
func (s *Server) ResetStats() { s.stats.reset() }

// Connection describes a client connection: its line in the answer to the four-letter word
// cons, and what it costs.
type Connection struct {
	Addr        netip.AddrPort
	Secure      bool           // it came to secureClientPort
	Session     wire.SessionID // 0: none yet
	Established time.Time
	Timeout     time.Duration
	Queued      int64 // requests in process
	Received    int64
	Sent        int64
	BytesIn     int64 // of requests
	BytesOut    int64 // of replies and events
	Waiting     int   // bytes of replies and events in memory that the client has not taken yet
	Watches     int   // number of paths that it watches
	WatchBytes  int   // memory of these watches
	Identities  []wire.ID
	TLS         bool
	LastOp      wire.OpCode
	LastXid     int32     // negative: none
	LastZxid    wire.Zxid // -1: none
	LastReply   time.Duration
	Answered    int64 // number of requests that the latencies cover
	// Latencies in ms.
	LastLatency, MinLatency, AverageLatency, MaxLatency int64
	Deadline                                            time.Time // when it is closed if nothing more is heard from it
}

// Connections lists the open connections, oldest first.
func (s *Server) Connections() []Connection {
	conns := s.conns.all()
	slices.SortFunc(conns, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	out := make([]Connection, len(conns))
	for i, c := range conns {
		out[i] = c.describe()
	}
	return out
}

// ResetConnections carries out the four-letter word crst.
func (s *Server) ResetConnections() {
	for _, c := range s.conns.all() {
		c.out.mu.Lock()
		c.out.traffic.reset()
		c.out.mu.Unlock()
	}
}

// describe describes the connection.
func (c *conn) describe() Connection {
	c.out.mu.Lock()
	t, waiting := c.out.traffic, c.out.holds()
	c.out.mu.Unlock()
	ms := func(ns int64) int64 { return ns / int64(time.Millisecond) }
	tls, ok := c.net.(*secureConn)
	o := Connection{
		Addr: c.addr, Secure: ok && !tls.unified, Session: c.Session(), Established: c.srv.wallAt(t.made),
		Timeout: time.Duration(c.timeout.Load()) * time.Millisecond,
		Queued:  int64(c.outstanding.Load()), Received: t.received, Sent: t.sent,
		LastOp: t.lastOp, LastXid: t.lastXid, LastZxid: t.lastZxid, LastReply: time.Duration(t.lastAt),
		BytesIn: t.bytesIn, BytesOut: t.bytesOut, Waiting: waiting, Identities: c.Identities(), TLS: c.encrypted(),
		Answered: t.count, LastLatency: ms(t.last), MaxLatency: ms(t.max),
	}
	o.Watches, o.WatchBytes = c.srv.Tree().WatchCost(c)
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

// wallAt returns the wall time at a moment of the server's clock.
func (s *Server) wallAt(clock int64) time.Time { return s.start.Add(time.Duration(clock)) }

// Expiring holds the sessions that expire together at time At unless they are heard from.
type Expiring struct {
	At       time.Time
	Sessions []wire.SessionID
}

// Sessions lists all sessions grouped by the time at which they expire. It asks the loop
// and returns nil when the server ends. In an ensemble only the leader knows these times.
func (s *Server) Sessions() []Expiring { return s.expiring((*replica.Replica).Expiring) }

// LocalSessions is like Sessions, for the local sessions.
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

// clampMS converts ms to ns without overflow.
func clampMS(ms int64) int64 {
	return min(ms, math.MaxInt64/int64(time.Millisecond)) * int64(time.Millisecond)
}

// ask calls a function on the loop's goroutine and waits for it. It does nothing if the
// loop does not run.
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
