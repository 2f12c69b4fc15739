package replica

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// cluster is an ensemble without faults except those that a test injects: messages arrive in
// order and at once, and the log writer finishes in the same turn.
type cluster struct {
	t       *testing.T
	members *ensemble.Membership
	now     Time
	servers []*server
	links   map[zab.LinkID]*wireLink
	last    zab.LinkID
	clients map[ConnID]*client
	conns   ConnID // the last one assigned
	keep    bool   // clients survive a change of leaders
	// priorities are the leaderPriority of servers.
	priorities map[ensemble.ServerID]int
	reads      bool // a server without a quorum answers reads
	// uncommitted says that such a server answers reads from its whole log, even right
	// after its start.
	uncommitted bool
	reconfig    bool // the membership can change, by everybody
	guarded     bool // the membership can be changed only by those who may write its znode
	// containerCheckMS is how often empty containers are looked for; 0: never.
	containerCheckMS int64
	relays           int  // number of links that are accepted in place of the leader and closed
	masters          bool // followers serve observers
	local            bool // new sessions are local
	// compatible servers have no native extensions.
	compatible map[ensemble.ServerID]bool
	// delay selects events that are delivered only when release is called.
	delay   func(to *server, e Event) bool
	delayed []delivery
	away    *server   // its dials do not succeed
	remote  []*server // no dial to them succeeds
	spoils  *server   // its snapshots have other data in /x than its tree has, as if its memory were faulty
	// snapshots, sent and voted count the snapshots, the packets of learners and their leaders, and the notifications that were sent.
	snapshots, sent, voted int
	answered               func(*client, Output) // is told of each reply and turn; nil: nobody is
	told                   func(*server, Ready)  // is told of each Ready before it is carried out; nil: nobody is
	effected               func(*server, Output) // is told of each output; nil: nobody is
	silent                 map[*server]bool      // servers whose disks answer nothing
	unsaid                 []delivery            // the answers that the silent disks hold back until cluster.answer is called
	expireMax              int                   // how many sessions end in a turn; 0: the default
	refuses                map[*server]bool      // servers whose disks refuse the next epoch that they are to save as accepted
}

// delivery is an event that is not delivered yet.
type delivery struct {
	to *server
	e  Event
}

// server is one server and its disk, which loses nothing.
type server struct {
	id        ensemble.ServerID
	up        bool
	r         *Replica
	log       []*record.Txn
	snapshot  *tree.Tree // what a leader has sent, which the log follows; nil: nothing
	begin     wire.Zxid  // where the snapshot ends
	acc, cur  wire.Epoch
	listens   bool
	dials     ensemble.ServerID
	master    bool // it dials the observer master port
	observes  bool // it listens there
	wake      int64
	inbox     []Event
	spool     *tree.Tree
	seen      []Observation
	tickAfter int64  // ms by which its ticks come before those of others
	stopped   string // why the replica has stopped the server
	heartbeat int64  // when the last pings were due
}

type wireLink struct{ from, to *server }

type client struct {
	at      *server
	session wire.SessionID
	answer  Output // the answer to the Connect
	replies []Output
	closed  bool
}

func newCluster(t *testing.T, voters int, keep bool) *cluster {
	var ids []ensemble.ServerID
	for i := 1; i <= voters; i++ {
		ids = append(ids, ensemble.ServerID(i))
	}
	return newClusterOf(t, keep, ids...)
}

// newClusterOf starts an ensemble of voters with the given ids.
func newClusterOf(t *testing.T, keep bool, ids ...ensemble.ServerID) *cluster {
	var text bytes.Buffer
	for i, id := range ids {
		fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d:participant\n", id, 1001+i, 2001+i)
	}
	h := emptyCluster(t, keep, text.String())
	for _, id := range ids {
		h.start(h.add(id))
	}
	return h
}

// emptyCluster returns an ensemble with these server lines, of which no server exists yet.
func emptyCluster(t *testing.T, keep bool, lines string) *cluster {
	m, err := ensemble.Parse(lines)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, members: m, now: Time{Mono: 1000, Wall: 1_700_000_000_000},
		links: map[zab.LinkID]*wireLink{}, clients: map[ConnID]*client{}, keep: keep}
}

// add adds a server, which does not run yet.
func (h *cluster) add(id ensemble.ServerID) *server {
	s := &server{id: id}
	h.servers = append(h.servers, s)
	return s
}

