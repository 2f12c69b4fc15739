package server

import (
	"bufio"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peer"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// member holds what a server of an ensemble has in addition: the connections to the other
// servers, and the snapshots that arrive on them.
type member struct {
	srv  *Server
	keep int // number of transactions kept in memory to bring learners up to date
	core *replica.Member

	files *store.MemberFiles // nil: the membership is in no file

	stats *memberStats
	mesh  *peer.Mesh
	links *peer.Links

	// securing is the context of all handshakes of TLS with other servers; endSecuring ends them.
	securing    context.Context
	endSecuring context.CancelFunc

	listens         atomic.Bool // the quorum port should be open
	servesObservers atomic.Bool // the observer master port should be open
	port            sync.Mutex  // held while a port is opened or closed

	pinged atomic.Int64 // clock time at which the oldest unanswered ping arrived; 0: there is none

	// status is a copy of the replica's status for all goroutines but the loop.
	status       atomic.Pointer[replica.Status]
	statusChange changeSignal // announces changes of the status

	mu sync.Mutex
	// received holds the trees that arrived after a SNAP, until they are installed or
	// their links end. A learner has one link, so there is rarely more than one.
	received map[zab.LinkID]*tree.Tree
	// remoteAddresses holds the remote address of each link.
	remoteAddresses map[zab.LinkID]string
	claims          claims
	// senders holds the address from which each server sends notifications.
	senders map[ensemble.ServerID]string
}

// newMember returns the member for a configuration; nil if the server is standalone.
func newMember(s *Server) *member {
	c := s.config()
	if c.Standalone() {
		return nil
	}
	securing, end := context.WithCancel(context.Background())
	return &member{srv: s, securing: securing, endSecuring: end, stats: newMemberStats(s), keep: max(c.Ensemble.CommitLogCount, zab.KeepMin), received: map[zab.LinkID]*tree.Tree{},
		claims:          claims{srv: s, unproved: map[zab.LinkID]*x509.Certificate{}},
		remoteAddresses: map[zab.LinkID]string{}, senders: map[ensemble.ServerID]string{}}
}

// loaded sets the replica's options from what was found on the disk.
func (m *member) loaded(st *store.Store, res store.LoadResult, tail *logTail) error {
	epochs, err := st.Epochs()
	if err != nil {
		return err
	}
	if err := m.openMemberFiles(); err != nil {
		return err
	}
	c := &m.srv.config().Ensemble
	votersMin := 1
	if c.StandaloneEnabled {
		votersMin = 2
	}
	m.core = &replica.Member{
		Members: c.Members, Reconfig: m.srv.changesMembers(), Logged: tail.logged.All, VotersMin: votersMin, Log: tail.log(), Accepted: epochs.Accepted, Current: epochs.Current,
		Unknown: res.LastZxid < 0, Initialized: res.Marked,
		Priorities: c.Priorities, PreferMS: m.srv.opt.Hooks.PreferMS,
		KeepClients: c.KeepClients, InitLimit: int64(c.InitLimit), SyncLimit: int64(c.SyncLimit), DiskLog: c.SnapshotFactor >= 0,
		LocalSessions: c.LocalSessions, UpgradeLocal: c.UpgradeLocal,
		ObserverMasters:       c.ObserverMasterPort > 0,
		NoClientsWhileLeading: !c.LeaderServes, ReadOnly: m.srv.config().ReadOnlyMode, ReadUncommitted: m.srv.config().ReadUncommitted, CounterMax: m.srv.opt.Hooks.CounterMax,
	}
	return nil
}

// withoutHistory resets currentEpoch if the history that it belongs to is lost: with it,
// a vote of this server would rank above servers that have kept their history. The
// acceptedEpoch that was promised to leaders stays. It must run before the snapshot of
// the empty tree is written, because that snapshot would hide the loss.
func (m *member) withoutHistory(st *store.Store) error {
	epochs, err := st.Epochs()
	if err != nil || epochs.Current == 0 {
		return err
	}
	m.srv.log.Warn("data directory has a currentEpoch, but neither a snapshot nor a log: the history is treated as lost", "currentEpoch", epochs.Current)
	return st.SetCurrentEpoch(0)
}

// packetMax is the longest packet that is taken from another server: a transaction, or a request
// of up to jute.maxbuffer with the identities of its client. A leader whose followers did not
// take its last transaction could not serve any more.
const packetMax = store.RecordMax + peerwire.PacketMax

// open opens the election port, and checks whether the quorum port can be opened. The
// quorum port is needed only when this server leads; without the check the operator would
// learn only then that another process uses it.
func (m *member) open() error {
	c := m.srv.config()
	o := peer.Options{
		ID: c.Ensemble.ID, Membership: c.Ensemble.Members, Handle: m.handle, Log: m.srv.log,
		ListenOnAll: c.Ensemble.ListenOnAllIPs, ManyAddresses: c.Ensemble.MultiAddress,
		ConnectTimeout: c.Ensemble.ElectionConnect, HandshakeTimeout: peerHandshakeMax(c), ReadSnapshot: m.readSnapshot, WithoutDigest: withoutDigest,
		ObserverPort: c.Ensemble.ObserverMasterPort, ObserverQueueMax: c.Ensemble.ObserverQueueMax,
		PacketMax: packetMax, Secure: m.srv.secureLinks(), Refused: m.stats.refused,
		Dial: m.srv.opt.Hooks.Dial, Listen: m.srv.opt.Hooks.Listen,
	}
	m.links = peer.NewLinks(o)
	var err error
	if c.Ensemble.Members.IsVoter(c.Ensemble.ID) {
		err = m.links.Try()
	}
	if err == nil {
		m.mesh, err = peer.NewMesh(o)
	}
	if err != nil {
		m.endSecuring()
		m.links.CloseAll()
	}
	return err
}

// peerHandshakeMax returns how long a connection between servers may take for its first
// message: syncLimit ticks, unless the configuration says otherwise. A server in an embedded ensemble
// has no syncLimit.
func peerHandshakeMax(c *config.Config) time.Duration {
	if c.Ensemble.ElectionRead > 0 {
		return c.Ensemble.ElectionRead
	}
	return cmp.Or(time.Duration(c.Ensemble.SyncLimit)*c.TickTime, peer.HandshakeDefault)
}

// openPort opens or closes the quorum port on a goroutine of its own, because resolving
// its address may take long.
func (m *member) openPort(open bool) {
	m.listens.Store(open)
	m.srv.writers.Go(func() {
		m.port.Lock()
		defer m.port.Unlock()
		if !m.listens.Load() {
			m.links.Unlisten()
		} else if err := m.links.Listen(); err != nil {
			m.srv.fail(err)
		}
	})
}

// openObserverPort opens or closes the observer master port, as openPort does with the quorum port. The
// server can do without the port, so a failure does not end it.
func (m *member) openObserverPort(open bool) {
	m.servesObservers.Store(open)
	m.srv.writers.Go(func() {
		m.port.Lock()
		defer m.port.Unlock()
		if !m.servesObservers.Load() {
			m.links.UnlistenObservers()
		} else if err := m.links.ListenObservers(); err != nil {
			m.srv.log.Error("this follower serves no observers", "err", err)
		}
	})
}

// close closes all connections to other servers at about the same time, so that they look
// for a new leader without waiting for this server.
func (m *member) close() {
	m.endSecuring()
	if m.mesh == nil {
		return
	}
	closed := make(chan struct{})
	go func() {
		m.mesh.Close()
		close(closed)
	}()
	first := time.NewTimer(meshFirst)
	defer first.Stop()
	select {
	case <-closed:
	case <-first.C:
	}
	m.links.CloseAll()
	<-closed
}

// meshFirst is how long the closing of a leader's links waits for the closing of its
// election port. A server that then looks for another leader is refused at that port, and
// so knows that it need not wait for this server's vote.
const meshFirst = 5 * time.Millisecond

// handle passes the events of the connections to the inbox, which may block or close a
// connection that sends too much.
func (m *member) handle(e peer.Event) {
	b := m.srv.inbox
	switch e := e.(type) {
	case peer.Heard:
		if e.First {
			m.heardFrom(e.From, e.Address)
		}
		b.pushHeard(election.Heard{From: e.From, First: e.First, Notification: e.Notification})
	case peer.Up:
		b.push(replica.Vote{Event: election.Up{Server: e.Server}}, nil)
	case peer.Down:
		b.push(replica.Vote{Event: election.Down{Server: e.Server}}, nil)
	case peer.RoundTrip:
		b.push(replica.Vote{Event: election.RoundTrip{Server: e.Server, Took: e.Took}}, nil)
	case peer.Opened:
		m.setRemoteAddress(e.Link, e.Address)
		m.claims.opened(e.Link, e.Conn)
		b.push(replica.Zab{Event: zab.Opened{Link: e.Link}}, nil)
	case peer.Linked:
		m.setRemoteAddress(e.Link, e.Address)
		b.follows(e.Link)
		b.push(replica.Linked{Server: e.Server, Link: e.Link}, nil)
	case peer.Received:
		if err := m.claims.check(e.Link, e.Packets[0]); err != nil {
			m.stats.refused.Add(1)
			m.srv.log.Warn("a learner is refused: its certificate does not belong to the server that it claims to be", "peer", m.address(e.Link), "err", err)
			m.links.Close(e.Link)
			return
		}
		m.arrived(e.Packets)
		if err := b.pushPackets(e.Link, e.Packets); err != nil {
			m.srv.log.Warn("closing a link between servers because the disk is slow; the learner reconnects", "peer", m.address(e.Link), "err", err)
			m.links.Close(e.Link)
		}
	case peer.Progress:
		b.push(replica.Zab{Event: zab.Progress{Link: e.Link}}, nil)
	case peer.Closed:
		m.claims.closed(e.Link)
		b.closed(e.Link)
		b.push(replica.Zab{Event: zab.Closed{Link: e.Link, Why: e.Why}}, nil)
	}
}

// arrived records that a ping has arrived, if this server is a learner that serves. Other
// learners do not answer pings.
func (m *member) arrived(packets []*peerwire.QuorumPacket) {
	ping := func(p *peerwire.QuorumPacket) bool { return p.Type == peerwire.PacketPing }
	learns := func() bool {
		now := m.status.Load()
		return now != nil && now.Serving && now.Role != peerwire.Leading
	}
	if m.pinged.Load() == 0 && slices.ContainsFunc(packets, ping) && learns() {
		m.pinged.Store(m.srv.clock())
	}
}

// observePings updates the figures for heartbeats if send contains any.
func (m *member) observePings(send []zab.Message, due int64) {
	if !slices.ContainsFunc(send, func(msg zab.Message) bool { return msg.Packet.Type == peerwire.PacketPing }) {
		return
	}
	now := m.srv.clock()
	if due > 0 {
		m.stats.pingLate.Observe(micro(now-due*int64(time.Millisecond)), 1)
	}
	if came := m.pinged.Swap(0); came > 0 && !m.stats.leading() {
		m.stats.pingAnswer.Observe(micro(now-came), 1)
	}
}

// readSnapshot reads the snapshot that follows a SNAP into a new tree. It runs on the
// link's goroutine.
func (m *member) readSnapshot(link zab.LinkID, p *peerwire.QuorumPacket, r *bufio.Reader) error {
	t := m.srv.newTree()
	loader := t.Loader()
	loader.Reset()
	if err := store.DecodeStream(r, p.Zxid, loader); err != nil {
		return err
	}
	loader.CloseFuzzy()
	m.srv.describe(t)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received[link] = t
	return nil
}

// measure starts to measure the send queue of a learner when the learner has sent its id.
func (m *member) measure(link zab.LinkID, p *peerwire.QuorumPacket) {
	var info peerwire.LearnerInfo
	if wire.Decode(p.Data, &info) != nil {
		return
	}
	key := strconv.FormatInt(int64(info.Server), 10)
	m.links.Measure(link, m.stats.queueSize.Of(key), m.stats.queueTime.Of(key))
}

// sendersMax bounds the number of servers whose address is kept.
const sendersMax = 1024

// heardFrom records the address from which a server sends notifications.
func (m *member) heardFrom(id ensemble.ServerID, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.senders) >= sendersMax {
		clear(m.senders)
	}
	m.senders[id] = address
}

