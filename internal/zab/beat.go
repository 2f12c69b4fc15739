package zab

import (
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// beat is one round of pings: its number and when it was sent.
type beat struct{ n, at int64 }

// beats is what the leader knows from its pings: who is still with it.
type beats struct {
	due       int64 // when the next round is to be sent
	last      beat  // the last round sent
	full      int64 // the number of the last that was sent to all
	confirmed beat  // the last that a quorum has answered
	waiting   fifo.Queue[waiting]
}

// waiting is an answer held back until everything proposed before the question
// is committed and a quorum has answered a ping sent after it: so that no
// later leader can have done anything by the time of the question.
type waiting struct {
	link  LinkID
	token uint64
	zxid  wire.Zxid
	beat  int64
	reply *peerwire.QuorumPacket // nil: a sync
}

// heartbeat pings the learners: ours at every round, others each half tick, or
// at once where an answer waits for it. Before UPTODATE a learner takes no
// notice, so the answer is not waited for.
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

// heartbeatDue sends the round of pings that is due, and notes since when.
func (l *Leader) heartbeatDue(now int64) {
	if l.ready.BeatDue == 0 && l.phase >= synchronising {
		l.ready.BeatDue = l.beat.due
	}
	l.beat.due = now + l.opt.BeatMS
	l.heartbeat(now, false)
}

// Beat sends pings between two events if they are due: the driver calls it while
// a Step takes long. It returns everything that is to be sent, the pings last, and
// when they were due; nil: nothing is due. now may be later than the time of the
// next Step: the answers to the pings come behind that.
func (l *Leader) Beat(now int64) (send []Message, due int64) {
	if l.phase < synchronising || l.phase == over || now < l.beat.due {
		return nil, 0
	}
	l.heartbeatDue(now)
	send, due = l.ready.Send, l.ready.BeatDue
	l.ready.Send, l.ready.BeatDue = nil, 0
	return send, due
}

// NextBeat is when the next round of pings is due; Never before the term's
// history is being handed out, and after the term.
func (l *Leader) NextBeat() int64 {
	if l.phase < synchronising || l.phase == over {
		return Never
	}
	return l.beat.due
}

// pinged takes the answer to a learner's oldest ping.
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

// answers: the answers to pings up to number n had come when the log ended at
// zxid. They are confirmed once that is committed, and the learner told: it
// must hear of the end of a session before of a touch that came too late.
type answers struct {
	n    int64
	zxid wire.Zxid
}

// read notes that a ping was answered when the log ended at z.
func (k *link) read(z wire.Zxid) {
	if last := k.unconfirmed.Last(); last != nil && last.zxid == z {
		last.n = k.replies
		return
	}
	k.unconfirmed.Push(answers{k.replies, z})
}

// confirm takes in what came when the log ended at z or before.
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

// Lease is the last moment at which a client's ping may be answered and a
// session be confirmed; Never where this server alone is the quorum. It is to
// be asked anew before each answer.
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

// Heard is when a quorum was last certain to be with this leader, also after
// the term.
func (l *Leader) Heard() int64 {
	if l.alone() {
		return l.now
	}
	return l.beat.confirmed.at
}

// slept: the pings that were sent before are so much older than the clock says.
// Others may have had a leader of their own meanwhile.
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

// LeaseMS is how old the last ping answered by a quorum may be for Lease to
// hold.
func (l *Leader) LeaseMS() int64 { return l.opt.LeaseMS }

// sync answers when everything proposed so far is committed, and a ping sent
// from now on is answered by a quorum. A learner that is not of our kind takes
// commits and answers of its clients in one order: its answer stands behind the
// commit of what was proposed when it asked, and before the next, which is as
// good as a ping: a quorum has logged it since.
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

// answerSyncs answers the syncs of a learner that is not of our kind from
// before z was proposed, which is committed and about to be told.
func (l *Leader) answerSyncs(k *link, z wire.Zxid) {
	for f := k.syncs.First(); f != nil && f.zxid < z; f = k.syncs.First() {
		l.reply(k.syncs.Pop())
	}
}

// revalidated passes on the answer to a learner, under the same condition: a
// leader of the past knows nothing of the sessions of today.
func (l *Leader) revalidated(e Revalidated) {
	if l.links[e.Link] == nil {
		return
	}
	p := &peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Zxid: -1, Data: wire.Append(nil, &e.Answer)}
	l.hold(waiting{link: e.Link, zxid: l.log.last, reply: p})
}

// PendingSyncs is how many syncs wait for their answer.
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

// release gives the answers whose time has come, in order, and sees that a
// ping to all is under way for the rest: one at a time, so that many share it.
func (l *Leader) release() {
	newest := l.releaseDue(&l.beat.waiting)
	for _, k := range l.order {
		newest = max(newest, l.releaseDue(&k.syncs))
	}
	if newest > l.beat.last.n && l.beat.confirmed.n >= l.beat.full {
		l.heartbeat(l.now, true)
	}
}

// releaseDue gives the answers of a queue whose time has come. It returns the round
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
