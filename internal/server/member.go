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

// member is what a server of an ensemble has beside: the connections to the
// other servers, and the snapshots that come over them.
type member struct {
	srv  *Server
	keep int // transactions that are remembered to bring learners up to date
	mind *replica.Member

	stats *teamStats
	mesh  *peer.Mesh
	links *peer.Links

	listens atomic.Bool // the quorum port is to be open
	port    sync.Mutex  // held while it is opened or closed

	pinged atomic.Int64 // the clock when the oldest ping that is not answered came; 0: there is none

	// standing is how the server stands, for who is not the loop.
	standing atomic.Pointer[replica.Standing]
	news     news // of it

	mu sync.Mutex
	// received are the trees that came behind SNAPs, until they are installed
	// or their links end. A learner has one link, so there is hardly ever more
	// than one.
	received map[zab.LinkID]*tree.Tree
	// ends are where links go to, until they end.
	ends map[zab.LinkID]string
	// voices is where notifications come from.
	voices map[ensemble.ServerID]string
}

// newMember returns the member that a configuration asks for; nil: alone.
func newMember(s *Server) *member {
	c := s.config()
	if c.Standalone() {
		return nil
	}
	return &member{srv: s, stats: newTeamStats(s), keep: max(c.Ensemble.CommitLogCount, zab.KeepMin), received: map[zab.LinkID]*tree.Tree{},
		ends: map[zab.LinkID]string{}, voices: map[ensemble.ServerID]string{}}
}

// loaded notes what was found on the disk.
func (m *member) loaded(st *store.Store, res store.LoadResult, tail *logTail) error {
	epochs, err := st.Epochs()
	if err != nil {
		return err
	}
	c := &m.srv.config().Ensemble
	m.mind = &replica.Member{
		Members: c.Members, Log: tail.log(), Accepted: epochs.Accepted, Current: epochs.Current,
		Unknown: res.LastZxid < 0, Initialized: res.Marked,
		KeepClients: c.KeepClients, InitLimit: int64(c.InitLimit), SyncLimit: int64(c.SyncLimit), DiskLog: c.SnapshotFactor >= 0,
		LocalSessions: c.LocalSessions, UpgradeLocal: c.UpgradeLocal,
		Aloof: !c.LeaderServes, ReadOnly: m.srv.config().ReadOnlyMode, ReadUncommitted: m.srv.config().ReadUncommitted, CounterMax: m.srv.opt.Seams.CounterMax,
	}
	return nil
}

// withoutHistory takes back the epoch of a history that is not there any more:
// a vote would put it above what others have kept. What was promised to leaders
// stands. It comes before the snapshot of the empty tree, which would hide that
// anything was lost.
func (m *member) withoutHistory(st *store.Store) error {
	epochs, err := st.Epochs()
	if err != nil || epochs.Current == 0 {
		return err
	}
	m.srv.log.Warn("there is neither a snapshot nor a log, though there was a history: it counts as lost", "currentEpoch", epochs.Current)
	return st.SetCurrentEpoch(0)
}

// open opens the election port, and sees whether the quorum port can be opened:
// that happens when this server leads, too late for an operator to hear that
// somebody else has it. Learner links follow when there is a leader.
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

// openPort opens or closes the quorum port, on a goroutine of its own: its
// address may be a name, and nobody knows how long it takes to be told that.
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

// close ends all connections to other servers, at once and together: the
// others are to look for a leader without waiting for this one.
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

// meshFirst is how long the end of a leader's links waits for the end of its
// election port: who looks for another leader is then refused there, and knows
// that no vote is to be waited for.
const meshFirst = 5 * time.Millisecond

// handle takes the events of the connections to the inbox, which holds back the
// reader of a connection that brings too much, or ends it.
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
			m.srv.log.Warn("a link between servers ends because of a slow disk; it is made anew", "peer", m.address(e.Link), "err", err)
			m.links.Close(e.Link)
		}
	case peer.Progress:
		b.push(replica.Zab{Event: zab.Progress{Link: e.Link}}, nil)
	case peer.Closed:
		b.closed(e.Link)
		b.push(replica.Zab{Event: zab.Closed{Link: e.Link, Why: e.Why}}, nil)
	}
}

