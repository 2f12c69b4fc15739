package zab

import (
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// Timeouts of a follower, in ms.
const (
	silenceMin = 1000 // the shortest timeout for a native leader
	gapSlot    = 10_000
	gapSlots   = 6
)

// silence measures the longest time for which a leader was silent in the last minute.
type silence struct {
	floor int64 // the least timeout that the leader's lease allows
	slot  int64
	gaps  [gapSlots]int64
}

// note records the gap before a packet that arrived at now.
func (s *silence) note(now, gap int64) {
	slot := now / gapSlot
	for ; s.slot < slot; s.slot++ {
		if slot-s.slot > gapSlots {
			s.slot = slot - gapSlots
		}
		s.gaps[(s.slot+1)%gapSlots] = 0
	}
	s.gaps[slot%gapSlots] = max(s.gaps[slot%gapSlots], gap)
}

func (s *silence) worst() int64 {
	var worst int64
	for _, g := range s.gaps {
		worst = max(worst, g)
	}
	return worst
}

func (r *Learner) heardNow() {
	if r.step == following {
		r.silence.note(r.now, r.now-r.heard)
	}
	r.heard = r.now
}

// leaderTimeout returns how long the leader may be silent. A native leader pings often,
// and its timeout is three times the longest gap of the last minute. The timeout of a
// compatible leader is syncLimit. In both cases the timeout is longer than the lease.
func (r *Learner) leaderTimeout() int64 {
	limit := r.opt.SyncLimit * r.opt.TickMS
	switch {
	case r.step == joining:
		return r.opt.discovery(1)
	case r.step < adopted:
		return r.opt.InitLimit * r.opt.TickMS
	case r.step == adopted || !r.native:
		return limit
	}
	return min(limit, max(silenceMin, r.silence.floor, 3*r.silence.worst()))
}

func (r *Learner) tick() {
	if quiet := r.now - r.heard; quiet > r.leaderTimeout() {
		r.ready.Silent = true
		r.giveUp(fmt.Sprintf("the leader has been silent for %d ms", quiet))
	}
}

// pinged answers a ping, unless Heartbeat has answered it already. The pings of a native
// leader say which answers it has confirmed.
func (r *Learner) pinged(p *peerwire.QuorumPacket) {
	r.confirms(p)
	if r.master != nil {
		r.master.ping(p.Zxid)
	}
	if r.early > 0 {
		r.early--
		return
	}
	r.answer(p.Zxid, p.Auth)
}

// Arrived says how many pings have arrived on a link and were not passed to Step yet.
type Arrived struct {
	Link  LinkID
	Pings int
}

// Heartbeat answers pings that have arrived and were not passed to Step yet. The driver
// calls it while it applies something that takes long. It returns all messages that must
// be sent, the answers last; nil if there is nothing to answer. The content of the pings
// is processed when they are passed to Step. now may be later than the time of the next
// Step.
//
// Early answers are safe because of what an answer means. It means that this server had
// not left the leader when the ping arrived: the leader's lease, syncs and timeout rely
// on that. The leader counts an answer for its oldest unanswered ping, so only the number
// of answers matters. An answer also says which sessions were touched, which no packet of
// the leader changes. It acknowledges nothing: leaders ignore its zxid. A compatible
// leader gets no early answers: its timeout is much longer, and it relies on the order
// of answers and requests.
//
// An answer that is not early also means that everything sent before the ping was
// stepped. The leader must know how far a connected learner can lag behind (LagMax), so
// early answers end some time after the last Step.
func (r *Learner) Heartbeat(now int64, a Arrived) (send []Message) {
	if r.step != following || !r.native || a.Link != r.opt.Link || r.early >= a.Pings || now-r.now > r.opt.busyMax() {
		return nil
	}
	for ; r.early < a.Pings; r.early++ {
		r.answer(r.decided, nil)
	}
	send, r.ready.Send = r.ready.Send, nil
	return send
}

// answer answers a ping with the sessions touched since the last answer. To a
// compatible leader it sends a sync after that: when the sync is answered, the leader has
// read the touches. A ZooKeeper server answers its clients without such a confirmation, and
// so does a learner that behaves like one.
func (r *Learner) answer(z wire.Zxid, ids []wire.ID) {
	t, sessions := &r.touches, r.touches.sessions
	r.reportSessions(&peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: z, Auth: ids})
	switch {
	case r.native:
	case r.opt.CompatibleOnly:
		t.confirmed = t.token
	case len(sessions) > 0:
		r.request(Forward{Request: peerwire.ForwardedRequest{
			Session: sessions[0].Session, Op: wire.OpSync, Body: wire.Append(nil, &wire.PathRequest{Path: "/"}),
		}})
		r.syncs.Push(pendingSync{touches: true, token: t.token})
	}
}

// pendingSync is a sync that the leader has not answered: of a client, one that confirms touched
// sessions, or, with its link, one of an observer that this server serves, which can also confirm touched
// sessions of this server.
type pendingSync struct {
	touches bool
	token   uint64
	link    LinkID
}

// requestRoom is more than the size of a forwarded request without its body.
const requestRoom = 32

// request forwards a client's request to the leader.
func (r *Learner) request(e Forward) {
	data := wire.Append(make([]byte, 0, requestRoom+len(e.Request.Body)), &e.Request)
	r.send(&peerwire.QuorumPacket{Type: peerwire.PacketRequest, Zxid: -1, Data: data, Auth: e.Identities})
}

// mustServe panics if UPTODATE has not arrived, because the driver must not serve clients
// before that.
func (r *Learner) mustServe(what string) {
	if r.step != following {
		panic("zab: " + what + " of a learner that does not serve")
	}
}

func (r *Learner) forward(e Forward) {
	r.mustServe("a request")
	r.request(e)
}

// sync forwards a client's sync. The leader's answers do not say to which sync they
// belong; they come in order.
func (r *Learner) sync(e Sync) {
	r.mustServe("a sync")
	r.request(e.Request)
	r.syncs.Push(pendingSync{token: e.Token})
}

// synced handles the answer to the oldest sync.
func (r *Learner) synced() {
	if r.syncs.Len() == 0 {
		r.report(Unexpected{fmt.Sprintf("leader %d", r.opt.Leader), peerwire.PacketSync})
		return
	}
	s := r.syncs.Pop()
	if s.touches {
		r.touches.confirmed = s.token
	}
	switch {
	case s.link != 0:
		r.master.synced(s.link)
	case !s.touches:
		r.ready.Syncs = append(r.ready.Syncs, s.token)
	}
}

func (r *Learner) revalidate(e Revalidate) {
	r.mustServe("a revalidation")
	r.send(&peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Zxid: -1, Data: wire.Append(nil, &e.Revalidation)})
}

func (r *Learner) revalidated(p *peerwire.QuorumPacket) {
	if o, ok := peerwire.OriginOf(p.Zxid); ok && r.master != nil {
		r.master.revalidated(o, p)
		return
	}
	var a peerwire.Revalidated
	if err := wire.Decode(p.Data, &a); err != nil {
		r.giveUp("the leader's answer about a session cannot be read: " + err.Error())
		return
	}
	r.ready.Revalidated = append(r.ready.Revalidated, a)
}