// wipe removes everything from the disk.
func (s *server) wipe() { s.log, s.snapshot, s.begin, s.acc, s.cur = nil, nil, 0, 0, 0 }

func (h *cluster) start(s *server) {
	t := tree.New(tree.Options{Seed: uint64(s.id), Reconfig: h.reconfig, SkipACL: h.reconfig && !h.guarded})
	log := zab.NewLog(s.begin, 0)
	h.load(s, t)
	for _, txn := range s.log {
		if err := log.Append(txn); err != nil {
			h.t.Fatal(err)
		}
	}
	log.MarkApplied(log.Last())
	s.up, s.inbox, s.listens, s.dials, s.wake = true, nil, false, peerwire.NoServer, 0
	s.r = New(t, Options{ServerID: s.id, TickMS: 2000, ExpireMax: h.expireMax, ContainerCheckMS: h.containerCheckMS, ContainersPerMinute: 10_000, Member: &Member{Members: h.members, Reconfig: h.reconfig, VotersMin: 2, Log: log, Accepted: s.acc, Current: s.cur, KeepClients: h.keep, Priorities: h.priorities, ReadOnly: h.reads, ReadUncommitted: h.uncommitted,
		ObserverMasters: h.masters, CompatibleOnly: h.compatible[s.id], LocalSessions: h.local, UpgradeLocal: h.local}}, h.now)
	for _, o := range h.servers {
		if o != s && o.up {
			o.inbox, s.inbox = append(o.inbox, Vote{election.Up{Server: s.id}}), append(s.inbox, Vote{election.Up{Server: o.id}})
		}
	}
}

// restart stops all servers and starts them again, so that they elect a leader.
func (h *cluster) restart() {
	for _, s := range h.servers {
		h.kill(s)
	}
	h.run(500)
	for _, s := range h.servers {
		h.start(s)
	}
	h.run(1000)
}

// kill stops a server: its links break, and dials to it are refused.
func (h *cluster) kill(s *server) {
	s.up, s.listens, s.observes = false, false, false
	for _, id := range slices.Sorted(maps.Keys(h.links)) {
		l := h.links[id]
		if l.from == s || l.to == s {
			h.breakLink(id)
		}
	}
	for id, c := range h.clients {
		if c.at == s {
			c.closed = true
			delete(h.clients, id)
		}
	}
	for _, o := range h.servers {
		o.inbox = append(o.inbox, Vote{election.Down{Server: s.id}})
	}
}

func (h *cluster) breakLink(id zab.LinkID) {
	l := h.links[id]
	if l == nil {
		return
	}
	delete(h.links, id)
	for _, s := range []*server{l.from, l.to} {
		s.inbox = append(s.inbox, Zab{zab.Closed{Link: id, Why: "end of file"}})
	}
}

// run lets the given number of ms pass and delivers everything that is due.
func (h *cluster) run(ms int64) {
	for end := h.now.Mono + ms; ; {
		for h.turn() {
		}
		if h.now.Mono >= end {
			return
		}
		h.now.Mono++
		h.now.Wall++
		for _, s := range h.servers {
			if s.up && (h.now.Mono+s.tickAfter)%500 == 0 {
				s.inbox = append(s.inbox, Tick{})
			}
		}
	}
}

func (h *cluster) turn() (busy bool) {
	for _, s := range h.servers {
		if !s.up {
			s.inbox = nil
			continue
		}
		if h.now.Mono >= s.wake && len(s.inbox) == 0 {
			s.inbox = append(s.inbox, Wake{})
		}
		if len(s.inbox) > 0 {
			busy = true
			h.batch(s)
		}
		if h.dial(s) {
			busy = true
		}
	}
	return busy
}

func (h *cluster) dial(s *server) bool {
	if s.dials == peerwire.NoServer || s == h.away {
		return false
	}
	to := h.server(s.dials)
	if s.master && !to.observes || !s.master && !to.listens || slices.Contains(h.remote, to) {
		return false
	}
	h.last++
	s.dials = peerwire.NoServer
	if h.relays > 0 {
		h.relays--
		s.inbox = append(s.inbox, Linked{to.id, h.last}, Zab{zab.Closed{Link: h.last, Why: "end of file"}})
		return true
	}
	h.links[h.last] = &wireLink{s, to}
	s.inbox = append(s.inbox, Linked{to.id, h.last})
	to.inbox = append(to.inbox, Zab{zab.Opened{Link: h.last}})
	return true
}

