package server

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"

	"bellwether/internal/driver"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// headerLen is the length of a request header.
const headerLen = 8

// errShortFrame: a frame too short for a header.
var errShortFrame = errors.New("frame is too short for a request header")

// request carries out one request, or passes it to the loop. If it returns an error, the
// connection must be closed.
func (c *conn) request(frame []byte, now *batch) error {
	if len(frame) < headerLen {
		return errShortFrame
	}
	xid := int32(binary.BigEndian.Uint32(frame))
	op := wire.OpCode(int32(binary.BigEndian.Uint32(frame[4:])))
	body := frame[headerLen:]
	if op != wire.OpAuth && op != wire.OpSASL { // before the limits, so that a refused client uses up none
		if err := c.requireLogin(xid); err != nil {
			return err
		}
	}
	admitted := c.limitRate(op, body, len(frame), now)
	switch op {
	case wire.OpAuth:
		c.awaitLogin(now)
		return c.authenticate(xid, body)
	case wire.OpSASL:
		c.awaitLogin(now)
		return c.saslToken(xid, body)
	}
	if err := c.throttle(len(frame), now.start); err != nil {
		return err
	}
	if !admitted {
		return c.passToLoop(xid, op, body, now.start, wire.ErrThrottledOp)
	}
	if c.mustWait(op, now) {
		return c.passToLoop(xid, op, body, now.start, wire.OK)
	}
	if c.ended() {
		return nil // the client cannot receive the reply; writes are still carried out
	}
	c.takeTurn(now.direct)
	now.direct, now.xid, now.op = now.direct+1, xid, op
	from := int64(0)
	if now.traced {
		from = c.srv.clock()
	}
	err := c.read(c.takeScratch(), xid, op, body)
	if now.traced && op != wire.OpPing {
		now.path, _ = requestPath(op, body)
		c.readTraced(now, 1, from, c.srv.clock())
	}
	c.backPressure()
	return err
}

// mustWait reports whether a request must go to the loop. The reader answers all others
// itself.
func (c *conn) mustWait(op wire.OpCode, now *batch) bool {
	a := driver.Access{
		Unanswered: c.outstanding.Load() > 0, Closing: c.closing, Sealed: now.sealed || c.heard.Load() == driver.Sealed,
		ReadOnly: c.readOnly, Serving: c.srv.hasLeader.Load(),
	}
	return a.Waits(op) || op == wire.OpPing && !c.readOnly && !c.srv.leased()
}

// leased reports whether a ping may be answered at once, because the leader's lease has
// not ended.
func (s *Server) leased() bool {
	lease := driver.Lease{Mono: s.lease.Load()}
	if lease.Mono == replica.Never {
		return true
	}
	now := s.times()
	lease.Wall = s.leaseWall.Load()
	return lease.Holds(now)
}

// passToLoop passes a request to the loop, with a copy of its body, to be carried out or
// refused.
func (c *conn) passToLoop(xid int32, op wire.OpCode, body []byte, started int64, refuse wire.Code) error {
	s := c.srv
	q := &replica.Request{Conn: c.id, Xid: xid, Op: op, Identities: *c.ids.Load(), Started: started, Queued: max(started, c.paused), Size: int64(len(body)), Refuse: refuse}
	if err := s.countLarge(q); err != nil {
		return err
	}
	if s.audit != nil {
		q.Client = c
	}
	q.Body = append(make([]byte, 0, len(body)), body...)
	c.closing = c.closing || op == wire.OpCloseSession
	c.outstanding.Add(1)
	c.held.Add(q.Size)
	c.large.Add(q.Large)
	s.inProcess.Add(1)
	s.inProcessBytes.Add(q.Size)
	c.pending = append(c.pending, q)
	return nil
}

// scratch is memory that is reused to decode reads and to build their replies. A reader
// goroutine borrows one while it takes requests.
type scratch struct {
	in           wire.Coder
	path         wire.PathRequest
	watch        wire.PathWatchRequest
	data         wire.DataResponse
	stat         wire.StatResponse
	listing      tree.Listing
	children     wire.ChildrenResponse
	childrenStat wire.ChildrenStatResponse
	many         manyChildren
	acl          wire.ACLResponse
	late         bool   // the loop carries out a read that waited for a write: it must not block, and no memory is reused
	yield        func() // set for the loop: called during long work
}

// scratches are for connections that carry out reads. An idle connection has none.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// takeScratch returns the scratch that the reader has, and borrows one if it has none.
func (c *conn) takeScratch() *scratch {
	if c.scratch == nil {
		c.scratch = scratches.Get().(*scratch)
	}
	return c.scratch
}

// giveScratch returns the scratch, if the reader has one.
func (c *conn) giveScratch() {
	if c.scratch != nil {
		*c.scratch = scratch{}
		scratches.Put(c.scratch)
		c.scratch = nil
	}
}