// arrived notes when a learner that serves was pinged; another one does not answer.
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

// beaten accounts for the pings, or the answers to pings, among what is sent.
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

// readSnapshot reads what follows a SNAP into a tree of its own, on the
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

// measure has the queue of a learner measured once it has said who it is.
func (m *member) measure(link zab.LinkID, p *peerwire.QuorumPacket) {
	var info peerwire.LearnerInfo
	if wire.Decode(p.Data, &info) != nil {
		return
	}
	key := strconv.FormatInt(int64(info.Server), 10)
	m.links.Measure(link, m.stats.queueSize.Of(key), m.stats.queueTime.Of(key))
}

// voicesMax bounds the servers of which it is known where they speak from.
const voicesMax = 1024

// heardFrom notes where a server speaks from.
func (m *member) heardFrom(id ensemble.ServerID, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.voices) >= voicesMax {
		clear(m.voices)
	}
	m.voices[id] = address
}

// voice is where a server speaks from.
func (m *member) voice(id ensemble.ServerID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.voices[id]
}

// forget drops what is kept of a link.
func (m *member) forget(link zab.LinkID) {
	m.takeReceived(link)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ends, link)
}

// goesTo notes where a link goes to.
func (m *member) goesTo(link zab.LinkID, address string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[link] = address
}

// address is where a link goes to.
func (m *member) address(link zab.LinkID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ends[link]
}

// takeReceived gives the tree that came over a link away, nil if there is none.
func (m *member) takeReceived(link zab.LinkID) *tree.Tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.received[link]
	delete(m.received, link)
	return t
}

// send queues a packet, with a snapshot of the tree behind it where asked.
func (m *member) send(msg zab.Message) {
	link := msg.Link
	if !msg.Snapshot {
		m.links.Send(link, msg.Packet)
		return
	}
	snap := m.srv.Tree().Snapshot()
	m.links.SendSnapshot(link, msg.Packet, func(w io.Writer) error { return store.EncodeStream(w, snap) })
}

// Bounds of what is read of the log on disk for one learner; one that needs
// more gets a snapshot.
const (
	logReadMax      = 1 << 20  // transactions
	logReadBytesMax = 64 << 20 // of them together, about
)

// readLog answers a question for the log on disk, on a goroutine of its own.
func (m *member) readLog(q zab.ReadLog) {
	s := m.srv
	s.archive.mu.RLock()
	txns, err := m.logBetween(q)
	s.archive.mu.RUnlock()
	if err != nil {
		s.log.Info("a learner cannot be brought up to date from the log on disk", "zxid", q.After, "err", err)
	}
	s.inbox.push(replica.Zab{Event: zab.LogRead{Link: q.Link, Txns: txns, OK: err == nil}}, nil)
}

// errLogLong: a snapshot is shorter.
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
		return nil, fmt.Errorf("it was read up to %v, not to %v", reached, q.Through)
	}
	return txns, nil
}

// Standing is how the server stands in its ensemble; nil if it is alone or
// has not begun yet.
func (s *Server) Standing() *replica.Standing {
	if s.member == nil {
		return nil
	}
	return s.member.standing.Load()
}

// Election is the record of an election, and the time at which it began.
type Election struct {
	election.Record
	Began time.Time
}

// Elections returns the last elections as this server saw them, oldest first,
// the running one last; nil if it is alone.
func (s *Server) Elections() (out []Election) {
	s.ask(func(l *loop) {
		for _, r := range l.replica.Elections() {
			out = append(out, Election{r, s.wallAt(clampMS(r.Began))})
		}
	})
	return out
}

// Learners describes the learners of a leader; nil where this is none.
func (s *Server) Learners() (out []zab.LearnerStatus) {
	s.ask(func(l *loop) { out = l.replica.Learners() })
	return out
}

// pendingSyncs is how many syncs wait for their answer at this leader.
func (s *Server) pendingSyncs() (n int64) {
	s.ask(func(l *loop) { n = int64(l.replica.PendingSyncs()) })
	return n
}