// sender returns the address from which a server sends notifications.
func (m *member) sender(id ensemble.ServerID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.senders[id]
}

// forget drops what is kept about a link.
func (m *member) forget(link zab.LinkID) {
	m.takeReceived(link)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.remoteAddresses, link)
}

// setRemoteAddress records the remote address of a link.
func (m *member) setRemoteAddress(link zab.LinkID, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remoteAddresses[link] = address
}

// address returns the remote address of a link.
func (m *member) address(link zab.LinkID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remoteAddresses[link]
}

// takeReceived removes and returns the tree that arrived on a link; nil if there is none.
func (m *member) takeReceived(link zab.LinkID) *tree.Tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.received[link]
	delete(m.received, link)
	return t
}

// send queues a packet and, if asked for, a snapshot of the tree after it.
func (m *member) send(msg zab.Message) {
	link := msg.Link
	if !msg.Snapshot {
		m.links.Send(link, msg.Packet)
		return
	}
	snap := m.srv.Tree().Snapshot()
	m.links.SendSnapshot(link, msg.Packet, func(w io.Writer) (wire.Zxid, error) {
		err := store.EncodeStream(w, snap)
		through, _ := snap.Digest()
		return through, err
	})
}

// withoutDigest returns a packet as it is sent behind a snapshot that may already contain its transaction or later ones.
// The learner's tree then has another digest than the leader's had after the transaction, and ZooKeeper would report
// a wrong tree.
func withoutDigest(p *peerwire.QuorumPacket) *peerwire.QuorumPacket {
	data, next := p.Data, peerwire.Activation{}
	switch p.Type {
	case peerwire.PacketProposal, peerwire.PacketInform:
	case peerwire.PacketInformActivate:
		if wire.Decode(p.Data, &next) != nil {
			return p
		}
		data = next.Txn
	default:
		return p
	}
	txn, err := record.DecodeTxn(data)
	if err != nil || txn.Digest == nil {
		return p
	}
	txn.Digest = nil
	q := *p
	q.Data = txn.Append(nil)
	if p.Type == peerwire.PacketInformActivate {
		next.Txn = q.Data
		q.Data = wire.Append(nil, &next)
	}
	return &q
}

