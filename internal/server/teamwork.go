package server

import (
	"context"
	"log/slog"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
)

// teamwork is what the loop of a server of an ensemble holds in addition.
type teamwork struct {
	beat    int64 // ns of the server's clock at which Beat is to be called
	alarm   *time.Timer
	listens bool
	dials   ensemble.ServerID
	ended   []zab.LinkID // links that have closed in this batch
}

// nextBeat records when Beat must be called next, in ms.
func (t *teamwork) nextBeat(at int64) {
	t.beat = min(at, replica.Never/int64(time.Millisecond)) * int64(time.Millisecond)
}

// tellTeam returns the logger and the level for an observation about servers. The logger
// adds the address of the other server.
func (l *loop) tellTeam(h replica.Happening) (log *slog.Logger, level slog.Level) {
	m := l.srv.member
	log, level = l.srv.log, m.stats.level(h)
	switch e := h.(type) {
	case zab.LearnerLost:
		log = log.With("peer", m.address(e.Link))
		switch {
		case e.Refused:
			log, level = l.once(m.address(e.Link), e.Why, level)
		case e.Nobody:
			level = slog.LevelDebug
		}
	case zab.Foreign:
		log, level = l.once(m.address(e.Link), e.String(), level)
	case zab.OldEpoch:
		log, level = l.once(m.address(e.Link), e.String(), level)
	case zab.GaveUp:
		if e.Link == 0 {
			break
		}
		told, once := l.once(m.address(e.Link), e.Why, level)
		if log = told; l.replica.JoinFails() {
			level = once
		}
	case election.Began, election.Decided, election.Abandoned:
		if l.replica.JoinFails() {
			level = slog.LevelDebug
		}
	case election.Refused:
		log, level = l.once(m.voice(e.From), e.String(), level)
	case election.Barred:
		log = log.With("peer", m.voice(e.From))
	}
	return log, level
}

// once returns the logger and the level for a message about an address. A repeated
// message is only counted, and the level is debug.
func (l *loop) once(address, what string, level slog.Level) (*slog.Logger, slog.Level) {
	return l.srv.log.With("peer", address), l.srv.notices.Level(level, what, address)
}

// before acts on an event of the ensemble before the replica gets it.
func (l *loop) before(e replica.Event) {
	switch e := e.(type) {
	case replica.Rebuilt:
		// No client may see the new tree before it is served. A reader that is still
		// carrying out a read gives its reply to an output that accepts none
		// (output.fill).
		for _, c := range l.conns {
			if c.Session() != 0 {
				c.finishLater()
			}
		}
		l.srv.tree.Store(e.Tree)
	case replica.Zab:
		switch e := e.Event.(type) {
		case zab.Received:
			l.heard(e.Link, e.Packet)
		case zab.Refused:
			l.srv.journal.reopen()
		case zab.Closed:
			l.team.ended = append(l.team.ended, e.Link)
		}
	}
}

// heard acts on a packet from another server before the replica gets it.
func (l *loop) heard(link zab.LinkID, p *peerwire.QuorumPacket) {
	m := l.srv.member
	switch p.Type {
	case peerwire.PacketRequest:
		l.asked++
	case peerwire.PacketFollowerInfo, peerwire.PacketObserverInfo:
		m.measure(link, p)
	}
	m.stats.heard(p, l.now.Wall)
}

// sendOut sends what may leave before the committed transactions are applied.
func (l *loop) sendOut(rd *replica.Ready) {
	m := l.srv.member
	if m == nil {
		return
	}
	for _, v := range rd.Votes {
		m.mesh.Send(v.To, v.Notification)
	}
	l.team.nextBeat(rd.NextBeat)
	l.send(rd.Send, rd.BeatDue)
}

