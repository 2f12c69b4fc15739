package zab

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// world is a network of servers. They run the machines of this package, and their disks lose what was not
// fsynced when a server crashes. The model chooses each leader itself: the server with the best vote of a
// quorum. Each field of faults breaks one rule on purpose.
type world struct {
	now     int64
	members *ensemble.Membership
	nodes   []*node
	links   []*testConn
	nextID  LinkID
	marks   int32 // number that makes each transaction different
	rnd     *rand.Rand

	history []*record.Txn // all transactions that any server has shown to clients
	leaders map[wire.Epoch]ensemble.ServerID
	needs   map[uint64]int                       // by the token of a sync: how many transactions its server must then have shown
	touched map[wire.SessionID]ensemble.ServerID // by session: the leader that has received its touch
	touches uint64                               // how many sessions were touched: session n with token n
	since   map[wire.Epoch]int64                 // when the leader of an epoch was established
	wrong   string
	output  []string
	plain   bool
	trace   bool // packets are part of the output
	keep    func(*LeaderOptions)
	faults  faults
	masters bool // followers serve observers

	confirmed, answered int // how many touches were confirmed, and how many TOUCHes were answered by a leader
}

// faults are deliberate faults, each of which breaks one rule. The checks must notice every one.
type faults struct {
	syncedEarly  bool // the log writer reports Synced before the fsync
	epochEarly   bool // currentEpoch is saved before the log is durable
	acceptedLost bool // acceptedEpoch is not saved
	minority     bool // a leader counts itself as a quorum
	noTruncate   bool // truncations are not carried out
	worstVote    bool // the worst vote wins, and learners conceal their history
	snapshotOld  bool // snapshots lack the newest transaction
	lossyLinks   bool // links lose a packet in the middle
	fakePings    bool // pings count as answered although no follower has received them
}

// node is one server.
type node struct {
	id        ensemble.ServerID
	up        bool
	disk      disk
	writer    []duty
	log       *Log
	acc, cur  wire.Epoch
	gen       uint64
	leader    *Leader
	learner   *Learner
	under     ensemble.ServerID
	tree      []*record.Txn // transactions that are applied
	fresh     []*record.Txn // transactions of an installed snapshot that are not shown yet
	old       []*record.Txn // the tree before the last Install
	shown     int           // number of transactions of tree that clients may have seen
	spool     []*record.Txn // the snapshot that was received last
	serving   bool
	syncs     []uint64
	confirmed uint64
	touches   []uint64 // tokens of touches of this term that are not confirmed
	inputs    []Input
	gaveUp    string
	above     wire.Epoch
}

// disk is the disk of a server: what survives a crash, and what may survive it.
type disk struct {
	snapshot          []*record.Txn
	base              wire.Zxid
	log               []*record.Txn
	synced            int
	accepted, current wire.Epoch
}

func (d *disk) last() wire.Zxid {
	if n := len(d.log); n > 0 {
		return d.log[n-1].Zxid
	}
	return d.base
}

func (d *disk) durable() wire.Zxid {
	if d.synced > 0 {
		return d.log[d.synced-1].Zxid
	}
	return d.base
}

// duty is one thing that the log writer must do. The machine is told when it is done.
type duty struct {
	what string
	gen  uint64
	do   func() Event
}

// testConn is a connection: the packets on their way in both directions, and which ends have not noticed
// yet that it is broken.
type testConn struct {
	id         LinkID
	lrn, ldr   *node
	up, down   []packet // packets on their way to the leader, and to the learner
	cut        bool
	lrnL, ldrL bool // whether the end of the learner, or of the leader, has closed the connection
}

type packet struct {
	p        *peerwire.QuorumPacket
	snapshot []*record.Txn
}

