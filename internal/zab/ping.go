package zab

import (
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// pingRound is a round of pings: its number and when it was sent.
type pingRound struct{ n, at int64 }

// pingRounds holds what the leader knows from its pings.
//
// Invariants: confirmed.n and full are not above last.n. The answers in waiting ascend
// by round and by zxid.
type pingRounds struct {
	due       int64     // when the next round is to be sent
	last      pingRound // the last round sent
	full      int64     // the number of the last round that was sent to all learners
	confirmed pingRound // the last round that a quorum has answered
	waiting   fifo.Queue[waiting]
	wanted    bool // a client of this server waits for the lease
}

// waiting is an answer that is held back until everything proposed before the
// request is committed, and a quorum has answered a ping that was sent after the
// request. This proves that no later leader had committed anything when the request
// arrived.
type waiting struct {
	link  LinkID
	token uint64
	zxid  wire.Zxid
	round int64
	reply *peerwire.QuorumPacket // nil: the answer to a sync
}

// sendPings sends a round of pings: to native peers in every round, to compatible
// peers each half tick, or at once (hurry) if an answer waits for it. A learner ignores
// pings before UPTODATE, so the leader expects no answers to these pings.
func (l *Leader) sendPings(now int64, hurry bool) {
	if l.phase < synchronising {
		return
	}
	l.pings.last = pingRound{l.pings.last.n + 1, now}
	l.own.answered = l.pings.last
	lease, all := now <= l.Lease(), true
	for _, k := range l.order {
		due := k.native || hurry || now-k.pingedAt >= l.opt.TickMS/2
		all = all && due
		if k.state < linkSyncing || !due || k.unanswered.Len() >= unansweredMax {
			continue
		}
		p := &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: l.proposed}
		if k.native {
			if lease {
				k.confirm(l.log.applied)
				k.told = k.confirmed
			}
			p.Data = wire.Append(nil, &peerwire.PingInfo{Confirmed: k.told})
		}
		l.send(k, p)
		k.pingedAt = now
		if k.state == linkServing {
			k.unanswered.Push(l.pings.last)
		}
	}
	if all {
		l.pings.full = l.pings.last.n
	}
	l.confirm()
}

// sendDuePings sends the round of pings that is due, and puts into the Ready when it
// was due.
func (l *Leader) sendDuePings(now int64) {
	if l.ready.HeartbeatDue == 0 && l.phase >= synchronising {
		l.ready.HeartbeatDue = l.pings.due
	}
	l.pings.due = now + l.opt.HeartbeatMS
	l.sendPings(now, false)
}

// Heartbeat sends pings between two events if they are due. The driver calls it while a
// Step takes long. It returns all messages that must be sent, the pings last, and the
// time at which the pings were due; nil if nothing is due. now may be later than the
// time of the next Step, because the answers to the pings are stepped after that Step.
func (l *Leader) Heartbeat(now int64) (send []Message, due int64) {
	if l.phase < synchronising || l.phase == over || now < l.pings.due {
		return nil, 0
	}
	l.sendDuePings(now)
	send, due = l.ready.Send, l.ready.HeartbeatDue
	l.ready.Send, l.ready.HeartbeatDue = nil, 0
	return send, due
}

// NextHeartbeat returns when the next round of pings is due; Never before synchronisation
// and after the term.
func (l *Leader) NextHeartbeat() int64 {
	if l.phase < synchronising || l.phase == over {
		return Never
	}
	return l.pings.due
}

// pinged handles a learner's answer, which answers the learner's oldest unanswered ping.
func (l *Leader) pinged(k *link, p *peerwire.QuorumPacket) string {
	var touched peerwire.TouchedSessions
	if err := wire.Decode(p.Data, &touched); err != nil {
		return "answered a ping in a way that cannot be read: " + err.Error()
	}
	switch {
	case p.Zxid == unaskedPing && !k.native:
		l.reported(k, touched.Sessions)
		return ""
	case k.unanswered.Len() == 0:
		return "answered a ping that was not sent"
	}
	k.answered = k.unanswered.Pop()
	l.reported(k, touched.Sessions)
	if l.isVoter(k.server) && !k.observer {
		l.confirm()
	}
	return ""
}

// confirm finds the last round that a quorum has answered.
func (l *Leader) confirm() {
	try := func(b pingRound) {
		if b.n > l.pings.confirmed.n && l.acknowledged(func(a *acks) bool { return a.answered.n >= b.n }) {
			l.pings.confirmed = b
		}
	}
	try(l.pings.last)
	for _, k := range l.order {
		try(k.answered)
	}
	l.releaseAnswers()
}

