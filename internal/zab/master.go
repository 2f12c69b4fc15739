package zab

import (
	"fmt"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// observerMaster is the part of a follower that serves observers, so that they put no load
// on the leader (observerMasterPort). It exists while the follower serves. Each observer is
// synchronised with what this follower knows to be committed, and then gets every transaction
// when this follower learns of the commit. What observers send to their leader is passed
// on to the follower's own leader, with the Origin, and the answers are passed back
// (relay.go). Observers take no part in commits, so the follower's own part in the protocol
// is the same with and without them.
//
// There are two kinds of observers. If the leader, this follower and the observer are native
// peers, the observer treats the follower as it would treat the native leader: pings confirm
// touched sessions, and session-move transactions answer revalidations. Any other observer
// treats the follower as a ZooKeeper leader.
//
// Invariants: an observer is in links under its id, in order, and, from linkNamed on, in
// servers under its server. A server has one link. No transaction above upTo was sent to an
// observer, and every one that was committed since its synchronisation began.
type observerMaster struct {
	r       *Learner
	links   map[LinkID]*observer
	servers map[ensemble.ServerID]*observer
	order   []*observer // the links, in the order in which the observers connected
}

// observer is what a follower knows of one connection of an observer.
type observer struct {
	id     LinkID
	state  linkState
	server ensemble.ServerID
	native bool  // observer, follower and leader are native peers
	began  int64 // when the connection came
	heard  int64 // when the last packet came
	pinged int64 // when the last ping was sent

	peer wire.Zxid // the end of the observer's log when it connected
	how  SyncMode
	upTo wire.Zxid // the last transaction that was sent, or that the synchronisation contains

	reports     int64 // number of answers to pings and of TOUCHes
	confirmed   int64 // number of these reports whose sessions the leader has confirmed
	asked, told int64 // as on a link of the leader
	unconfirmed fifo.Queue[passedOn]

	unexpectedReported bool
}

// passedOn says that the sessions of an observer's report are in a report of this follower.
type passedOn struct {
	from int64 // number of the observer's report
	in   int64 // number of the follower's report
}

func newObserverMaster(r *Learner) *observerMaster {
	return &observerMaster{r: r, links: map[LinkID]*observer{}, servers: map[ensemble.ServerID]*observer{}}
}

// ServesObservers reports whether observers may connect to this follower.
func (r *Learner) ServesObservers() bool { return r.master != nil && r.step == following }

// Observers describes the observers of this follower in the order in which they connected,
// except those that have not said who they are.
func (r *Learner) Observers() (out []LearnerStatus) {
	if r.master == nil {
		return nil
	}
	for _, k := range r.master.order {
		if k.state > linkNew {
			out = append(out, LearnerStatus{
				Link: k.id, Server: k.server, Observer: true, Synced: k.state == linkServing, Native: k.native,
				Acked: k.upTo, HeardMS: r.now - k.heard,
			})
		}
	}
	return out
}

// step handles the events of the links of observers.
func (m *observerMaster) step(e Event) {
	switch e := e.(type) {
	case Opened:
		m.opened(e.Link)
	case Closed:
		if k := m.links[e.Link]; k != nil {
			m.forget(k, e.Why)
		}
	case Received:
		if k := m.links[e.Link]; k != nil {
			m.received(k, e.Packet)
		}
	case LogRead:
		m.logRead(e)
	}
}

func (k *observer) name() string {
	if k.state == linkNew {
		return fmt.Sprintf("connection %d", k.id)
	}
	return fmt.Sprintf("observer %d", k.server)
}

func (m *observerMaster) opened(id LinkID) {
	if id == m.r.opt.Link || m.links[id] != nil {
		return
	}
	k := &observer{id: id, heard: m.r.now, began: m.r.now}
	m.links[id] = k
	m.order = append(m.order, k)
}

// close closes all links, because the term of the follower ends.
func (m *observerMaster) close() {
	for _, k := range m.order {
		m.r.ready.Close = append(m.r.ready.Close, k.id)
	}
	clear(m.links)
	clear(m.servers)
	m.order = nil
}

// drop closes a link for a reason of this server.
func (m *observerMaster) drop(k *observer, why string) {
	m.r.ready.Close = append(m.r.ready.Close, k.id)
	m.forget(k, why)
}

// refuse closes a link because of what the observer has sent.
func (m *observerMaster) refuse(k *observer, why string) {
	m.r.ready.Close = append(m.r.ready.Close, k.id)
	m.remove(k)
	m.r.report(LearnerLost{Learner: k.name(), Why: why, Link: k.id, Nobody: k.state == linkNew, Refused: true})
}

// forget removes a link and reports its end.
func (m *observerMaster) forget(k *observer, why string) {
	m.remove(k)
	m.r.report(LearnerLost{Learner: k.name(), Why: why, Link: k.id, Nobody: k.state == linkNew})
}

func (m *observerMaster) remove(k *observer) {
	delete(m.links, k.id)
	if m.servers[k.server] == k {
		delete(m.servers, k.server)
	}
	m.order = slices.DeleteFunc(m.order, func(o *observer) bool { return o == k })
}

func (m *observerMaster) send(k *observer, p *peerwire.QuorumPacket) {
	m.r.ready.Send = append(m.r.ready.Send, Message{Link: k.id, Packet: p})
}

// received handles a packet. A packet that breaks the protocol closes the link, and has no
// other effect.
func (m *observerMaster) received(k *observer, p *peerwire.QuorumPacket) {
	k.heard = m.r.now
	if why := m.packet(k, p); why != "" && m.links[k.id] != nil {
		m.refuse(k, why)
	}
}

// packet handles a packet. It returns the reason why the link must be closed, or an empty
// text if the link stays open.
func (m *observerMaster) packet(k *observer, p *peerwire.QuorumPacket) string {
	switch p.Type {
	case peerwire.PacketFollowerInfo:
		return "is a follower, but this port is for observers"
	case peerwire.PacketObserverInfo:
		return m.named(k, p)
	case peerwire.PacketAckEpoch:
		return m.introduced(k, p)
	case peerwire.PacketAck:
		m.acked(k, p.Zxid)
		return ""
	}
	if k.state < linkSynced {
		return fmt.Sprintf("sent %v before it was synchronised", p.Type)
	}
	switch p.Type {
	case peerwire.PacketPing:
		return m.answered(k, p)
	case peerwire.PacketRequest:
		return m.request(k, p)
	case peerwire.PacketRevalidate:
		return m.revalidate(k, p)
	case peerwire.PacketTouch:
		return m.touched(k, p)
	case peerwire.PacketDigest:
		return m.treeWrong(k, p)
	case peerwire.PacketFitness:
		return "" // an observer cannot lead
	}
	if !k.unexpectedReported {
		k.unexpectedReported = true
		m.r.report(Unexpected{k.name(), p.Type})
	}
	return ""
}

// named handles an observer's first packet.
func (m *observerMaster) named(k *observer, p *peerwire.QuorumPacket) string {
	var info peerwire.LearnerInfo
	err := wire.Decode(p.Data, &info)
	_, offered := peerwire.FindExtension(p.Data, peerwire.LearnerInfoLen)
	version := m.r.voters().Version()
	switch {
	case k.state != linkNew:
		return fmt.Sprintf("sent %v twice", p.Type)
	case err != nil:
		return "its first packet cannot be read: " + err.Error()
	case info.Version < peerwire.QuorumVersion:
		return fmt.Sprintf("speaks version %#x of the protocol, %#x is needed", info.Version, peerwire.QuorumVersion)
	case info.Server == m.r.opt.ID, info.Server == m.r.opt.Leader:
		return fmt.Sprintf("claims the id %d of this server or its leader", info.Server)
	case info.Server < 0 || info.Server > peerwire.OriginMax:
		return fmt.Sprintf("has the id %d, which is not possible behind an observer master", info.Server)
	case m.r.opt.NativeOnly && !offered:
		return fmt.Sprintf("is server %d, a ZooKeeper server: %s", info.Server, nativeOnlyRemedy)
	case p.Zxid < 0 || p.Zxid.Epoch() > m.r.epoch:
		return fmt.Sprintf("has accepted epoch %d, later than epoch %d of this server's leader", p.Zxid.Epoch(), m.r.epoch)
	case info.ConfigVersion > version:
		return fmt.Sprintf("has configuration version %x, newer than %x of this server", info.ConfigVersion, version)
	}
	if old := m.servers[info.Server]; old != nil {
		m.drop(old, "the same server has connected again")
	}
	k.server, k.native = info.Server, offered && m.r.relays()
	m.servers[k.server] = k
	m.invite(k)
	return ""
}

// invite sends an observer the epoch of the leader (LEADERINFO).
func (m *observerMaster) invite(k *observer) {
	data := wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})
	if k.native {
		data = wire.Append(data, &peerwire.Extension{Version: peerwire.ExtensionVersion, LeaseMS: int32(m.r.lease)})
	}
	k.state = linkInvited
	m.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: m.epochZero(), Data: data})
}

