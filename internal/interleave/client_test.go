package interleave

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"bellwether/internal/interleave/schedule"
	"bellwether/wire"
)

// request is one request of a client, and its reply.
type request struct {
	xid  int32
	op   wire.OpCode
	path string
	data string
	// watch says that the request sets a watch: a one-shot watch for a read, a persistent one
	// for addWatch.
	watch     bool
	recursive bool // for addWatch
	ephemeral bool // for create

	sent     int // when it was sent, by world.clock
	answered int // when the reply was received; 0: not yet
	reply    wire.ReplyHeader
	got      string // the data, or the names of the children, that a read has shown
	version  int32
}

func (q *request) String() string {
	text := fmt.Sprintf("%v %s", q.op, q.path)
	switch {
	case q.recursive:
		text += " recursively"
	case q.watch:
		text += " with a watch"
	case q.ephemeral:
		text += " (ephemeral)"
	}
	return fmt.Sprintf("request %d (%s)", q.xid, text)
}

// received is one packet that a client has received: a reply, or an event.
type received struct {
	reply *request // nil: an event
	event event
	zxid  wire.Zxid
	line  int // of the trace
}

// client is one client. It sends requests without waiting for the replies of all earlier
// ones.
type client struct {
	w      *world
	number int
	rng    *rand.Rand
	conn   *end
	window int // most requests without a reply
	writes int // percent of its requests that are writes
	length int // requests before the last ones

	requests []*request
	waiting  []*request // sent, and not answered
	log      []received
	stage    stage
}

// stage is how far a client is.
type stage int

const (
	working stage = iota
	calm          // it has the replies to its random requests
	seen          // it has read once more, after all clients were calm
	gone          // its session or its connection has ended
)

func (c *client) String() string { return fmt.Sprint("client ", c.number) }

// paths are the znodes that the clients use; a run uses the first ones.
var paths = []string{"/a", "/a/x", "/b", "/b/x"}