func newWorld(seed uint64, voters, observers int) *world {
	var servers []ensemble.Server
	w := &world{leaders: map[wire.Epoch]ensemble.ServerID{}, needs: map[uint64]int{}, touched: map[wire.SessionID]ensemble.ServerID{}, since: map[wire.Epoch]int64{}, rnd: rand.New(rand.NewPCG(seed, 1)), now: 1000}
	for i := 1; i <= voters+observers; i++ {
		s := ensemble.Server{ID: ensemble.ServerID(i), Addresses: []ensemble.Address{{Host: "h", QuorumPort: i, ElectionPort: 100 + i}}}
		if i > voters {
			s.Role = ensemble.Observer
		}
		servers = append(servers, s)
		w.nodes = append(w.nodes, &node{id: ensemble.ServerID(i)})
	}
	m, err := ensemble.New(ensemble.Definition{Servers: servers})
	if err != nil {
		panic(err)
	}
	w.members = m
	for _, n := range w.nodes {
		w.start(n)
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

func (w *world) tell(n *node, format string, args ...any) {
	w.output = append(w.output, fmt.Sprintf("%6d ms  %d  %s", w.now-1000, n.id, fmt.Sprintf(format, args...)))
}

// start starts a server. It makes the tree from the whole log on disk.
func (w *world) start(n *node) {
	d := &n.disk
	d.synced = len(d.log)
	d.current = max(d.current, d.last().Epoch()) // as the store does: the log proves that the server has adopted this epoch
	n.up, n.log, n.acc, n.cur = true, NewLog(d.base, 0), d.accepted, d.current
	n.tree = slices.Concat(d.snapshot, d.log)
	n.fresh, n.shown, n.writer = nil, 0, nil
	for _, t := range d.log {
		if err := n.log.Append(t); err != nil {
			w.fail("server %d: the log on disk has a gap: %v", n.id, err)
			return
		}
	}
	n.log.MarkApplied(n.log.Last())
}

// crash ends a server. Of the records that were not fsynced, the first keep ones survive.
func (w *world) crash(n *node, keep int) {
	w.leave(n)
	n.up, n.writer = false, nil
	n.disk.log = n.disk.log[:min(len(n.disk.log), n.disk.synced+keep)]
	w.tell(n, "crashes")
}

// leave ends a role and its connections.
func (w *world) leave(n *node) {
	n.leader, n.learner, n.serving, n.touches = nil, nil, false, nil
	for _, c := range w.links {
		if c.lrn == n {
			c.lrnL, c.cut = true, true
		}
		if c.ldr == n {
			c.ldrL, c.cut = true, true
		}
	}
	w.sweep()
}

func (w *world) sweep() {
	w.links = slices.DeleteFunc(w.links, func(c *testConn) bool { return c.lrnL && c.ldrL })
}

func (w *world) terms(n *node) TermStart {
	n.gen++
	return TermStart{ID: n.id, Accepted: n.acc, Current: n.cur, Generation: n.gen, Committed: w.members, TickMS: 1000, InitLimit: 10, SyncLimit: 5}
}

// lead makes a server the leader.
func (w *world) lead(n *node) {
	o := LeaderOptions{TermStart: w.terms(n), CompatibleOnly: w.plain, Above: n.above}
	if w.keep != nil {
		w.keep(&o)
	}
	if w.faults.minority {
		o.Committed = alone(n.id)
	}
	n.leader = NewLeader(w.now, o, n.log)
	w.tell(n, "begins to lead, log ends at %v", n.log.Last())
	w.ready(n)
}

func alone(id ensemble.ServerID) *ensemble.Membership {
	m, err := ensemble.New(ensemble.Definition{Servers: []ensemble.Server{{ID: id, Addresses: []ensemble.Address{{Host: "h", QuorumPort: 1, ElectionPort: 2}}}}})
	if err != nil {
		panic(err)
	}
	return m
}

// join connects a server to a leader.
func (w *world) join(n, leader *node) { w.joinAt(n, leader, leader) }

// joinAt connects a server to a leader or, as an observer, to a follower of it.
func (w *world) joinAt(n, at, leader *node) {
	w.nextID++
	c := &testConn{id: w.nextID, lrn: n, ldr: at}
	w.links = append(w.links, c)
	s, _ := w.members.Server(n.id)
	n.under = leader.id
	n.learner = NewLearner(w.now, LearnerOptions{
		TermStart: w.terms(n), Link: c.id, Leader: leader.id, Observer: s.Role == ensemble.Observer,
		Master: at.id, ServeObservers: w.masters, DiskLog: w.masters,
	}, n.log)
	w.step(at, Opened{c.id})
	w.ready(n)
}

// step gives an event to a machine and carries out the Ready that follows.
func (w *world) step(n *node, e Event) {
	switch {
	case n.leader != nil:
		n.leader.Step(w.now, e)
	case n.learner != nil:
		n.learner.Step(w.now, e)
	default:
		return
	}
	w.ready(n)
}

func (w *world) ready(n *node) {
	var r Ready
	var err error
	if n.leader != nil {
		r, err = n.leader.Ready(), n.leader.check()
	} else {
		r, err = n.learner.Ready(), n.learner.check()
	}
	if err != nil && w.faults == (faults{}) { // with a deliberate fault, only the checks of the model are to notice it
		w.fail("server %d: %v", n.id, err)
	}
	for _, h := range r.Observations {
		w.tell(n, "%v", h)
	}
	n.gen = r.Generation
	w.write(n, &r)
	w.apply(n, &r)
	for _, m := range r.Send {
		w.send(n, m)
	}
	for _, id := range r.Close {
		w.hangUp(n, id)
	}
	n.inputs = append(n.inputs, r.Inputs...)
	n.syncs = append(n.syncs, r.Syncs...)
	for _, token := range r.Syncs {
		if n.shown < w.needs[token] {
			w.fail("server %d has answered a sync with %d transactions, %d were shown before", n.id, n.shown, w.needs[token])
		}
	}
	for _, in := range r.Inputs {
		for _, s := range in.Touched {
			w.touched[s.Session] = n.id
		}
	}
	w.checkConfirmed(n, r.Confirmed)
	n.confirmed = max(n.confirmed, r.Confirmed)
	if n.leader != nil {
		w.answer(n, &r)
	}
	for _, q := range r.ReadLog {
		w.step(n, readLog(n, q))
	}
	if r.Rebuild {
		w.rebuild(n)
	}
	if r.GiveUp != "" {
		n.gaveUp, n.above = r.GiveUp, r.Above
		w.leave(n)
	}
}

// answer plays the rest of a server: every session is valid, and syncs are answered in order.
func (w *world) answer(n *node, r *Ready) {
	for _, in := range r.Inputs {
		switch {
		case in.Revalidation != nil:
			w.step(n, Revalidated{Link: in.Link, Question: in.Question, Answer: peerwire.Revalidated{Session: in.Revalidation.Session, Valid: true}})
		case in.Request != nil && in.Request.Op == wire.OpSync:
			w.step(n, Sync{Link: in.Link})
		case in.Request != nil:
			w.propose(n)
		}
		if n.leader == nil {
			return
		}
	}
}

func readLog(n *node, q ReadLog) Event {
	var out []*record.Txn
	met := n.disk.base == q.After
	for _, t := range n.disk.log[:n.disk.synced] {
		if met && t.Zxid <= q.Through {
			out = append(out, t)
		}
		met = met || t.Zxid == q.After
	}
	return LogRead{Link: q.Link, Txns: out, OK: met}
}

// apply adds committed transactions to the tree.
func (w *world) apply(n *node, r *Ready) {
	if est := r.Established; est != nil {
		if est.Installed {
			n.tree, n.fresh = n.fresh, nil
		}
		if n.fresh != nil {
			w.fail("server %d does not show what was installed", n.id)
		}
		n.serving = true
	}
	for _, t := range r.Commit {
		if k := len(n.tree); k > 0 && !follows(n.tree[k-1].Zxid, t.Zxid) {
			w.fail("server %d applies %v after %v", n.id, t.Zxid, n.tree[k-1].Zxid)
		}
		n.tree = append(n.tree[:len(n.tree):len(n.tree)], t)
	}
	if len(r.Commit) > 0 && !n.serving {
		w.fail("server %d applies before it serves", n.id)
	}
	if n.serving {
		w.show(n)
	}
	if r.Established != nil && n.leader != nil {
		w.established(n, r.Established)
	}
}

// show compares what clients of a server may see now with the history that other servers have shown.
func (w *world) show(n *node) {
	for i := n.shown; i < len(n.tree); i++ {
		switch {
		case i >= len(w.history):
			w.history = append(w.history, n.tree[i])
		case w.history[i].Zxid != n.tree[i].Zxid || w.history[i].Time != n.tree[i].Time:
			w.fail("server %d shows %v as number %d, others showed %v", n.id, n.tree[i].Zxid, i, w.history[i].Zxid)
		}
	}
	if len(n.tree) < n.shown {
		w.fail("server %d no longer shows transactions that clients have seen", n.id)
	}
	n.shown = len(n.tree)
}

// established checks that an epoch has one leader, and that the leader has everything that was shown in
// earlier epochs. A leader that is established late may lack what a later leader has committed: it then
// finds no quorum for its own proposals.
func (w *world) established(n *node, est *Established) {
	if id, ok := w.leaders[est.Epoch]; ok {
		w.fail("servers %d and %d are both established in epoch %d", id, n.id, est.Epoch)
	}
	w.leaders[est.Epoch], w.since[est.Epoch] = n.id, w.now
	if have := len(n.tree); have < len(w.history) && w.history[have].Zxid.Epoch() < est.Epoch {
		w.fail("leader %d of epoch %d lacks %v", n.id, est.Epoch, w.history[have].Zxid)
	}
	if n.disk.current != est.Epoch && !w.faults.epochEarly {
		w.fail("leader %d of epoch %d has epoch %d on its disk", n.id, est.Epoch, n.disk.current)
	}
}

// send puts a packet on its link. First it checks that the sender keeps what the packet promises.
func (w *world) send(n *node, m Message) {
	c := w.link(m.Link)
	if c != nil && n == c.ldr && w.faults.fakePings && m.Packet.Type == peerwire.PacketPing {
		c.up = append(c.up, packet{p: &peerwire.QuorumPacket{Type: peerwire.PacketPing}})
		return
	}
	if c == nil || c.cut {
		return
	}
	p := packet{p: m.Packet}
	if m.Snapshot {
		p.snapshot = slices.Clone(n.tree)
		if n.fresh != nil {
			p.snapshot = slices.Clone(n.fresh)
		}
		if k := len(p.snapshot); w.faults.snapshotOld && k > 0 {
			p.snapshot = p.snapshot[:k-1]
		}
	}
	if n == c.lrn {
		w.checkPromise(n, m.Packet)
		c.up = append(c.up, p)
		return
	}
	if m.Packet.Type == peerwire.PacketLeaderInfo && n.disk.accepted != m.Packet.Zxid.Epoch() && !w.faults.acceptedLost {
		w.fail("leader %d tells epoch %v before it is saved", n.id, m.Packet.Zxid)
	}
	w.checkConfirmation(n, m.Packet)
	c.down = append(c.down, p)
}

// touch reports a session to a learner that serves. A client may wait for its confirmation.
func (w *world) touch(n *node) {
	if n.learner == nil || !n.serving {
		return
	}
	w.touches++
	s := []peerwire.TouchedSession{{Session: wire.SessionID(w.touches), TimeoutMS: 4000}}
	n.touches = append(n.touches, w.touches)
	w.step(n, Touched{Sessions: s, Token: w.touches, Waits: w.rnd.IntN(2) == 0})
}

// checkConfirmed checks that the leader of a learner has received the sessions that count as confirmed.
func (w *world) checkConfirmed(n *node, token uint64) {
	for ; n.learner != nil && len(n.touches) > 0 && n.touches[0] <= token; n.touches = n.touches[1:] {
		if by := w.touched[wire.SessionID(n.touches[0])]; by != n.under {
			w.fail("server %d takes session %d for confirmed by leader %d, which has not received its touch", n.id, n.touches[0], n.under)
		}
		w.confirmed++
	}
}

// checkConfirmation checks that no later leader was established before the time for which the lease of a leader that
// confirms sessions counts.
func (w *world) checkConfirmation(n *node, p *peerwire.QuorumPacket) {
	var info peerwire.PingInfo
	asked := p.Type == peerwire.PacketTouch
	if n.leader == nil || !asked && p.Type != peerwire.PacketPing || wire.Decode(p.Data, &info) != nil || info.Confirmed == 0 {
		return
	}
	if asked {
		w.answered++
	} else if w.now > n.leader.Lease() {
		return // it repeats a number
	}
	for e, at := range w.since {
		if e > n.leader.epoch && at < w.now-n.leader.opt.LeaseMS {
			w.fail("leader %d of epoch %d confirms sessions %d ms after the leader of epoch %d was established", n.id, n.leader.epoch, w.now-at, e)
		}
	}
}

func (w *world) checkPromise(n *node, p *peerwire.QuorumPacket) {
	z := p.Zxid
	switch {
	case p.Type == peerwire.PacketAckEpoch && !n.learner.acceptedBefore && n.disk.accepted != n.learner.epoch && !w.faults.acceptedLost:
		w.fail("server %d promises epoch %d with %d on its disk", n.id, n.learner.epoch, n.disk.accepted)
	case p.Type != peerwire.PacketAck || w.faults.syncedEarly:
	case z.Counter() == 0 && n.disk.current != z.Epoch():
		w.fail("server %d acknowledges epoch %d with %d on its disk", n.id, z.Epoch(), n.disk.current)
	case z.Counter() == 0 && n.learner.step == adopted && n.disk.durable() < n.log.Last():
		w.fail("server %d acknowledges the history up to %v, durable is %v", n.id, n.log.Last(), n.disk.durable())
	case z.Counter() != 0 && n.disk.durable() < z:
		w.fail("server %d acknowledges %v, durable is %v", n.id, z, n.disk.durable())
	}
}

func (w *world) link(id LinkID) *testConn {
	for _, c := range w.links {
		if c.id == id {
			return c
		}
	}
	return nil
}

// hangUp closes one end of a connection. The other end still receives the packets on their way.
func (w *world) hangUp(n *node, id LinkID) {
	if c := w.link(id); c != nil {
		c.cut = true
		c.lrnL, c.ldrL = c.lrnL || c.lrn == n, c.ldrL || c.ldr == n
		w.sweep()
	}
}

// deliver gives one end the next packet of a link or, after the last packet, the end of the link.
func (w *world) deliver(c *testConn, toLeader bool) {
	if toLeader {
		switch {
		case c.ldrL:
		case len(c.up) > 0:
			p := c.up[0]
			c.up = c.up[1:]
			w.arrive(c.lrn, c.ldr, p.p)
			w.step(c.ldr, Received{c.id, w.recode(p.p)})
		case c.cut:
			c.ldrL = true
			w.step(c.ldr, Closed{c.id, "reset"})
		}
	} else {
		switch {
		case c.lrnL:
		case len(c.down) > 0:
			p := c.down[0]
			c.down = c.down[1:]
			if p.p.Type == peerwire.PacketSnap {
				c.lrn.spool = p.snapshot
			}
			w.arrive(c.ldr, c.lrn, p.p)
			w.step(c.lrn, Received{c.id, w.recode(p.p)})
		case c.cut:
			c.lrnL = true
			w.step(c.lrn, Closed{c.id, "reset"})
		}
	}
	w.sweep()
}

// arrive gives a packet to a machine.
func (w *world) arrive(from, to *node, p *peerwire.QuorumPacket) {
	if w.trace && p.Type != peerwire.PacketPing {
		w.output = append(w.output, fmt.Sprintf("%6d ms  %d ▸ %d  %v %s", w.now-1000, from.id, to.id, p.Type, dotted(p.Zxid)))
	}
}

// recode encodes and decodes a packet.
func (w *world) recode(p *peerwire.QuorumPacket) *peerwire.QuorumPacket {
	q := new(peerwire.QuorumPacket)
	if err := wire.Decode(wire.Append(nil, p), q); err != nil {
		panic(err)
	}
	if w.faults.worstVote && p.Type == peerwire.PacketAckEpoch {
		q.Data = wire.Append(nil, &peerwire.EpochAck{})
	}
	return q
}

// propose makes a leader broadcast a transaction. It returns false if the leader cannot.
func (w *world) propose(n *node) bool {
	if n.leader == nil {
		return false
	}
	z, ok := n.leader.NextZxid()
	if !ok {
		return false
	}
	w.step(n, Propose{w.txn(z)})
	return true
}

// sync sends a sync to a server. Its answer must show everything that was shown before now.
func (w *world) sync(n *node) {
	if !n.serving {
		return
	}
	token := uint64(len(w.needs) + 1)
	w.needs[token] = len(w.history)
	w.step(n, Sync{Token: token, Request: Forward{Request: peerwire.ForwardedRequest{
		Session: 1, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"}),
	}}})
}

func (w *world) txn(z wire.Zxid) *record.Txn {
	w.marks++
	return &record.Txn{
		TxnHeader: record.TxnHeader{Session: 1, Cxid: w.marks, Zxid: z, Time: int64(w.marks), Type: wire.OpSetData},
		Body:      &record.SetDataTxn{Path: "/a", Version: w.marks},
	}
}

// settle lets everything happen that can without time passing.
func (w *world) settle() {
	for range 100_000 {
		if !w.progress() {
			return
		}
	}
	w.fail("the servers still exchange packets or have duties after 100,000 rounds")
}

func (w *world) progress() bool {
	moved := false
	for _, c := range slices.Clone(w.links) {
		for range len(c.up) + len(c.down) + 2 {
			w.deliver(c, true)
			w.deliver(c, false)
		}
		moved = moved || len(c.up)+len(c.down) > 0
	}
	for _, n := range w.nodes {
		for len(n.writer) > 0 && n.up {
			w.diskStep(n)
			moved = true
		}
	}
	return moved || slices.ContainsFunc(w.links, func(c *testConn) bool { return c.cut || len(c.up)+len(c.down) > 0 })
}

// pass lets time pass, with ticks.
func (w *world) pass(ms int64) {
	for end := w.now + ms; w.now < end; {
		w.now = min(end, w.now+50)
		for _, n := range w.nodes {
			w.step(n, Tick{})
		}
	}
}

// vote compares servers as an election does.
func vote(a, b *node) int {
	sa, sb := summary{a.cur, a.log.Last()}, summary{b.cur, b.log.Last()}
	switch {
	case sa.less(sb):
		return -1
	case sb.less(sa):
		return 1
	}
	return int(a.id - b.id)
}

// idle returns the servers that run and have no role.
func (w *world) idle() []*node {
	return slices.DeleteFunc(slices.Clone(w.nodes), func(n *node) bool { return !n.up || n.leader != nil || n.learner != nil })
}

// elect makes the best of these servers the leader if they are a quorum.
func (w *world) elect(from []*node) *node {
	from = slices.DeleteFunc(slices.Clone(from), func(n *node) bool { return !w.members.IsVoter(n.id) })
	up := func(id ensemble.ServerID) bool {
		return slices.ContainsFunc(from, func(n *node) bool { return n.id == id })
	}
	if !w.members.HasQuorum(up) {
		return nil
	}
	best := slices.MaxFunc(from, vote)
	if w.faults.worstVote {
		best = slices.MinFunc(from, vote)
	}
	w.lead(best)
	return best
}

// Serving reports whether the leader broadcasts transactions.
func (l *Leader) Serving() bool { return l.phase == serving }

// Serving reports whether the learner may serve clients and forward requests.
func (r *Learner) Serving() bool { return r.step == following }

// Applied returns the last transaction that was handed out for applying.
func (g *Log) Applied() wire.Zxid { return g.applied }
