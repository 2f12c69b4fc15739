package zab

import (
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// beat is a round of pings: its number and when it was sent.
type beat struct{ n, at int64 }

// beats is what the leader knows from its pings.
//
// Invariants: confirmed.n and full are not above last.n. The answers in waiting ascend
// by beat and by zxid.
type beats struct {
	due       int64 // when the next round is to be sent
	last      beat  // the last round sent
	full      int64 // the number of the last round that was sent to all learners
	confirmed beat  // the last round that a quorum has answered
	waiting   fifo.Queue[waiting]
}

// waiting is an answer that is held back until everything proposed before the
// question is committed, and a quorum has answered a ping that was sent after the
// question. Then no later leader can have committed anything before the question.
type waiting struct {
	link  LinkID
	token uint64
	zxid  wire.Zxid
	beat  int64
	reply *peerwire.QuorumPacket // nil: the answer to a sync
}

// heartbeat sends a round of pings: to native peers in every round, to compatible
// peers each half tick, or at once (hurry) if an answer waits for it. A learner ignores
// pings before UPTODATE, so the leader does not wait for these answers.
func (l *Leader) heartbeat(now int64, hurry bool) {
	if l.phase < synchronising {
		return
	}
	l.beat.last = beat{l.beat.last.n + 1, now}
	l.own.answered = l.beat.last
	lease, all := now <= l.Lease(), true
	for _, k := range l.order {
		due := k.ours || hurry || now-k.pingedAt >= l.opt.TickMS/2
		all = all && due
		if k.state < linkSyncing || !due || k.unanswered.Len() >= beatsMax {
			continue
		}
		p := &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: l.proposed}
		if k.ours {
			if lease {
				k.confirm(l.log.applied)
			}
			p.Data = wire.Append(nil, &peerwire.PingInfo{Confirmed: k.confirmed})
		}
		l.send(k, p)
		k.pingedAt = now
		if k.state == linkServing {
			k.unanswered.Push(l.beat.last)
		}
	}
	if all {
		l.beat.full = l.beat.last.n
	}
	l.confirm()
}

// heartbeatDue sends the round of pings that is due, and puts into the Ready when it
// was due.
func (l *Leader) heartbeatDue(now int64) {
	if l.ready.BeatDue == 0 && l.phase >= synchronising {
		l.ready.BeatDue = l.beat.due
	}
	l.beat.due = now + l.opt.BeatMS
	l.heartbeat(now, false)
}

// Beat sends pings between two events if they are due. The driver calls it while a
// Step takes long. It returns everything that is to be sent, the pings last, and when
// they were due; nil if nothing is due. now may be later than the time of the next
// Step, because the answers to the pings are stepped after that.
func (l *Leader) Beat(now int64) (send []Message, due int64) {
	if l.phase < synchronising || l.phase == over || now < l.beat.due {
		return nil, 0
	}
	l.heartbeatDue(now)
	send, due = l.ready.Send, l.ready.BeatDue
	l.ready.Send, l.ready.BeatDue = nil, 0
	return send, due
}

// NextBeat returns when the next round of pings is due; Never before synchronisation
// and after the term.
func (l *Leader) NextBeat() int64 {
	if l.phase < synchronising || l.phase == over {
		return Never
	}
	return l.beat.due
}

// pinged takes a learner's answer, which is the one to its oldest unanswered ping.
func (l *Leader) pinged(k *link, p *peerwire.QuorumPacket) string {
	var touched peerwire.TouchedSessions
	if err := wire.Decode(p.Data, &touched); err != nil {
		return "answered a ping in a way that cannot be read: " + err.Error()
	}
	if k.unanswered.Len() == 0 {
		return "answered a ping that was not sent"
	}
	k.answered = k.unanswered.Pop()
	k.replies++
	if k.ours {
		k.read(l.log.last)
	}
	if len(touched.Sessions) > 0 {
		l.ready.Inputs = append(l.ready.Inputs, Input{Link: k.id, Server: k.server, Touched: touched.Sessions})
	}
	if l.isVoter(k.server) && !k.observer {
		l.confirm()
	}
	return ""
}

// answers says that the answers to pings up to number n had come when the log ended
// at zxid. They are confirmed to the learner once zxid is committed: if a session
// ended before its touch came, the learner must hear of the end first.
type answers struct {
	n    int64
	zxid wire.Zxid
}