func (m *observerMaster) epochZero() wire.Zxid { return wire.MakeZxid(m.r.epoch, 0) }

// introduced handles ACKEPOCH, which says where the observer's log ends.
func (m *observerMaster) introduced(k *observer, p *peerwire.QuorumPacket) string {
	var ack peerwire.EpochAck
	switch err := wire.Decode(p.Data, &ack); {
	case k.state != linkInvited:
		return "acknowledged an epoch before one was sent"
	case err != nil:
		return "sent an acknowledgement of the epoch that cannot be read: " + err.Error()
	case ack.CurrentEpoch < peerwire.NoEpoch || wire.Epoch(max(ack.CurrentEpoch, 0)) > m.r.epoch || p.Zxid.Epoch() > m.r.epoch || p.Zxid < 0:
		return fmt.Sprintf("has history %v of epoch %d, which epoch %d cannot follow", p.Zxid, ack.CurrentEpoch, m.r.epoch)
	}
	k.peer, k.state = p.Zxid, linkPromised
	m.synchronise(k)
	return ""
}

// behind reports whether an observer has transactions of this epoch that this follower does not know
// to be committed yet. The observer had another master before. It must not cut them off,
// because its clients may have seen them, so it waits until this follower has caught up.
func (m *observerMaster) behind(k *observer) bool {
	return k.peer.Epoch() == m.r.epoch && k.peer > m.r.decided && k.peer.Counter() != 0
}