// Limits of what is read from the log on disk for one learner. A learner that needs more
// gets a snapshot.
const (
	logReadMax      = 1 << 20  // transactions
	logReadBytesMax = 64 << 20 // approximate total size
)

// readLog reads the log on disk for a learner. It runs on a goroutine of its own.
func (m *member) readLog(q zab.ReadLog) {
	s := m.srv
	s.historyLock.mu.RLock()
	txns, err := m.logBetween(q)
	s.historyLock.mu.RUnlock()
	if err != nil {
		s.log.Info("log on disk cannot bring the learner up to date; it gets a snapshot", "zxid", q.After, "err", err)
	}
	s.inbox.push(replica.Zab{Event: zab.LogRead{Link: q.Link, Txns: txns, OK: err == nil}}, nil)
}

// errLogLong: the learner needs more of the log than logReadMax and logReadBytesMax allow.
var errLogLong = errors.New("the log since then exceeds the limits of what is read for one learner")

func (m *member) logBetween(q zab.ReadLog) (txns []*record.Txn, err error) {
	bytes, reached := 0, q.After
	for t, err := range m.srv.store.ReadLog(q.After) {
		if err != nil {
			return nil, err
		}
		if t.Zxid > q.Through {
			break
		}
		bytes += len(t.Append(nil))
		if txns = append(txns, t); len(txns) > logReadMax || bytes > logReadBytesMax {
			return nil, errLogLong
		}
		if reached = t.Zxid; reached == q.Through || m.srv.historyLock.urgent.Load() {
			break
		}
	}
	if reached < q.Through {
		return nil, fmt.Errorf("the log could be read only up to %v, but is needed up to %v", reached, q.Through)
	}
	return txns, nil
}