// read notes that an answer to a ping came when the log ended at z.
func (k *link) read(z wire.Zxid) {
	if last := k.unconfirmed.Last(); last != nil && last.zxid == z {
		last.n = k.replies
		return
	}
	k.unconfirmed.Push(answers{k.replies, z})
}

// confirm counts the answers as confirmed that came when the log ended at z or before.
func (k *link) confirm(z wire.Zxid) {
	for f := k.unconfirmed.First(); f != nil && f.zxid <= z; f = k.unconfirmed.First() {
		k.confirmed = k.unconfirmed.Pop().n
	}
}

// confirm finds the last round that a quorum has answered.
func (l *Leader) confirm() {
	try := func(b beat) {
		if b.n > l.beat.confirmed.n && l.acknowledged(func(a *acks) bool { return a.answered.n >= b.n }) {
			l.beat.confirmed = b
		}
	}
	try(l.beat.last)
	for _, k := range l.order {
		try(k.answered)
	}
	l.release()
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
	case l.beat.confirmed.n == 0:
		return -1
	}
	return l.beat.confirmed.at + l.opt.LeaseMS
}

// Heard returns when a quorum was last known to follow this leader. It also answers
// after the term.
func (l *Leader) Heard() int64 {
	if l.alone() {
		return l.now
	}
	return l.beat.confirmed.at
}

// slept makes all pings that were sent before older by ms, because the clock stood
// meanwhile. The other servers may have elected another leader in that time.
func (l *Leader) slept(ms int64) {
	l.beat.last.at -= ms
	l.beat.confirmed.at -= ms
	l.own.answered.at -= ms
	for _, k := range l.order {
		k.answered.at -= ms
		for i := range k.unanswered.Len() {
			k.unanswered.At(i).at -= ms
		}
	}
}

// LeaseMS returns how old the last ping that a quorum has answered may be while the
// lease holds.
func (l *Leader) LeaseMS() int64 { return l.opt.LeaseMS }

// sync answers when everything proposed so far is committed and a quorum has answered
// a ping sent from now on. A compatible peer processes commits and the answers to its
// clients in one order, so its answer is sent after the commit of what was proposed
// when it asked, and before the next commit. That commit is as good as a ping: a
// quorum has logged it after the question.
func (l *Leader) sync(e Sync) {
	k := l.links[e.Link]
	switch {
	case e.Link != 0 && (k == nil || k.state != linkServing):
	case k == nil || k.ours:
		l.hold(waiting{link: e.Link, token: e.Token, zxid: l.log.last})
	default:
		k.syncs.Push(waiting{link: e.Link, zxid: l.log.last, beat: l.beat.last.n + 1})
		l.release()
	}
}

// answerSyncs answers the syncs that a compatible peer sent before z was proposed. z
// is committed, and its COMMIT is sent next.
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
	p := &peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Zxid: -1, Data: wire.Append(nil, &e.Answer)}
	l.hold(waiting{link: e.Link, zxid: l.log.last, reply: p})
}

// PendingSyncs returns how many syncs wait for their answer.
func (l *Leader) PendingSyncs() (n int) {
	for i := range l.beat.waiting.Len() {
		if l.beat.waiting.At(i).reply == nil {
			n++
		}
	}
	for _, k := range l.order {
		n += k.syncs.Len()
	}
	return n
}

func (l *Leader) hold(w waiting) {
	if l.phase != serving {
		return
	}
	w.beat = l.beat.last.n + 1
	l.beat.waiting.Push(w)
	l.release()
}

// release gives the answers that need not wait any longer, in order. For the others
// it sends a round of pings to all, unless one is unanswered: so many answers share
// one round.
func (l *Leader) release() {
	newest := l.releaseDue(&l.beat.waiting)
	for _, k := range l.order {
		newest = max(newest, l.releaseDue(&k.syncs))
	}
	if newest > l.beat.last.n && l.beat.confirmed.n >= l.beat.full {
		l.heartbeat(l.now, true)
	}
}

// releaseDue gives the answers of a queue that need not wait any longer. It returns the round
// of pings that the last of the others waits for, 0 if there are none.
func (l *Leader) releaseDue(q *fifo.Queue[waiting]) int64 {
	for w := q.First(); w != nil && w.zxid <= l.log.applied && w.beat <= l.beat.confirmed.n; w = q.First() {
		l.reply(q.Pop())
	}
	if last := q.Last(); last != nil {
		return last.beat
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
