package server

import (
	"math"
	"slices"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// trace begins the description of a request of this connection.
func (c *conn) trace(xid int32, op wire.OpCode, began int64) *Trace {
	s := c.srv
	return &Trace{Server: s.id(), Session: c.Session(), Cxid: xid, Op: op, Operation: op.String(), Client: c.addr, Requests: 1,
		Began: s.wallAt(began), began: began}
}

// id returns the server's id.
func (s *Server) id() ensemble.ServerID {
	if s.member == nil {
		return aloneID
	}
	return s.config().Ensemble.ID
}

// describe describes a request that the loop has answered, and keeps the description until
// the reply is written. z is the zxid of the transaction, if there is one.
func (l *loop) describe(c *conn, q *replica.Request, z wire.Zxid, code wire.Code) {
	t := c.trace(q.Xid, q.Op, q.Started)
	t.Path, _ = requestPath(q.Op, q.Body)
	t.Zxid, t.Err, t.applied = z, code, l.srv.clock()
	t.stage(StageDecode, q.Started, q.Queued)
	t.stage(StageQueue, q.Queued, q.Stepped)
	decided := q.Stepped // when the request could be applied
	if q.Op.IsWrite() || q.Op == wire.OpCreateSession || q.Op == wire.OpCloseSession {
		if p := l.proposedAt(z); p >= q.Stepped {
			t.stage(StagePropose, q.Stepped, p)
			decided = l.agreement(t, z, p)
		}
	} else if l.clock > q.Stepped {
		t.stage(StageQuorum, q.Stepped, l.clock) // a sync, or a read behind a write
		decided = l.clock
	}
	t.stage(StageApply, decided, t.applied)
	t.judge(l.completed(t))
	c.out.holdTrace(t, l.srv)
}

// proposedAt returns when a transaction was proposed here, or its proposal arrived here.
func (l *loop) proposedAt(z wire.Zxid) int64 {
	if l.decides() {
		return l.srv.milestones.proposed.of(z)
	}
	return l.srv.milestones.arrived.of(z)
}

// agreement adds the stages and acks of a transaction that was proposed at a time, and is
// committed in this batch. It returns when that was.
func (l *loop) agreement(t *Trace, z wire.Zxid, proposed int64) (committed int64) {
	m := l.srv.milestones
	committed = max(l.clock, proposed)
	begun, durable := m.fsync(z)
	t.stage(StageFsync, begun, durable)
	t.stage(StageQuorum, proposed, committed)
	if l.srv.member == nil || !l.decides() {
		return committed
	}
	if durable != 0 {
		t.Acks = append(t.Acks, Ack{t.Server, time.Duration(durable - t.began)})
	}
	for _, k := range l.replica.Learners() {
		if line := m.acked[k.Link]; line != nil {
			if at := line.of(z); at >= proposed {
				t.Acks = append(t.Acks, Ack{k.Server, time.Duration(at - t.began)})
			}
		}
	}
	slices.SortStableFunc(t.Acks, func(a, b Ack) int { return int(a.After - b.After) })
	return committed
}

// completed returns the server for which the commit of a transaction waited: the one whose ack
// completed the quorum, or a learner's leader; 0: not known.
func (l *loop) completed(t *Trace) ensemble.ServerID {
	switch {
	case l.srv.member == nil:
		return t.Server
	case !l.decides():
		if st := l.srv.ReplicaStatus(); st != nil && st.Role != peerwire.Looking {
			return st.Leader
		}
		return 0
	}
	have := map[ensemble.ServerID]bool{}
	for _, a := range t.Acks {
		have[a.Server] = true
		if l.srv.config().Ensemble.Members.HasQuorum(func(id ensemble.ServerID) bool { return have[id] }) {
			return a.Server
		}
	}
	return 0
}

// describeForwarded describes those of the committed transactions that clients of learners asked
// for, if they took longer than above.
func (l *loop) describeForwarded(txns []*record.Txn, above int64) {
	if len(txns) == 0 || !l.decides() || above == math.MaxInt64 {
		return
	}
	if first := l.srv.milestones.proposed.of(txns[0].Zxid); first == 0 || l.clock-first < above {
		return
	}
	own := map[wire.SessionID]bool{}
	for _, c := range l.conns {
		own[c.Session()] = true
	}
	for _, x := range txns {
		began := l.srv.milestones.proposed.of(x.Zxid)
		if began == 0 || own[x.Session] || x.Session == 0 || l.clock-began < above {
			continue
		}
		t := &Trace{Server: l.srv.id(), Session: x.Session, Cxid: x.Cxid, Op: x.Type, Operation: x.Type.String(), Zxid: x.Zxid, Forwarded: true, Requests: 1,
			Began: l.srv.wallAt(began), began: began}
		committed := l.agreement(t, x.Zxid, began)
		t.stage(StageApply, committed, l.srv.clock())
		t.Took = time.Duration(l.srv.clock() - began)
		t.judge(l.completed(t))
		l.srv.tracer.add(t)
	}
}

// milestone records what a packet from another server says about a stage.
func (l *loop) milestone(link zab.LinkID, p *peerwire.QuorumPacket) {
	switch p.Type {
	case peerwire.PacketProposal:
		l.srv.milestones.arrived.add(p.Zxid, l.clock)
	case peerwire.PacketAck:
		l.srv.milestones.ack(link, p.Zxid, l.clock)
	}
}

// proposedNow records that duties with transactions were passed to the log writer.
func (l *loop) proposedNow(t *driver.Task) {
	if n := len(t.Append); n > 0 {
		l.srv.milestones.proposed.add(t.Append[n-1].Zxid, t.At)
	}
}

// queuedNow records when the pending requests are passed to the loop.
func (c *conn) queuedNow() {
	now := c.srv.clock()
	for _, q := range c.pending {
		q.Queued = now
	}
}

// readTraced describes n reads that arrived together, and that the connection's reader has
// carried out itself. b describes the last of them. from is when the reader began to carry them
// out, and to is when it had finished.
func (c *conn) readTraced(b *batch, n, from, to int64) {
	t := c.trace(b.xid, b.op, b.start)
	t.Requests, t.Path, t.Zxid, t.applied = n, b.path, c.out.zxid, to
	t.stage(StageDecode, b.start, from)
	t.stage(StageApply, from, to)
	t.judge(0)
	c.out.holdTrace(t, c.srv)
}

// holdTrace holds a trace until everything that waits for the client is written.
func (o *output) holdTrace(t *Trace, s *Server) {
	s.tracer.add(o.addTrace(t, s)...)
}

// addTrace adds a trace, and returns the traces that are complete because no flush follows.
func (o *output) addTrace(t *Trace, s *Server) []*Trace {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.traced = append(o.traced, t)
	if o.closed || o.ending || !o.writing && o.pending() == 0 && o.ready == nil {
		return o.takeTraced(s)
	}
	return nil
}

// takeTraced ends and returns the traces whose replies have been written. The caller holds the
// lock, and must pass the traces to the tracer when it has released it: the tracer writes to
// the log.
func (o *output) takeTraced(s *Server) []*Trace {
	done := o.traced
	if len(done) == 0 {
		return nil
	}
	now := s.clock()
	for _, t := range done {
		if !o.closed && !o.ending {
			t.stage(StageReply, t.applied, now)
		}
		t.Took = time.Duration(now - t.began)
	}
	o.traced = nil
	return done
}
