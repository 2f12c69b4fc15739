package zab

import (
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// A learner reports to its leader the sessions that were heard from. Its answers to pings do
// that, and the leader's next ping says that it has confirmed them. A client whose ping waits for this would
// wait for up to two heartbeats. So the learner also reports the sessions for which clients wait in a
// TOUCH of its own, and the leader answers a TOUCH as soon as it may confirm it:
//
//   - All TOUCHes and answers to pings on a link are numbered, in the order in which they were
//     sent. One count of the leader, in its pings and TOUCHes, says how many it has confirmed.
//   - A TOUCH changes nothing about when a leader may confirm: it needs its lease, and everything that it
//     had proposed when the report arrived must be committed (Leader.confirmTouches).
//   - A TOUCH is no answer to a ping. It proves nothing about this server, so it renews no lease.
//   - A learner has one TOUCH unanswered at a time, and askEveryMS pass between two of
//     them. The touches that come meanwhile share the next one.

// askEveryMS is the time between two TOUCHes of a learner. It bounds what the pings of many clients
// cost the leader, and how much longer such a client waits.
const askEveryMS = 4

// touches holds the sessions that were heard from and that the leader has not confirmed
// yet.
type touches struct {
	sessions  []peerwire.TouchedSession // since the last report
	place     map[wire.SessionID]int
	token     uint64 // token of the last Touched
	reports   int64  // answers to pings and TOUCHes so far
	sent      fifo.Queue[sentTouches]
	confirmed uint64

	told    int64 // how many reports a native leader has confirmed
	wanted  int64 // number of the report for whose confirmation a client waits; 0: none so far
	asked   int64 // number of the last TOUCH; 0: none so far
	askedAt int64 // when it was sent
}

// sentTouches says that the report with this number carried all touches up to token.
type sentTouches struct {
	report int64
	token  uint64
}

// touched collects sessions for the next report.
func (r *Learner) touched(e Touched) {
	t := &r.touches
	if t.place == nil {
		t.place = map[wire.SessionID]int{}
	}
	for _, s := range e.Sessions {
		if i, ok := t.place[s.Session]; ok {
			t.sessions[i] = s
			continue
		}
		t.place[s.Session] = len(t.sessions)
		t.sessions = append(t.sessions, s)
	}
	t.token = max(t.token, e.Token)
	if e.Waits {
		t.wanted = t.reports + 1
	}
}

// reportSessions sends the sessions that were touched since the last report in a packet.
func (r *Learner) reportSessions(p *peerwire.QuorumPacket) {
	t := &r.touches
	t.reports++
	p.Data = wire.Append([]byte{}, &peerwire.TouchedSessions{Sessions: t.sessions})
	t.sessions, t.place = nil, nil
	if r.native {
		t.sent.Push(sentTouches{t.reports, t.token})
	}
	r.send(p)
}

// unaskedPing is the zxid of a PING with which a learner reports sessions to a compatible leader although
// there is no ping that it answers. ZooKeeper's leaders take the sessions of any PING and ignore
// its zxid. An answer repeats the zxid of the ping, which is not negative.
const unaskedPing wire.Zxid = -1

// reportEarly reports the sessions that were touched since the last report to a compatible leader, before
// its next ping. The next sync confirms them. It returns false if there are none, if the leader is
// native, or if this server behaves like a ZooKeeper server, which does not report them early.
func (r *Learner) reportEarly() bool {
	if r.native || r.opt.CompatibleOnly || len(r.touches.sessions) == 0 {
		return false
	}
	r.reportSessions(&peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: unaskedPing})
	return true
}

// wantsToAsk reports whether clients wait for a confirmation for which the leader can be asked, and
// no TOUCH is unanswered.
func (r *Learner) wantsToAsk() bool {
	t := &r.touches
	return r.step == following && r.extension >= peerwire.ExtensionTouch && t.wanted > t.told && t.asked <= t.told
}

// ask sends a TOUCH if clients wait for a confirmation. Ready calls it, so that all touches of a
// batch share one TOUCH.
func (r *Learner) ask() {
	if !r.wantsToAsk() || r.nextAsk() > r.now {
		return
	}
	r.reportSessions(&peerwire.QuorumPacket{Type: peerwire.PacketTouch})
	r.touches.asked, r.touches.askedAt = r.touches.reports, r.now
}

// nextAsk returns when the next TOUCH is to be sent; Never if none is wanted.
func (r *Learner) nextAsk() int64 {
	if !r.wantsToAsk() {
		return Never
	}
	return r.touches.askedAt + askEveryMS
}

// touchesConfirmed handles a TOUCH of the leader.
func (r *Learner) touchesConfirmed(p *peerwire.QuorumPacket) {
	r.confirms(p)
	if r.master != nil {
		r.master.confirmTouches()
	}
}