// run connects, lets another goroutine send the requests, and receives the replies.
func (c *client) run() {
	c.conn = c.w.listener.dial(c.w.space)
	defer c.conn.Close()
	hello := &wire.ConnectRequest{TimeoutMS: 40_000, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	var welcome wire.ConnectResponse
	if _, err := c.conn.Write(wire.AppendFrame(nil, hello)); err != nil {
		c.w.fault("%v cannot connect: %v", c, err)
		return
	}
	frame, err := wire.ReadFrame(c.conn, nil, wire.FrameMax)
	if err == nil {
		err = wire.Decode(frame, &welcome)
	}
	if err != nil || welcome.Session == 0 {
		c.w.fault("%v gets no session: %v", c, err)
		return
	}
	schedule.Go(fmt.Sprint(c, " sender"), c.send)
	for !c.finished() {
		frame, err := wire.ReadFrame(c.conn, nil, wire.FrameMax)
		if err != nil {
			c.w.fault("%v has lost its connection with %d requests not answered: %v", c, len(c.waiting), err)
			break
		}
		c.receive(frame)
	}
	c.stage = gone
}

// finished reports whether the last request, closeSession, is answered.
func (c *client) finished() bool {
	n := len(c.requests)
	return n > 0 && c.requests[n-1].op == wire.OpCloseSession && len(c.waiting) == 0
}

// send sends random requests. When every client has the replies to these, it reads once
// more, so that every event must have been sent before, and ends its session.
func (c *client) send() {
	for i := range c.length {
		q := c.draw()
		q.xid = int32(i + 1)
		schedule.Wait("window", func() bool { return len(c.waiting) < c.window || c.stage == gone })
		c.ask(q)
	}
	c.reach(calm)
	c.ask(&request{xid: int32(c.length + 1), op: wire.OpExists, path: "/"})
	c.reach(seen)
	c.ask(&request{xid: int32(c.length + 2), op: wire.OpCloseSession})
}

// reach waits until everything is answered and all clients are at a stage.
func (c *client) reach(at stage) {
	schedule.Wait("replies", func() bool { return len(c.waiting) == 0 || c.stage == gone })
	c.stage = max(c.stage, at)
	schedule.Wait("other clients", func() bool {
		for _, other := range c.w.clients {
			if other.stage < at {
				return false
			}
		}
		return true
	})
}

// draw draws a request.
func (c *client) draw() *request {
	q := &request{path: c.w.paths[c.rng.IntN(len(c.w.paths))]}
	if c.rng.IntN(100) >= c.writes {
		reads := []wire.OpCode{wire.OpGetData, wire.OpGetData, wire.OpExists, wire.OpExists, wire.OpGetChildren, wire.OpPing, wire.OpAddWatch}
		q.op = reads[c.rng.IntN(len(reads))]
		q.watch = q.op == wire.OpAddWatch || q.op != wire.OpPing && c.rng.IntN(4) > 0
		q.recursive = q.op == wire.OpAddWatch && c.rng.IntN(2) == 0
		return q
	}
	switch n := c.rng.IntN(16); {
	case n < 6:
		q.op, q.ephemeral = wire.OpCreate, len(q.path) > 2 && c.rng.IntN(2) == 0
	case n < 13:
		q.op = wire.OpSetData
	case n < 15:
		q.op = wire.OpDelete
	default:
		q.op = wire.OpSync
	}
	q.data = fmt.Sprintf("%d of client %d", len(c.requests), c.number)
	return q
}

// ask sends a request.
func (c *client) ask(q *request) {
	if c.stage == gone {
		return
	}
	c.w.clock++
	q.sent = c.w.clock
	c.requests = append(c.requests, q)
	c.waiting = append(c.waiting, q)
	schedule.Note("%v sends %v", c, q)
	h := &wire.RequestHeader{Xid: q.xid, Op: q.op}
	if q.op == wire.OpPing {
		h.Xid = wire.XidPing
	}
	frame := wire.AppendFrame(nil, h)
	if body := q.body(); body != nil {
		frame = wire.AppendFrame(nil, h, body)
	}
	if _, err := c.conn.Write(frame); err != nil {
		c.w.fault("%v cannot send %v: %v", c, q, err)
	}
}

// body returns the record of a request; nil if it has none.
func (q *request) body() wire.Record {
	switch q.op {
	case wire.OpCreate:
		flags := int32(0)
		if q.ephemeral {
			flags = 1
		}
		return &wire.CreateRequest{Path: q.path, Data: []byte(q.data), ACL: wire.OpenACL(), Flags: flags}
	case wire.OpSetData:
		return &wire.SetDataRequest{Path: q.path, Data: []byte(q.data), Version: -1}
	case wire.OpDelete:
		return &wire.PathVersionRequest{Path: q.path, Version: -1}
	case wire.OpSync:
		return &wire.PathRequest{Path: q.path}
	case wire.OpAddWatch:
		mode := wire.WatchPersistent
		if q.recursive {
			mode = wire.WatchPersistentRecursive
		}
		return &wire.AddWatchRequest{Path: q.path, Mode: mode}
	case wire.OpPing, wire.OpCloseSession:
		return nil
	}
	return &wire.PathWatchRequest{Path: q.path, Watch: q.watch}
}

// receive records a packet.
func (c *client) receive(frame []byte) {
	c.w.clock++
	in := wire.Decoder(frame)
	var h wire.ReplyHeader
	h.Code(&in)
	if h.Xid == wire.XidEvent {
		var e wire.WatcherEvent
		e.Code(&in)
		c.log = append(c.log, received{event: event{e.Type, e.Path}, zxid: h.Zxid, line: c.w.schedule.Line()})
		schedule.Note("%v receives the event %v of %s, zxid %v", c, e.Type, e.Path, h.Zxid)
	} else {
		c.replied(h, &in)
	}
	if in.Err() != nil {
		c.w.fault("%v receives a packet that it cannot decode: %v", c, in.Err())
	}
	c.w.disk.seen(h.Zxid, c.w.schedule.Line())
}

// replied records a reply.
func (c *client) replied(h wire.ReplyHeader, in *wire.Coder) {
	if len(c.waiting) == 0 {
		c.w.fault("%v receives a reply with xid %d although nothing is to be answered", c, h.Xid)
		return
	}
	q := c.waiting[0]
	c.waiting = c.waiting[1:]
	if want := q.xid; h.Xid != want && !(q.op == wire.OpPing && h.Xid == wire.XidPing) {
		c.w.fault("%v receives a reply with xid %d, but the reply to %v comes next", c, h.Xid, q)
	}
	q.answered, q.reply = c.w.clock, h
	q.show(in)
	c.log = append(c.log, received{reply: q, zxid: h.Zxid, line: c.w.schedule.Line()})
	schedule.Note("%v receives the reply to %v: zxid %v, %v %s", c, q, h.Zxid, h.Err, q.got)
}

// show records what the reply to a read shows.
func (q *request) show(in *wire.Coder) {
	if q.reply.Err != wire.OK {
		return
	}
	switch q.op {
	case wire.OpGetData:
		var r wire.DataResponse
		r.Code(in)
		q.got, q.version = string(r.Data), r.Stat.Version
	case wire.OpExists:
		var r wire.StatResponse
		r.Code(in)
		q.version = r.Stat.Version
	case wire.OpGetChildren:
		var r wire.ChildrenResponse
		r.Code(in)
		slices.Sort(r.Children)
		q.got = strings.Join(r.Children, " ")
	}
}