func (h *cluster) batch(s *server) {
	events := s.inbox
	s.inbox = nil
	for _, e := range events {
		if h.delay != nil && h.delay(s, e) {
			h.delayed = append(h.delayed, delivery{s, e})
			continue
		}
		s.r.Step(h.now, e)
		if err := s.r.check(); err != nil {
			h.t.Fatalf("server %d after %T: %v", s.id, e, err)
		}
	}
	for again := true; again; again = s.r.Unsettled() {
		h.carryOut(s, s.r.Ready())
	}
}

// packets returns a function for cluster.delay that selects the packets that one server
// sends to another on the links of learners.
func (h *cluster) packets(from, to *server) func(*server, Event) bool {
	return func(at *server, e Event) bool {
		z, ok := e.(Zab)
		if !ok || at != to {
			return false
		}
		r, ok := z.Event.(zab.Received)
		return ok && h.links[r.Link] != nil && h.links[r.Link].from == from
	}
}

// release delivers everything that was delayed.
func (h *cluster) release() {
	h.delay = nil
	for _, d := range h.delayed {
		d.to.inbox = append(d.to.inbox, d.e)
	}
	h.delayed = nil
}

func (h *cluster) carryOut(s *server, rd Ready) {
	if h.told != nil {
		h.told(s, rd)
	}
	for _, d := range rd.Duties {
		h.duty(s, d)
	}
	for {
		o, ok := s.r.Next()
		if !ok {
			break
		}
		h.effect(s, o)
	}
	h.sent, h.voted = h.sent+len(rd.Send), h.voted+len(rd.Votes)
	for _, m := range rd.Votes {
		if to := h.server(m.To); to.up {
			to.inbox = append(to.inbox, Vote{election.Heard{From: s.id, Notification: m.Notification}})
		}
	}
	for _, m := range rd.Send {
		l := h.links[m.Link]
		if l == nil {
			continue
		}
		to := l.to
		if to == s {
			to = l.from
		}
		if m.Snapshot {
			to.spool = h.copy(s.r.tree)
			h.snapshots++
			if s == h.spoils {
				to.spool.Apply(&record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpSetData, Zxid: 1},
					Body: &record.SetDataTxn{Path: "/x", Data: []byte("wrong"), Version: 77}})
				to.spool.Discard()
			}
		}
		to.inbox = append(to.inbox, Zab{zab.Received{Link: m.Link, Packet: m.Packet}})
	}
	for _, id := range rd.Close {
		h.breakLink(id)
	}
	if rd.Stop != "" {
		s.stopped = rd.Stop
		h.kill(s)
	}
	for _, q := range rd.ReadLog {
		s.inbox = append(s.inbox, Zab{zab.LogRead{Link: q.Link}})
	}
	if s.r.Status().Serving && s.r.tree.Fuzzy() {
		s.r.tree.Settled() // as the server does
	}
	s.listens, s.dials, s.wake = rd.Listen, rd.Dial, rd.Wake
	s.heartbeat = max(s.heartbeat, rd.HeartbeatDue)
	s.observes, s.master = rd.ListenObservers, rd.DialMaster
	s.seen = append(s.seen, rd.Observations...)
	for _, x := range rd.Observations {
		h.t.Logf("%6d server %d: %v", h.now.Mono, s.id, x)
	}
}

// server returns the server with an id.
func (h *cluster) server(id ensemble.ServerID) *server {
	return h.servers[slices.IndexFunc(h.servers, func(s *server) bool { return s.id == id })]
}

// copy builds a tree from the snapshot of another one.
func (h *cluster) copy(from *tree.Tree) *tree.Tree {
	t := tree.New(tree.Options{Seed: 1})
	h.fill(t, from)
	return t
}

// fill loads the snapshot of a tree, as a leader sends it, into a new one.
func (h *cluster) fill(t, from *tree.Tree) {
	var b bytes.Buffer
	snap := from.Snapshot()
	if _, err := store.EncodeSnapshot(&b, snap.Zxid(), snap, store.Options{}); err != nil {
		h.t.Fatal(err)
	}
	l := t.Loader()
	l.Reset()
	if _, err := store.DecodeSnapshot(&b, snap.Zxid(), l); err != nil {
		h.t.Fatal(err)
	}
	l.CloseFuzzy() // the tree that was sent may be later than the leader has said
}