// Lease returns the last moment at which a client's ping may be answered and a
// session be confirmed; Never if this server alone is a quorum. The caller asks again
// before each answer.
func (l *Leader) Lease() int64 {
	switch {
	case l.phase != serving:
		return -1
	case l.alone():
		return Never
	case l.pings.confirmed.n == 0:
		return -1
	}
	return l.pings.confirmed.at + l.opt.LeaseMS
}

// Heard returns the time at which a quorum was last known to follow this leader. It may
// also be called after the end of the term.
func (l *Leader) Heard() int64 {
	if l.alone() {
		return l.now
	}
	return l.pings.confirmed.at
}

// slept makes all pings that were sent so far older by ms, because the clock stood still
// while the machine was suspended. The other servers may have elected another leader in
// that time.
func (l *Leader) slept(ms int64) {
	l.pings.last.at -= ms
	l.pings.confirmed.at -= ms
	l.own.answered.at -= ms
	for _, k := range l.order {
		k.fitSince = Never
		k.answered.at -= ms
		for i := range k.unanswered.Len() {
			k.unanswered.At(i).at -= ms
		}
	}
}

// LeaseMS returns how old the last ping that a quorum has answered may be while the
// lease holds.
func (l *Leader) LeaseMS() int64 { return l.opt.LeaseMS }

// sync answers a client's sync when everything proposed so far is committed and a quorum
// has answered a ping sent from now on. A compatible peer processes commits and the
// answers to its clients in one order. So it gets its answer after the commit of
// everything that was proposed when it asked, and before the next commit. That next
// commit is as good as an answered ping: a quorum has logged it after the sync arrived.
func (l *Leader) sync(e Sync) {
	k := l.links[e.Link]
	switch {
	case e.Link != 0 && (k == nil || k.state != linkServing):
	case k == nil || k.native && !k.relays:
		l.holdAnswer(waiting{link: e.Link, token: e.Token, zxid: l.log.last})
	default:
		k.syncs.Push(waiting{link: e.Link, zxid: l.log.last, round: l.pings.last.n + 1})
		l.releaseAnswers()
	}
}

// answerSyncs answers the syncs that a compatible peer sent before z was proposed. The
// transaction z is committed, and its COMMIT is sent next.
func (l *Leader) answerSyncs(k *link, z wire.Zxid) {
	for f := k.syncs.First(); f != nil && f.zxid < z; f = k.syncs.First() {
		l.reply(k.syncs.Pop())
	}
}

// revalidated passes the answer about a session on to a learner, under the same
// condition as a sync: a leader that has been replaced does not know which sessions
// exist now.
func (l *Leader) revalidated(e Revalidated) {
	if l.links[e.Link] == nil {
		return
	}
	p := &peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Zxid: e.Question, Data: wire.Append(nil, &e.Answer)}
	l.holdAnswer(waiting{link: e.Link, zxid: l.log.last, reply: p})
}

// PendingSyncs returns how many syncs wait for their answer.
func (l *Leader) PendingSyncs() (n int) {
	for i := range l.pings.waiting.Len() {
		if l.pings.waiting.At(i).reply == nil {
			n++
		}
	}
	for _, k := range l.order {
		n += k.syncs.Len()
	}
	return n
}

func (l *Leader) holdAnswer(w waiting) {
	if l.phase != serving {
		return
	}
	w.round = l.pings.last.n + 1
	l.pings.waiting.Push(w)
	l.releaseAnswers()
}

// releaseAnswers gives the answers that need not wait any longer, in order, and confirms the
// touches for which learners have asked. If others still wait, it sends a round of pings to all
// learners, unless an earlier round is unanswered. So many answers share one round.
func (l *Leader) releaseAnswers() {
	newest := l.releaseDue(&l.pings.waiting)
	for _, k := range l.order {
		newest = max(newest, l.releaseDue(&k.syncs))
	}
	if l.confirmTouches() {
		newest = l.pings.last.n + 1
	}
	if newest > l.pings.last.n && l.pings.confirmed.n >= l.pings.full {
		l.sendPings(l.now, true)
	}
}

// releaseDue gives the answers of a queue that need not wait any longer. It returns the
// number of the round of pings for which the last remaining answer waits; 0 if no answer
// remains.
func (l *Leader) releaseDue(q *fifo.Queue[waiting]) int64 {
	for w := q.First(); w != nil && w.zxid <= l.log.applied && w.round <= l.pings.confirmed.n; w = q.First() {
		l.reply(q.Pop())
	}
	if last := q.Last(); last != nil {
		return last.round
	}
	return 0
}

func (l *Leader) reply(w waiting) {
	k := l.links[w.link]
	switch {
	case w.link == 0:
		l.ready.Syncs = append(l.ready.Syncs, w.token)
	case k == nil:
	case w.reply != nil:
		l.send(k, w.reply)
	default:
		l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketSync})
	}
}
