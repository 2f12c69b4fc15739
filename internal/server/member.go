package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

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

// member is what a server of an ensemble has in addition: the connections to the other
// servers, and the snapshots that arrive on them.
type member struct {
	srv  *Server
	keep int // number of transactions kept in memory to bring learners up to date
	core *replica.Member

	stats *teamStats
	mesh  *peer.Mesh
	links *peer.Links

	listens atomic.Bool // the quorum port should be open
	port    sync.Mutex  // held while the port is opened or closed

	pinged atomic.Int64 // clock time at which the oldest unanswered ping arrived; 0: there is none

	// standing is a copy of the replica's standing for all goroutines but the loop.
	standing atomic.Pointer[replica.Standing]
	news     news // announces changes of standing

	mu sync.Mutex
	// received holds the trees that arrived after a SNAP, until they are installed or
	// their links end. A learner has one link, so there is rarely more than one.
	received map[zab.LinkID]*tree.Tree
	// ends holds the remote address of each link.
	ends map[zab.LinkID]string
	// voices holds the address from which each server sends notifications.
	voices map[ensemble.ServerID]string
}

// newMember returns the member for a configuration; nil if the server is standalone.
func newMember(s *Server) *member {
	c := s.config()
	if c.Standalone() {
		return nil
	}
	return &member{srv: s, stats: newTeamStats(s), keep: max(c.Ensemble.CommitLogCount, zab.KeepMin), received: map[zab.LinkID]*tree.Tree{},
		ends: map[zab.LinkID]string{}, voices: map[ensemble.ServerID]string{}}
}