// history returns the history that observers get: what is known to be committed.
func (m *observerMaster) history() history {
	g := m.r.log
	h := history{before: g.before, newest: g.applied, last: max(g.applied, m.epochZero()), tree: g.applied, disk: m.r.opt.DiskLog}
	if m.r.opt.CompatibleOnly {
		h.tree = h.last
	}
	h.committed = g.entries[:g.index(h.newest)]
	return h
}

// synchronise decides how an observer gets the history, and begins.
func (m *observerMaster) synchronise(k *observer) {
	if m.behind(k) {
		return // committed continues
	}
	h := m.history()
	p := choose(&h, k.peer)
	if p.ask {
		k.state, k.heard = linkReading, m.r.now
		m.r.ready.ReadLog = append(m.r.ready.ReadLog, ReadLog{Link: k.id, After: k.peer, Through: h.min()})
		return
	}
	m.deliver(k, &h, p)
}

func (m *observerMaster) logRead(e LogRead) {
	k := m.links[e.Link]
	if k == nil || k.state != linkReading {
		return
	}
	h := m.history()
	m.deliver(k, &h, chooseRead(&h, k.peer, e.Txns, e.OK))
}

// deliver sends the history. From the same step on the observer gets every transaction that is
// committed.
func (m *observerMaster) deliver(k *observer, h *history, p plan) {
	if !m.admit(p.how) {
		m.drop(k, fmt.Sprintf("too many observers are being synchronised by %v", p.how))
		return
	}
	k.how, k.state, k.heard, k.upTo = p.how, linkSyncing, m.r.now, h.newest
	opening := map[SyncMode]peerwire.PacketType{Diff: peerwire.PacketDiff, Trunc: peerwire.PacketTrunc, Snap: peerwire.PacketSnap}[p.how]
	m.r.ready.Send = append(m.r.ready.Send, Message{
		Link: k.id, Packet: &peerwire.QuorumPacket{Type: opening, Zxid: p.zxid}, Snapshot: p.how == Snap,
	})
	for _, t := range p.txns {
		m.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketProposal, Zxid: t.Zxid, Data: t.Append(nil)})
		m.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketCommit, Zxid: t.Zxid})
	}
	m.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketNewLeader, Zxid: m.epochZero(), Data: []byte(m.members().String())})
	m.r.report(SyncBegan{k.name(), p.how, k.peer, p.zxid, len(p.txns)})
}