// load loads what is on a server's disk into a new tree. The snapshot may contain transactions of the log.
func (h *cluster) load(s *server, t *tree.Tree) {
	if s.snapshot != nil {
		h.fill(t, s.snapshot)
	}
	for _, txn := range s.log {
		t.Apply(txn)
	}
}

func (h *cluster) duty(s *server, d Duty) {
	answer := func(e Event) {
		if h.silent[s] {
			h.unsaid = append(h.unsaid, delivery{s, e})
			return
		}
		s.inbox = append(s.inbox, e)
	}
	if d.SaveAccepted != 0 && h.refuses[s] {
		delete(h.refuses, s)
		answer(Zab{zab.Refused{Zxid: s.r.member.log.Last(), Generation: d.Generation, Why: "no space"}})
		return
	}
	if d.SaveAccepted != 0 {
		s.acc = d.SaveAccepted
		answer(Zab{zab.Saved{Accepted: s.acc, Generation: d.Generation}})
	}
	if d.Truncate != nil {
		s.log = s.log[:slices.IndexFunc(append(slices.Clone(s.log), &record.Txn{TxnHeader: record.TxnHeader{Zxid: 1 << 62}}),
			func(t *record.Txn) bool { return t.Zxid > d.Truncate.Zxid })]
	}
	if d.Rebuild {
		t := tree.New(tree.Options{Seed: 1})
		h.load(s, t)
		answer(Rebuilt{t})
	}
	if d.Install != nil {
		for _, txn := range d.Install.Txns {
			s.spool.Apply(txn)
		}
		s.snapshot, s.begin, s.log = h.copy(s.spool), d.Install.Zxid, nil
		answer(Rebuilt{s.spool})
		answer(Zab{zab.Installed{Zxid: d.Install.Zxid, Generation: d.Generation}})
	}
	if s.log = append(s.log, d.Append...); len(d.Append) > 0 || d.Sync {
		z := s.begin
		if n := len(s.log); n > 0 {
			z = s.log[n-1].Zxid
		}
		answer(Synced{z, d.Generation})
	}
	if d.SaveCurrent != 0 {
		s.cur = d.SaveCurrent
		answer(Zab{zab.Saved{Current: s.cur, Generation: d.Generation}})
	}
}

// answer makes a silent disk answer again.
func (h *cluster) answer(s *server) {
	delete(h.silent, s)
	for _, d := range h.unsaid {
		d.to.inbox = append(d.to.inbox, d.e)
	}
	h.unsaid = nil
	s.inbox = append(s.inbox, DiskAnswered{})
}

func (h *cluster) effect(s *server, o Output) {
	if h.effected != nil {
		h.effected(s, o)
	}
	c := h.clients[o.Conn]
	if c == nil {
		return
	}
	switch o.Kind {
	case Attached:
		c.session, c.answer = o.Session, o
	case Reply, Turn:
		c.replies = append(c.replies, o)
		if h.answered != nil {
			h.answered(c, o)
		}
	case Close:
		c.closed = true
		delete(h.clients, o.Conn)
	}
}

// connect opens a client connection, with a new session or an earlier one.
func (h *cluster) connect(s *server, session wire.SessionID) (*client, ConnID) {
	pw := session.Password()
	return h.ask(s, Connect{Session: session, Password: pw[:], TimeoutMS: 6000})
}

// ask opens a client connection with the given Connect.
func (h *cluster) ask(s *server, e Connect) (*client, ConnID) {
	h.conns++
	id := h.conns
	c := &client{at: s}
	h.clients[id] = c
	e.Conn = id
	s.inbox = append(s.inbox, e)
	h.run(300)
	return c, id
}

func (h *cluster) create(s *server, conn ConnID, xid int32, path string) {
	body := wire.Append(nil, &wire.CreateRequest{Path: path, ACL: wire.OpenACL()})
	s.inbox = append(s.inbox, &Request{Conn: conn, Xid: xid, Op: wire.OpCreate, Body: body})
}

// follower returns the first server that does not lead.
func (h *cluster) follower() *server {
	leader := h.leader()
	return h.servers[slices.IndexFunc(h.servers, func(s *server) bool { return s != leader })]
}

// leader returns the only server that leads and serves.
func (h *cluster) leader() *server {
	var found *server
	for _, s := range h.servers {
		if st := s.r.Status(); s.up && st.Role == peerwire.Leading && st.Serving {
			if found != nil {
				h.t.Fatal("two leaders")
			}
			found = s
		}
	}
	if found == nil {
		h.t.Fatal("no leader")
	}
	return found
}