// send sends messages to the other servers, except those that the batch holds until it is
// applied. due is the time at which the pings among them were due; 0: there are none.
func (l *loop) send(all []zab.Message, due int64) {
	m := l.srv.member
	m.stats.sent(all)
	for _, msg := range all {
		if !l.order.Hold(msg) {
			m.send(msg)
		}
	}
	m.beaten(all, due)
}

// apply applies what is committed and delivers it to clients.
func (l *loop) apply(rd *replica.Ready) {
	if l.srv.member == nil {
		l.deliver()
		return
	}
	start, stats := l.srv.clock(), l.srv.member.stats
	l.deliver()
	if n := int64(len(rd.Committed)); n > 0 && stats.serves {
		stats.applied.Observe(micro((l.srv.clock()-start)/n), n)
		stats.committed(rd.Committed, l.now.Wall)
		if stats.leading() {
			l.srv.stats.commits.Add(n)
		}
	}
}

// connect closes links, reads old logs for learners, opens or closes the quorum port, and
// starts or stops dialling the leader.
func (l *loop) connect(rd *replica.Ready) {
	m := l.srv.member
	if m == nil {
		return
	}
	for _, link := range rd.Close {
		m.links.Close(link)
		l.srv.inbox.release(link) // after Close, so that the reader passes on nothing more
	}
	for _, q := range rd.ReadLog {
		l.srv.writers.Go(func() { m.readLog(q) })
	}
	if rd.Listen != l.team.listens {
		l.team.listens = rd.Listen
		m.openPort(rd.Listen)
	}
	if rd.Dial != l.team.dials {
		if l.team.dials = rd.Dial; rd.Dial == peerwire.NoServer {
			m.links.Hang()
		} else {
			m.links.Dial(rd.Dial)
		}
	}
}

// endBatch publishes the results of a batch to other goroutines.
func (l *loop) endBatch() {
	m := l.srv.member
	if m == nil {
		return
	}
	for _, link := range l.team.ended {
		m.forget(link)
	}
	l.team.ended = l.team.ended[:0]
	lease := driver.LeaseOf(l.replica.Lease(), l.now)
	l.srv.lease.Store(lease.Mono)
	l.srv.leaseWall.Store(lease.Wall)
	l.srv.stats.locals.Store(int64(l.replica.Locals()))
	l.publish()
	l.dismiss()
	wait := time.Duration(min(l.order.WakeAt(), replica.Never/int64(time.Millisecond)))*time.Millisecond - time.Duration(l.srv.clock())
	l.team.alarm.Reset(max(wait, 0))
}

// publish stores the server's standing for other goroutines.
func (l *loop) publish() {
	s := l.srv
	now, before := l.replica.Standing(), s.member.standing.Load()
	if before != nil && *before == *now {
		return
	}
	s.led.Store(now.Serving)
	s.member.standing.Store(now)
	defer s.member.news.tell()
	if now.Serving {
		// Transactions that a snapshot contains beyond its zxid were committed before
		// UPTODATE was sent, so the tree holds no uncommitted transaction.
		s.Tree().Settled()
	}
	s.member.stats.stands(before, now, s.clock())
	if before != nil && (before.Role != now.Role || before.Serving != now.Serving) {
		s.member.pinged.Store(0)
	}
	if before == nil || before.Role != now.Role || before.Serving != now.Serving {
		level := slog.LevelInfo
		if l.replica.JoinFails() {
			level = slog.LevelDebug
		}
		s.log.Log(context.Background(), level, "Peer state changed: "+peerState(now), "epoch", now.Epoch)
	}
	if now.Serving {
		s.firstServes.Do(func() { close(s.ready) })
	}
}

// dismiss closes all connections when the server is stopping and either has no leader or
// leads without a quorum: nothing could answer the requests that wait on them.
func (l *loop) dismiss() {
	if !l.srv.stopping.Load() || !l.replica.Stranded() {
		return
	}
	for _, c := range l.conns {
		c.finishLater()
	}
	l.srv.pendingFlush.flush()
}
