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

// memberLoop holds what the loop of a server of an ensemble holds in addition.
type memberLoop struct {
	nextHeartbeat int64 // ns of the server's clock at which Heartbeat is to be called
	alarm         *time.Timer
	listens       bool
	observers     bool // the observer master port should be open
	dialled       dialled
	ended         []zab.LinkID // links that have closed in this batch
}

// dialled is the server that this one dials, and the port.
type dialled struct {
	server ensemble.ServerID
	master bool // its observer master port
}

// setNextHeartbeat records when replica.Heartbeat must be called next, in ms.
func (t *memberLoop) setNextHeartbeat(at int64) {
	t.nextHeartbeat = min(at, replica.Never/int64(time.Millisecond)) * int64(time.Millisecond)
}

// loggerFor returns the logger and the level for an observation about servers. The logger
// adds the address of the other server.
func (l *loop) loggerFor(h replica.Observation) (log *slog.Logger, level slog.Level) {
	m := l.srv.member
	log, level = l.srv.log, m.stats.level(h)
	switch e := h.(type) {
	case zab.LearnerLost:
		log = log.With("peer", m.address(e.Link))
		switch {
		case e.Refused:
			log, level = l.loggerOnce(m.address(e.Link), e.Why, level)
		case e.Nobody:
			level = slog.LevelDebug
		}
	case zab.HistoryAhead:
		log, level = l.loggerOnce(m.address(e.Link), e.String(), level)
	case zab.OldEpoch:
		log, level = l.loggerOnce(m.address(e.Link), e.String(), level)
	case zab.GaveUp:
		if e.Link == 0 {
			break
		}
		told, once := l.loggerOnce(m.address(e.Link), e.Why, level)
		if log = told; l.replica.JoinFails() {
			level = once
		}
	case election.Began, election.Decided, election.Abandoned:
		if l.replica.JoinFails() {
			level = slog.LevelDebug
		}
	case election.Refused:
		log, level = l.loggerOnce(m.sender(e.From), e.String(), level)
	case election.Barred:
		log = log.With("peer", m.sender(e.From))
	}
	return log, level
}

// loggerOnce returns the logger and the level for a message about an address. A repeated
// message is only counted, and the level is debug.
func (l *loop) loggerOnce(address, what string, level slog.Level) (*slog.Logger, slog.Level) {
	return l.srv.log.With("peer", address), l.srv.notices.Level(level, what, address)
}

// before acts on an event of the ensemble before the replica gets it.
func (l *loop) before(e replica.Event) {
	switch e := e.(type) {
	case replica.Rebuilt:
		// No client may see the new tree before it is served. If a reader is still carrying
		// out a read, output.fill drops its reply.
		for _, c := range l.conns {
			if c.Session() != 0 {
				c.finishLater()
			}
		}
		mismatches, _ := l.srv.Tree().DigestMismatches()
		l.srv.stats.mismatches.Add(mismatches)
		l.srv.tree.Store(e.Tree)
	case replica.Zab:
		switch e := e.Event.(type) {
		case zab.Received:
			l.heard(e.Link, e.Packet)
		case zab.Refused:
			l.srv.journal.reopen()
		case zab.Closed:
			l.member.ended = append(l.member.ended, e.Link)
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
	l.milestone(link, p)
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
	l.member.setNextHeartbeat(rd.NextHeartbeat)
	l.send(rd.Send, rd.HeartbeatDue)
}

// send sends messages to the other servers, except those that the batch holds back until its
// transactions are applied. due is the time at which the pings among them were due; 0: there are none.
func (l *loop) send(all []zab.Message, due int64) {
	m := l.srv.member
	m.stats.sent(all)
	for _, msg := range all {
		if !l.order.Hold(msg) {
			m.send(msg)
		}
	}
	m.observePings(all, due)
}

// apply applies what is committed and delivers it to clients.
func (l *loop) apply(rd *replica.Ready) {
	if l.srv.member == nil {
		l.deliver()
		return
	}
	start, stats := l.srv.clock(), l.srv.member.stats
	l.deliver()
	l.describeForwarded(rd.Committed, l.srv.tracer.above.Load())
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
	if rd.Members != nil {
		m.reconfigured(rd.Members)
	}
	if rd.Listen != l.member.listens {
		l.member.listens = rd.Listen
		m.openPort(rd.Listen)
	}
	if rd.ListenObservers != l.member.observers {
		l.member.observers = rd.ListenObservers
		m.openObserverPort(rd.ListenObservers)
	}
	if now := (dialled{rd.Dial, rd.DialMaster}); now != l.member.dialled {
		l.member.dialled = now
		switch {
		case now.server == peerwire.NoServer:
			m.links.StopDialling()
		case now.master:
			m.links.DialMaster(now.server)
		default:
			m.links.Dial(now.server)
		}
	}
}

// endBatch publishes the results of a batch to other goroutines.
func (l *loop) endBatch() {
	m := l.srv.member
	if m == nil {
		if l.order.WakeAt() != replica.Never {
			l.arm()
		}
		return
	}
	for _, link := range l.member.ended {
		m.forget(link)
		l.srv.milestones.forget(link)
	}
	l.member.ended = l.member.ended[:0]
	lease := driver.LeaseOf(l.replica.Lease(), l.now)
	l.srv.lease.Store(lease.Mono)
	l.srv.leaseWall.Store(lease.Wall)
	l.srv.stats.locals.Store(int64(l.replica.Locals()))
	l.publish()
	l.dismiss()
	l.arm()
}

// arm sets the alarm that begins the next batch, if no event does so before.
func (l *loop) arm() {
	wait := time.Duration(min(l.order.WakeAt(), replica.Never/int64(time.Millisecond)))*time.Millisecond - time.Duration(l.srv.clock())
	l.member.alarm.Reset(max(wait, 0))
}

// publish stores the server's status for other goroutines.
func (l *loop) publish() {
	s := l.srv
	now, before := l.replica.Status(), s.member.status.Load()
	if before != nil && *before == *now {
		return
	}
	s.hasLeader.Store(now.Serving)
	s.member.status.Store(now)
	defer s.member.statusChange.tell()
	if tree := s.Tree(); now.Serving && tree.Fuzzy() {
		// A snapshot may contain transactions beyond its zxid. They were committed before
		// UPTODATE was sent, so by now all of them are applied, and digests can be compared.
		tree.Settled()
		l.snapshot() // the leader's names no digest, so that ZooKeeper would compare none after a start from it
	}
	s.member.stats.statusChanged(before, now, s.clock())
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
