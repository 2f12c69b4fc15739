package zk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"bellwether/wire"
)

const (
	// keptBufferMax is the size, in bytes, of the largest buffer that is kept for reuse.
	keptBufferMax = 64 << 10
	// readTriesMax is the number of connections on which one read is sent before it
	// fails.
	readTriesMax = 3
)

// call is one request, such as that of a Set or a Get, and later its answer. While the
// call is in a list, Client.mu guards it; only the reader takes it off link.sent while
// the link lives. Once answered it belongs to the goroutine that waits, or to nobody if
// that goroutine has stopped waiting.
type call struct {
	c     *Client
	op    OpCode
	path  string // in the server's form, with the chroot
	frame []byte // the whole request; the xid is set when it is sent
	xid   int32
	tries int
	// write: the call changes something, so it is not sent again after its answer is
	// lost.
	write bool
	left  bool // the goroutine that made the call no longer waits for the answer
	// session is the session in which the call was last sent. pin is the only session in
	// which it may be sent; 0: any.
	session, pin SessionID

	header   wire.ReplyHeader
	reply    []byte // header and body of the answer
	err      error  // why there is no answer
	answered chan struct{}

	// watch and stream are registered by the reader when it reads the answer, so they
	// receive exactly the events that the server sends after the answer.
	watch  *Watch
	stream *Stream
	// assumes holds the one-shot watches that the reader registers with the answer to a
	// Stream.Since.
	assumes *assumption
	// removes is the kind of watches that the request removes, if it is a removeWatches.
	removes wire.WatcherType
	// cred is the credential to keep for later connections once the server has accepted
	// it.
	cred *Auth
	// then, if set, is called instead of waking a waiting goroutine. Client.mu is held.
	then func(*call)

	next, prev *call
	in         *callList

	// The records are fields so that encoding and decoding them allocates nothing.
	coder       wire.Coder
	pathWatch   wire.PathWatchRequest
	pathVersion wire.PathVersionRequest
	setData     wire.SetDataRequest
	creation    wire.CreateTTLRequest
	created     wire.PathStatResponse
	data        wire.DataResponse
	stat        wire.StatResponse
}

// newCall takes a call from those that the client has used before. They are not shared
// between clients, because a channel belongs to the synctest bubble that made it.
func (c *Client) newCall(op OpCode) *call {
	k, _ := c.calls.Get().(*call)
	if k == nil {
		k = &call{c: c, answered: make(chan struct{}, 1)}
	}
	k.op, k.write = op, op.IsWrite()
	return k
}

// ownCall makes a request that the client itself sends. The caller must put it on a list
// at once. When the answer has come, the client calls the given function. The caller holds
// Client.mu.
func (c *Client) ownCall(op OpCode, req wire.Record, then func(*call)) *call {
	k := c.newCall(op)
	k.then = then
	if err := k.encode(req); err != nil {
		panic(fmt.Sprintf("zk: own request %v cannot be encoded: %v", op, err))
	}
	c.waiting++
	return k
}

// free makes the call available for reuse. Afterwards the caller may use only what it
// has copied out of the call.
func (k *call) free() {
	*k = call{c: k.c, frame: kept(k.frame), reply: kept(k.reply), answered: k.answered}
	k.c.calls.Put(k)
}

func kept(b []byte) []byte {
	if cap(b) > keptBufferMax {
		return nil
	}
	return b[:0]
}

// encode makes the frame of the request. req is nil if the request has no record.
func (k *call) encode(req wire.Record) error {
	dst, _ := wire.BeginFrame(k.frame[:0])
	k.coder = wire.Encoder(dst)
	h := wire.RequestHeader{Op: k.op}
	h.Code(&k.coder)
	if req != nil {
		req.Code(&k.coder)
	}
	k.frame = wire.EndFrame(k.coder.Bytes(), 0)
	return k.coder.Err()
}

// setXid writes the number of the request into its frame.
func (k *call) setXid(xid int32) {
	k.xid = xid
	binary.BigEndian.PutUint32(k.frame[4:], uint32(xid))
}

// setWatchFlag sets the last byte of a read, which says whether the server shall watch.
func (k *call) setWatchFlag(on bool) {
	k.frame[len(k.frame)-1] = 0
	if on {
		k.frame[len(k.frame)-1] = 1
	}
}

func (k *call) addsStream() bool { return k.stream != nil }
func (k *call) setsWatch() bool  { return k.stream != nil || k.watch != nil }

// decode fills resp from the answer. With alias the strings of resp share the reply's
// memory, and the call does not use that memory again.
func (k *call) decode(resp wire.Record, alias bool) error {
	k.coder = wire.Decoder(k.reply[wire.ReplyHeaderLen:])
	k.coder.Alias = alias
	resp.Code(&k.coder)
	if alias {
		k.reply = nil
	}
	return k.coder.Err()
}

// fate returns the error of a call that gets no answer because of cause.
func (k *call) fate(cause error) error {
	if k.write {
		return &UnknownOutcomeError{Session: k.session, Err: cause}
	}
	return cause
}