// loaded sets the replica's options from what was found on the disk.
func (m *member) loaded(st *store.Store, res store.LoadResult, tail *logTail) error {
	epochs, err := st.Epochs()
	if err != nil {
		return err
	}
	c := &m.srv.config().Ensemble
	m.core = &replica.Member{
		Members: c.Members, Log: tail.log(), Accepted: epochs.Accepted, Current: epochs.Current,
		Unknown: res.LastZxid < 0, Initialized: res.Marked,
		KeepClients: c.KeepClients, InitLimit: int64(c.InitLimit), SyncLimit: int64(c.SyncLimit), DiskLog: c.SnapshotFactor >= 0,
		LocalSessions: c.LocalSessions, UpgradeLocal: c.UpgradeLocal,
		Aloof: !c.LeaderServes, ReadOnly: m.srv.config().ReadOnlyMode, ReadUncommitted: m.srv.config().ReadUncommitted, CounterMax: m.srv.opt.Seams.CounterMax,
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

// open opens the election port, and checks whether the quorum port can be opened. The
// quorum port is needed only when this server leads; without the check the operator would
// learn only then that another process uses it.
func (m *member) open() error {
	c := m.srv.config()
	// A connection between servers gets syncLimit ticks for its first message.
	first := c.Ensemble.ElectionRead
	if first <= 0 {
		first = time.Duration(c.Ensemble.SyncLimit) * c.TickTime
	}
	o := peer.Options{
		ID: c.Ensemble.ID, Membership: c.Ensemble.Members, Handle: m.handle, Log: m.srv.log,
		ListenOnAll: c.Ensemble.ListenOnAllIPs, ManyAddresses: c.Ensemble.MultiAddress,
		ConnectTimeout: c.Ensemble.ElectionConnect, HandshakeTimeout: first, ReadSnapshot: m.readSnapshot,
		Dial: m.srv.opt.Seams.Dial, Listen: m.srv.opt.Seams.Listen,
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
		m.links.CloseAll()
	}
	return err
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

// close closes all connections to other servers at about the same time, so that they look
// for a new leader without waiting for this server.
func (m *member) close() {
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
		m.goesTo(e.Link, e.Address)
		b.push(replica.Zab{Event: zab.Opened{Link: e.Link}}, nil)
	case peer.Linked:
		m.goesTo(e.Link, e.Address)
		b.follows(e.Link)
		b.push(replica.Linked{Leader: e.Leader, Link: e.Link}, nil)
	case peer.Received:
		m.arrived(e.Packets)
		if err := b.pushPackets(e.Link, e.Packets); err != nil {
			m.srv.log.Warn("closing a link between servers because the disk is slow; the learner reconnects", "peer", m.address(e.Link), "err", err)
			m.links.Close(e.Link)
		}
	case peer.Progress:
		b.push(replica.Zab{Event: zab.Progress{Link: e.Link}}, nil)
	case peer.Closed:
		b.closed(e.Link)
		b.push(replica.Zab{Event: zab.Closed{Link: e.Link, Why: e.Why}}, nil)
	}
}

// arrived records when a learner that serves was pinged. Other learners do not answer
// pings.
func (m *member) arrived(packets []*peerwire.QuorumPacket) {
	ping := func(p *peerwire.QuorumPacket) bool { return p.Type == peerwire.PacketPing }
	learns := func() bool {
		now := m.standing.Load()
		return now != nil && now.Serving && now.Role != peerwire.Leading
	}
	if m.pinged.Load() == 0 && slices.ContainsFunc(packets, ping) && learns() {
		m.pinged.Store(m.srv.clock())
	}
}

// beaten updates the figures for heartbeats if send contains any.
func (m *member) beaten(send []zab.Message, due int64) {
	if !slices.ContainsFunc(send, func(msg zab.Message) bool { return msg.Packet.Type == peerwire.PacketPing }) {
		return
	}
	now := m.srv.clock()
	if due > 0 {
		m.stats.beatLate.Observe(micro(now-due*int64(time.Millisecond)), 1)
	}
	if came := m.pinged.Swap(0); came > 0 && !m.stats.leading() {
		m.stats.beatAnswer.Observe(micro(now-came), 1)
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

// voicesMax bounds the number of servers whose address is kept.
const voicesMax = 1024

// heardFrom records the address from which a server sends notifications.
func (m *member) heardFrom(id ensemble.ServerID, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.voices) >= voicesMax {
		clear(m.voices)
	}
	m.voices[id] = address
}

// voice returns the address from which a server sends notifications.
func (m *member) voice(id ensemble.ServerID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.voices[id]
}

// forget drops what is kept about a link.
func (m *member) forget(link zab.LinkID) {
	m.takeReceived(link)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ends, link)
}

// goesTo records the remote address of a link.
func (m *member) goesTo(link zab.LinkID, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[link] = address
}

// address returns the remote address of a link.
func (m *member) address(link zab.LinkID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ends[link]
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
	m.links.SendSnapshot(link, msg.Packet, func(w io.Writer) error { return store.EncodeStream(w, snap) })
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
	s.archive.mu.RLock()
	txns, err := m.logBetween(q)
	s.archive.mu.RUnlock()
	if err != nil {
		s.log.Info("log on disk cannot bring the learner up to date; it gets a snapshot", "zxid", q.After, "err", err)
	}
	s.inbox.push(replica.Zab{Event: zab.LogRead{Link: q.Link, Txns: txns, OK: err == nil}}, nil)
}

// errLogLong: a snapshot is smaller than the log that the learner needs.
var errLogLong = errors.New("too much was logged since; a snapshot is sent instead")

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
		if reached = t.Zxid; reached == q.Through || m.srv.archive.urgent.Load() {
			break
		}
	}
	if reached < q.Through {
		return nil, fmt.Errorf("the log was read up to %v, but is needed up to %v", reached, q.Through)
	}
	return txns, nil
}

// Standing returns the server's standing in its ensemble; nil if it is standalone or has
// not started yet.
func (s *Server) Standing() *replica.Standing {
	if s.member == nil {
		return nil
	}
	return s.member.standing.Load()
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

// Learners describes the learners of a leader; nil if this server does not lead.
func (s *Server) Learners() (out []zab.LearnerStatus) {
	s.ask(func(l *loop) { out = l.replica.Learners() })
	return out
}

// pendingSyncs returns how many client syncs wait for their answer at this leader.
func (s *Server) pendingSyncs() (n int64) {
	s.ask(func(l *loop) { n = int64(l.replica.PendingSyncs()) })
	return n
}