// confirms takes from a packet of a native leader how many reports the leader has confirmed.
func (r *Learner) confirms(p *peerwire.QuorumPacket) {
	var info peerwire.PingInfo
	if !r.native || wire.Decode(p.Data, &info) != nil {
		return
	}
	t := &r.touches
	t.told = max(t.told, min(info.Confirmed, t.reports))
	for f := t.sent.First(); f != nil && f.report <= t.told; f = t.sent.First() {
		t.confirmed = t.sent.Pop().token
	}
	if r.master != nil {
		r.master.confirmed(t.told)
	}
}

// reported handles the sessions that a learner has reported.
func (l *Leader) reported(k *link, sessions []peerwire.TouchedSession) {
	k.reports++
	if k.native {
		k.read(l.log.last)
	}
	if len(sessions) > 0 {
		l.ready.Inputs = append(l.ready.Inputs, Input{Link: k.id, Server: k.server, Touched: sessions})
	}
}

// reports says that the learner's reports up to number n had arrived when the log ended
// at zxid. They are confirmed to the learner once zxid is committed: if a session ended
// before its touch arrived, the learner must receive the end of the session first.
type reports struct {
	n    int64
	zxid wire.Zxid
}

// read records that a report arrived when the log ended at z.
func (k *link) read(z wire.Zxid) {
	if last := k.unconfirmed.Last(); last != nil && last.zxid == z {
		last.n = k.reports
		return
	}
	k.unconfirmed.Push(reports{k.reports, z})
}

// confirm counts as confirmed the reports that arrived when the log ended at z or before.
func (k *link) confirm(z wire.Zxid) {
	for f := k.unconfirmed.First(); f != nil && f.zxid <= z; f = k.unconfirmed.First() {
		k.confirmed = k.unconfirmed.Pop().n
	}
}

// mayTouch returns the reason why a learner must not send a TOUCH; empty if it may.
func mayTouch(native bool, s linkState) string {
	switch {
	case !native:
		return "sent TOUCH, but has agreed on no extension"
	case s != linkServing:
		return "sent TOUCH before it was told to serve"
	}
	return ""
}

// asked handles a TOUCH of a learner.
func (l *Leader) asked(k *link, p *peerwire.QuorumPacket) string {
	var touched peerwire.TouchedSessions
	if err := wire.Decode(p.Data, &touched); err != nil {
		return "sent touched sessions that cannot be read: " + err.Error()
	}
	if why := mayTouch(k.native, k.state); why != "" {
		return why
	}
	l.reported(k, touched.Sessions)
	k.asked = k.reports
	l.releaseAnswers()
	return ""
}

// touched notes that a client of this server waits for the lease.
func (l *Leader) touched(e Touched) {
	if e.Waits && l.phase == serving {
		l.pings.wanted = true
		l.releaseAnswers()
	}
}

// confirmTouches answers the TOUCHes of learners, under the same two conditions as a ping confirms
// sessions: this leader has its lease, and everything that it had proposed when the TOUCH
// arrived is committed. It returns true if a learner or a client of this server waits for the lease.
func (l *Leader) confirmTouches() (waits bool) {
	lease := l.now <= l.Lease()
	l.pings.wanted = l.pings.wanted && !lease
	waits = l.pings.wanted
	for _, k := range l.order {
		if k.asked <= k.told {
			continue
		}
		if !lease {
			waits = true
			continue
		}
		if k.confirm(l.log.applied); k.asked <= k.confirmed {
			k.told = k.confirmed
			l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketTouch, Data: wire.Append(nil, &peerwire.PingInfo{Confirmed: k.told})})
		}
	}
	return waits
}

// reported passes on the sessions that an observer has reported, in the next report of this
// follower.
func (m *observerMaster) reported(k *observer, e Touched) {
	k.reports++
	if k.native {
		k.unconfirmed.Push(passedOn{from: k.reports, in: m.r.touches.reports + 1})
	}
	m.r.touched(e)
}

// touched handles a TOUCH of an observer. The follower asks its leader in the same way.
func (m *observerMaster) touched(k *observer, p *peerwire.QuorumPacket) string {
	var touched peerwire.TouchedSessions
	if err := wire.Decode(p.Data, &touched); err != nil {
		return "sent touched sessions that cannot be read: " + err.Error()
	}
	if why := mayTouch(k.native, k.state); why != "" {
		return why
	}
	m.reported(k, Touched{Sessions: touched.Sessions, Waits: true})
	k.asked = k.reports
	return ""
}

// confirmed records that the leader has confirmed the sessions in this follower's reports up to
// number report. All transactions that the leader sent before that were passed on, so an
// observer hears of the end of a session before the session is confirmed.
func (m *observerMaster) confirmed(report int64) {
	for _, k := range m.order {
		for f := k.unconfirmed.First(); f != nil && f.in <= report; f = k.unconfirmed.First() {
			k.confirmed = k.unconfirmed.Pop().from
		}
	}
}

// confirmTouches answers the TOUCHes of observers that the leader has confirmed.
func (m *observerMaster) confirmTouches() {
	for _, k := range m.order {
		if k.told < k.asked && k.asked <= k.confirmed {
			k.told = k.confirmed
			m.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketTouch, Data: wire.Append(nil, &peerwire.PingInfo{Confirmed: k.told})})
		}
	}
}