// do carries out one call. req is the request's record and resp the answer's, both nil
// if there is none. path is the path as the caller of the package gave it. After an
// error the call must not be used; after success the caller frees it.
func (c *Client) do(ctx context.Context, k *call, path string, req, resp wire.Record) error {
	op := k.op
	h := c.begin(ctx, op, path)
	err := c.exchange(ctx, k, h, req, resp)
	if err != nil {
		err = opError(op, path, c.chrootError(ctx, op, path, err))
	}
	h.ended(c, err)
	return err
}

// opError adds the operation and the path to an error, once.
func opError(op OpCode, path string, err error) error {
	if _, ok := err.(*OpError); ok {
		return err
	}
	return &OpError{Op: op.String(), Path: path, Err: err}
}

func (c *Client) exchange(ctx context.Context, k *call, h *hook, req, resp wire.Record) error {
	if err := c.prepare(ctx, k, req); err != nil {
		k.free()
		return err
	}
	if err := c.wait(ctx, k); err != nil {
		return err
	}
	h.answered(k)
	err := k.err
	if err == nil {
		err = k.verdict()
	}
	if err == nil && resp != nil {
		if e := k.decode(resp, aliases(k.op)); e != nil {
			err = k.fate(e)
		}
	}
	if err != nil {
		k.free()
	}
	return err
}

// verdict returns the error of an answered call. Some servers (ClickHouse Keeper) answer
// a write with a code that says that they do not know its outcome.
func (k *call) verdict() error {
	switch k.header.Err {
	case wire.ErrConnectionLoss, wire.ErrOperationTimeout:
		return k.fate(k.header.Err)
	}
	return k.header.Err.Err()
}

// aliases reports whether the decoded answer shares the memory in which it arrived.
func aliases(op OpCode) bool {
	switch op {
	case wire.OpGetData, wire.OpGetChildren2, wire.OpMultiRead, wire.OpGetEphemerals, wire.OpReconfig:
		return true
	}
	return false
}

// prepare encodes the request and checks that it can be sent at all.
func (c *Client) prepare(ctx context.Context, k *call, req wire.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := k.encode(req); err != nil {
		return err
	}
	size := len(k.frame) - 4
	if size > c.opt.FrameMax {
		return &TooLargeError{Size: size, Max: c.opt.FrameMax}
	}
	if size > c.opt.FrameMax/2 {
		c.opt.Logger.Warn("request is larger than half of the limit", "op", k.op, "path", k.path, "bytes", size, "max", c.opt.FrameMax)
	}
	return c.settleSupport(ctx, k.op)
}

// wait submits the call and waits for its answer. After an error the call must not be
// used.
func (c *Client) wait(ctx context.Context, k *call) error {
	k.pin = pinned(ctx)
	if err := c.submit(k); err != nil {
		k.free()
		return err
	}
	tellQueued(ctx)
	select {
	case <-k.answered:
		return nil
	case <-ctx.Done():
		return c.leave(ctx, k)
	}
}

// submit puts the call at the end of the queue.
func (c *Client) submit(k *call) error {
	c.mu.Lock()
	err := c.over
	if err == nil && k.pin != 0 && k.pin != c.sess.ID {
		err = ErrSessionExpired
	}
	if err == nil && c.waiting >= c.opt.QueueMax {
		err = ErrQueueFull
	}
	if err == nil {
		c.waiting++
		c.queue.push(k)
	}
	c.mu.Unlock()
	if err == nil {
		c.wakeWriter()
	}
	return err
}

// leave stops waiting for a call. A call that was not sent will never be sent. A call
// that was sent stays in its list until its answer has come.
func (c *Client) leave(ctx context.Context, k *call) error {
	c.mu.Lock()
	if k.in == nil { // the answer has arrived meanwhile
		c.mu.Unlock()
		<-k.answered
		return nil
	}
	cause := ctx.Err()
	if k.in == &c.queue {
		c.queue.remove(k)
		c.waiting--
		c.mu.Unlock()
		k.free()
		return cause
	}
	err := k.fate(cause)
	k.left = true
	c.mu.Unlock()
	return err
}

// finish takes the call off its list and wakes the goroutine that waits for it.
// Client.mu is held.
func (c *Client) finish(k *call, err error) {
	k.in.remove(k)
	c.waiting--
	k.err = err
	switch {
	case k.then != nil:
		k.then(k)
		k.free()
	case k.left:
		k.free()
	default:
		k.answered <- struct{}{}
	}
}

// callList is a list of calls in order; removal from the middle is cheap.
type callList struct{ head, tail *call }

func (l *callList) push(k *call) {
	k.in, k.prev, k.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.next = k
	} else {
		l.head = k
	}
	l.tail = k
}

func (l *callList) pushFront(k *call) {
	k.in, k.prev, k.next = l, nil, l.head
	if l.head != nil {
		l.head.prev = k
	} else {
		l.tail = k
	}
	l.head = k
}

func (l *callList) remove(k *call) {
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		l.head = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		l.tail = k.prev
	}
	k.in, k.prev, k.next = nil, nil, nil
}

// Err returns nil while calls can succeed, now or once there is a session again. After
// that it returns the reason why no call will succeed: ErrClosed, ErrAuthFailed or, with
// Options.OneSession, ErrSessionExpired.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// isLost reports whether the outcome of a write is unknown.
func isLost(err error) bool {
	var lost *UnknownOutcomeError
	return errors.As(err, &lost)
}