// forget drops references to a reply's memory. The reader may then wait for its client
// for long, while the tree replaces the data.
func (s *scratch) forget() {
	s.data.Data, s.acl.ACL, s.many = nil, nil, manyChildren{}
	s.listing.Children, s.listing.Many = nil, nil
	s.children.Children, s.childrenStat.Children = nil, nil
}

// read carries out a request that does not change the tree, and queues its reply. If
// s.late is set, the request had to wait behind a write and the loop carries it out; then
// nothing is reused, and nothing is encoded here. If it returns an error, the connection
// must be closed after the reply.
func (c *conn) read(s *scratch, xid int32, op wire.OpCode, body []byte) error {
	s.in = wire.Decoder(body)
	s.in.Alias = true
	code, record, err := c.perform(s, op, &s.in)
	c.judge(code, record)
	h := wire.ReplyHeader{Xid: xid, Zxid: c.out.zxid, Err: code}
	switch {
	case op == wire.OpPing:
		h.Xid = wire.XidPing
	case code == wire.ErrUnimplemented:
		h.Zxid = -1
	}
	if code != wire.OK && !(op == wire.OpMultiRead && code == wire.ErrMarshalling) {
		record = nil
	}
	if s.late {
		if c.out.fillLater(h, record) {
			c.srv.pendingFlush.add(c)
		}
		return err
	}
	c.out.fill(h, record)
	c.unclaim()
	s.forget()
	return err
}

// errUnknownOp: the connection must be closed after the reply.
var errUnknownOp = errors.New("operation is unknown, or only for servers")

// perform reads the tree and, under its lock, reserves the place of the reply.
func (c *conn) perform(s *scratch, op wire.OpCode, in *wire.Coder) (wire.Code, wire.Record, error) {
	t := c.srv.Tree()
	switch op {
	case wire.OpGetData, wire.OpExists, wire.OpGetChildren, wire.OpGetChildren2:
		code, r := c.look(t, s, op, in)
		return code, r, nil
	case wire.OpPing:
		t.Reserve(c)
		return wire.OK, nil, nil
	case wire.OpGetACL, wire.OpGetAllChildrenNumber:
		code, r := c.lookUnwatched(t, s, op, in)
		return code, r, nil
	case wire.OpSetWatches, wire.OpSetWatches2, wire.OpAddWatch, wire.OpCheckWatches, wire.OpRemoveWatches:
		code, r := c.watch(t, op, in)
		return code, r, nil
	case wire.OpGetEphemerals, wire.OpMultiRead, wire.OpWhoAmI:
		code, r := c.lookRare(t, s, op, in)
		return code, r, nil
	}
	t.Reserve(c)
	return wire.ErrUnimplemented, nil, errUnknownOp
}

// undecodable reserves the place of the answer to a record that cannot be decoded.
func (c *conn) undecodable(t *tree.Tree) wire.Code {
	t.Reserve(c)
	return wire.ErrMarshalling
}

// look carries out the reads that can leave a watch.
func (c *conn) look(t *tree.Tree, s *scratch, op wire.OpCode, in *wire.Coder) (wire.Code, wire.Record) {
	q := &s.watch
	if q.Code(in); in.Err() != nil {
		return c.undecodable(t), nil
	}
	if !s.late && c.srv.budget.busy() {
		c.claimReply(t.ReadBytes(op, q.Path))
	}
	switch op {
	case wire.OpGetData:
		return t.GetData(c, q.Path, q.Watch, &s.data), &s.data
	case wire.OpExists:
		return t.Exists(c, q.Path, q.Watch, &s.stat), &s.stat
	default:
		return c.children(t, s, op)
	}
}

// children lists the children of s.watch.Path. If their names must be encoded first, that
// is done in a turn and in steps.
func (c *conn) children(t *tree.Tree, s *scratch, op wire.OpCode) (wire.Code, wire.Record) {
	q, l := &s.watch, &s.listing
	var code wire.Code
	ready := false
	if !s.late {
		code, ready = t.ChildrenReady(c, q.Path, q.Watch, l)
	}
	if !ready {
		code = c.encodeChildren(t, s)
	}
	switch {
	case l.Many != nil && op == wire.OpGetChildren:
		s.many = manyChildren{names: l.Many}
		return code, &s.many
	case l.Many != nil:
		s.many = manyChildren{names: l.Many, stat: &l.Stat}
		return code, &s.many
	case op == wire.OpGetChildren:
		s.children.Children = l.Children
		return code, &s.children
	}
	s.childrenStat.Children, s.childrenStat.Stat = l.Children, l.Stat
	return code, &s.childrenStat
}

// encodeChildren is like children, but for the case that names must be encoded.
func (c *conn) encodeChildren(t *tree.Tree, s *scratch) wire.Code {
	q, l := &s.watch, &s.listing
	if s.late {
		return t.Children(c, q.Path, q.Watch, l)
	}
	c.enterTurn()
	defer c.leaveTurn()
	names := t.EncodeNames(q.Path)
	defer runtime.KeepAlive(names)
	return t.Children(c, q.Path, q.Watch, l)
}