// members returns the configuration that NEWLEADER carries: the committed one, as a leader that
// serves sends it.
func (m *observerMaster) members() *ensemble.Membership {
	members := m.r.voters()
	if members.Version() == 0 {
		return members.WithVersion(int64(m.epochZero()))
	}
	return members
}

// admit reports whether one more observer may be synchronised in this way.
func (m *observerMaster) admit(how SyncMode) bool {
	n, limit := 0, diffMax
	if how == Snap {
		limit = snapMax
	}
	for _, o := range m.order {
		if o.state == linkSyncing && (o.how == Snap) == (how == Snap) {
			n++
		}
	}
	return n < limit
}

// acked handles the ACK of NEWLEADER. A native leader must know of the observer before the observer
// serves, so that nothing that the observer has sent over an earlier connection takes effect
// any more. Later ACKs say nothing.
func (m *observerMaster) acked(k *observer, z wire.Zxid) {
	if k.state != linkSyncing || z != m.epochZero() {
		return
	}
	k.state = linkSynced
	if m.r.relays() {
		m.r.send(&peerwire.QuorumPacket{Type: peerwire.PacketRelay, Zxid: k.origin().Zxid()})
		return
	}
	m.serve(k)
}

// origin returns the origin of what is passed on for an observer.
func (k *observer) origin() peerwire.Origin {
	return peerwire.Origin{Server: k.server, Native: k.native}
}

// serve sends UPTODATE.
func (m *observerMaster) serve(k *observer) {
	k.state = linkServing
	m.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketUpToDate, Zxid: -1})
	m.r.report(LearnerServes{k.name(), k.how, m.r.now - k.began})
}

// relayed handles the leader's answer that an observer is registered, or its notice that the observer has
// connected elsewhere.
func (m *observerMaster) relayed(p *peerwire.QuorumPacket) {
	var a peerwire.Relayed
	o, ok := peerwire.OriginOf(p.Zxid)
	k := m.servers[o.Server]
	switch {
	case !ok || wire.Decode(p.Data, &a) != nil:
		m.r.giveUp("the leader's answer about an observer cannot be read")
	case k == nil || k.state < linkSynced:
	case !a.Accepted:
		m.drop(k, "the leader has it connected elsewhere")
	case k.state == linkSynced:
		m.serve(k)
	}
}

// checkLinks closes the links of observers that are silent: after initLimit while they are
// synchronised, later after syncLimit.
func (m *observerMaster) checkLinks() {
	for _, k := range slices.Clone(m.order) {
		limit := m.r.opt.InitLimit * m.r.opt.TickMS
		if k.state == linkServing {
			limit = m.r.opt.SyncLimit * m.r.opt.TickMS
		}
		waits := k.state == linkPromised || k.state == linkSynced // for this server
		switch quiet := m.r.now - k.heard; {
		case k.state == linkReading:
			if quiet > readLogLimit(m.r.opt.InitLimit, m.r.opt.TickMS) {
				h := m.history()
				m.deliver(k, &h, h.snap())
			}
		case !waits && quiet > limit:
			m.drop(k, fmt.Sprintf("silent for %d ms", quiet))
		}
	}
}