// ReplicaStatus returns the server's status in its ensemble; nil if it is standalone or has
// not started yet.
func (s *Server) ReplicaStatus() *replica.Status {
	if s.member == nil {
		return nil
	}
	return s.member.status.Load()
}

// Election is the record of an election and the time at which it began.
type Election struct {
	election.Record
	Began time.Time
}

// Elections returns the most recent elections as this server saw them, oldest first. If
// an election is running, it is the last one. The result is nil for a standalone server.
func (s *Server) Elections() (out []Election) {
	s.ask(func(l *loop) {
		for _, r := range l.replica.Elections() {
			out = append(out, Election{r, s.wallAt(clampMS(r.Began))})
		}
	})
	return out
}

// servesObservers reports whether this server is a follower that serves observers.
func (s *Server) servesObservers() bool { return s.member.servesObservers.Load() }

// Learners describes the learners of a leader, or the observers that a follower serves.
func (s *Server) Learners() (out []zab.LearnerStatus) {
	s.ask(func(l *loop) { out = l.replica.Learners() })
	return out
}

// learnerLags returns, for each learner by its id, how many of the transactions that this
// leader has applied are not on the learner's disk yet.
func (s *Server) learnerLags() map[string]float64 {
	lags := map[string]float64{}
	s.ask(func(l *loop) {
		applied := l.replica.Applied()
		for _, k := range l.replica.Learners() {
			if len(lags) < keysMax {
				lags[strconv.FormatInt(int64(k.Server), 10)] = float64(txnsBetween(k.Acked, applied))
			}
		}
	})
	return lags
}

// txnsBetween returns how many transactions follow acked, up to last. From an earlier epoch
// only those of the epoch of last are counted, because the number of the others is not known.
func txnsBetween(acked, last wire.Zxid) uint32 {
	switch {
	case acked >= last:
		return 0
	case acked.Epoch() == last.Epoch():
		return last.Counter() - acked.Counter()
	}
	return last.Counter()
}

// PeerAddress returns the address from which another server has opened a link.
func (s *Server) PeerAddress(link zab.LinkID) string {
	if s.member == nil {
		return ""
	}
	return s.member.address(link)
}

// LinkTraffic returns what has passed over the link of a learner; all fields are zero if the link has ended.
func (s *Server) LinkTraffic(link zab.LinkID) peer.Traffic {
	if s.member == nil {
		return peer.Traffic{}
	}
	t, _ := s.member.links.Traffic(link)
	return t
}

// ResetLinkTraffic sets the counters of a learner's link to 0.
func (s *Server) ResetLinkTraffic(link zab.LinkID) {
	if s.member != nil {
		s.member.links.ResetTraffic(link)
	}
}

// pendingSyncs returns how many client syncs wait for their answer at this leader.
func (s *Server) pendingSyncs() (n int64) {
	s.ask(func(l *loop) { n = int64(l.replica.PendingSyncs()) })
	return n
}