func (c *conn) lookUnwatched(t *tree.Tree, s *scratch, op wire.OpCode, in *wire.Coder) (wire.Code, wire.Record) {
	if s.path.Code(in); in.Err() != nil {
		return c.undecodable(t), nil
	}
	if op == wire.OpGetACL {
		return t.GetACL(c, s.path.Path, &s.acl), &s.acl
	}
	count := new(wire.CountResponse)
	goOn := c.nextTurn
	if s.late {
		goOn = func() bool { s.yield(); return !c.ended() }
	}
	code := t.CountAll(c, s.path.Path, goOn, count)
	if code == wire.ErrSystem {
		return c.finishUnanswered(t), nil // otherwise the client would take a partial reply for the complete one
	}
	return code, count
}

// watch carries out the requests that only concern watches.
func (c *conn) watch(t *tree.Tree, op wire.OpCode, in *wire.Coder) (wire.Code, wire.Record) {
	switch op {
	case wire.OpSetWatches:
		var q wire.SetWatchesRequest
		if q.Code(in); in.Err() == nil {
			return t.SetWatches(c, &q), nil
		}
	case wire.OpSetWatches2:
		var q wire.SetWatches2Request
		if q.Code(in); in.Err() == nil {
			return t.SetWatches2(c, &q), nil
		}
	case wire.OpAddWatch:
		var q wire.AddWatchRequest
		if q.Code(in); in.Err() == nil {
			return t.AddWatch(c, q.Path, q.Mode), &wire.ErrorResponse{}
		}
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		var q wire.WatchesRequest
		if q.Code(in); in.Err() != nil {
			break
		}
		switch {
		case q.NullPath:
			t.Reserve(c)
			return wire.ErrNoWatcher, nil
		case op == wire.OpRemoveWatches:
			return t.RemoveWatches(c, q.Path, q.Type), nil
		}
		return t.CheckWatches(c, q.Path, q.Type), nil
	}
	return c.undecodable(t), nil
}

func (c *conn) lookRare(t *tree.Tree, s *scratch, op wire.OpCode, in *wire.Coder) (wire.Code, wire.Record) {
	switch op {
	case wire.OpGetEphemerals:
		var q wire.NullPathRequest
		if q.Code(in); in.Err() != nil {
			break
		}
		if !s.late && !c.mayBuild(t.EphemeralsBytes(c)) {
			return c.finishUnanswered(t), nil
		}
		r := new(wire.EphemeralsResponse)
		return t.Ephemerals(c, q.Path, r), r
	case wire.OpMultiRead:
		var q wire.MultiRequest
		if q.Code(in); in.Err() != nil {
			break
		}
		return c.multiRead(t, s, q.Ops)
	case wire.OpWhoAmI:
		t.Reserve(c)
		return wire.OK, c.whoAmI()
	}
	return c.undecodable(t), nil
}

// finishUnanswered gives up a request without a reply. The connection is closed after the replies
// before it.
func (c *conn) finishUnanswered(t *tree.Tree) wire.Code {
	c.out.mu.Lock()
	c.out.ending = true
	c.out.mu.Unlock()
	t.Reserve(c)
	return wire.ErrSystem
}

// buildInTurn starts a turn for a reply that takes long to build. It returns false if the
// reply is no longer wanted.
func (c *conn) buildInTurn() bool {
	c.enterTurn()
	return !c.ended() && !c.srv.stopping.Load()
}

// mayBuild waits for the memory for a reply of about n bytes and, if that is much, for a
// turn. It returns false if the reply is no longer wanted.
func (c *conn) mayBuild(n int) bool {
	return c.claimReply(n) && (n <= longBytes || c.buildInTurn())
}

// nextTurn ends the current turn and starts another, so that others get theirs during
// long work. It returns false if the reply is no longer wanted.
func (c *conn) nextTurn() bool {
	c.leaveTurn()
	return c.buildInTurn()
}

// multiRead carries out several reads. The answer can be long although the request is
// short. A long one waits for memory and a turn before it is built, and is refused above
// a limit. The loop cannot wait; it applies the same limit.
func (c *conn) multiRead(t *tree.Tree, s *scratch, ops []wire.Op) (wire.Code, wire.Record) {
	most := c.srv.budget.multiReadMax()
	if n := t.MultiReadBytes(ops); !s.late && n <= most {
		if !c.mayBuild(n) {
			return c.finishUnanswered(t), nil
		}
	}
	r := new(wire.MultiResponse)
	code := t.MultiRead(c, ops, most, r)
	if code == wire.ErrSystem {
		const what = "multiRead is refused: its answer takes too much memory"
		c.srv.warn(what, c.net.RemoteAddr(), what, "addr", c.addr, "session", c.Session(), "limit", most)
	}
	return code, r
}
