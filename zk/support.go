package zk

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"

	"bellwether/wire"
)

// probeTimeoutMS is the session timeout that a probe asks for.
const probeTimeoutMS = 4000

// supportsMax limits the number of servers for which a client remembers which operations
// they know.
const supportsMax = 1024

// A server answers an operation that it does not know with ErrUnimplemented and closes the
// connection; some close it without an answer. A client that sends such an operation again
// after each reconnect would lose every connection. So the client remembers which
// operations each server knows, and settles doubts on a separate connection.

// support records which operations one server knows. Client.mu guards it.
type support struct{ ops [wire.OpWhoAmI + 1]knowledge }

type knowledge uint8

const (
	untried knowledge = iota
	known
	doubtful // doubtful: the connection ended before the answer arrived
	unknown
)

// isNewer reports whether servers of version 3.4 do not know the operation.
func isNewer(op OpCode) bool {
	switch op {
	case wire.OpCreate2, wire.OpReconfig, wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpCreateContainer,
		wire.OpCreateTTL, wire.OpMultiRead, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber,
		wire.OpSetWatches2, wire.OpAddWatch, wire.OpWhoAmI:
		return true
	}
	return false
}

func (s *support) denies(op OpCode) bool { return isNewer(op) && s.ops[op] == unknown }
func (s *support) doubts(op OpCode) bool { return isNewer(op) && s.ops[op] == doubtful }

// learn notes from an answer whether the server knows the operation. ErrUnimplemented with
// zxid -1 means that it does not. ErrUnimplemented with any other zxid means that the
// operation is known but switched off.
func (s *support) learn(op OpCode, h wire.ReplyHeader) {
	if !isNewer(op) {
		return
	}
	s.ops[op] = known
	if h.Err == wire.ErrUnimplemented && h.Zxid == -1 {
		s.ops[op] = unknown
	}
}

// suspectOldest notes that the connection ended before the oldest request was answered.
func (s *support) suspectOldest(k *call) {
	if k != nil && isNewer(k.op) && s.ops[k.op] == untried {
		s.ops[k.op] = doubtful
	}
}

// supportOf returns what the client remembers of a server. Client.mu is held.
func (c *Client) supportOf(a address) *support {
	s := c.supports[a]
	if s == nil {
		if len(c.supports) >= supportsMax {
			clear(c.supports) // limits the memory if server names keep changing
		}
		s = new(support)
		c.supports[a] = s
	}
	return s
}

// settleSupport makes sure that the operation may be sent to the connected server. It
// returns an error if that server does not know the operation.
func (c *Client) settleSupport(ctx context.Context, op OpCode) error {
	if !isNewer(op) {
		return nil
	}
	l, state, err := c.supportNow(ctx, op)
	switch {
	case err != nil:
		return err
	case state == unknown:
		return ErrUnsupported
	case state == known, state == untried && !c.opt.Probe:
		return nil
	}
	state = c.probe(ctx, l.address, op)
	c.mu.Lock()
	if state != untried {
		l.support.ops[op] = state
	}
	c.mu.Unlock()
	switch state {
	case unknown:
		return ErrUnsupported
	case untried:
		return ctx.Err()
	}
	return nil
}

// supportNow returns whether the connected server knows an operation. Without a connection
// it returns at once, unless the next server may not know the operation. Then it waits for
// a connection, because a queued call would be sent without this check.
func (c *Client) supportNow(ctx context.Context, op OpCode) (*link, knowledge, error) {
	for {
		c.mu.Lock()
		l, s, doubts := c.link, c.status, c.opt.Probe
		for _, of := range c.supports {
			doubts = doubts || of.doubts(op)
		}
		state, over := known, c.over != nil
		if l != nil {
			state = l.support.ops[op]
		}
		c.mu.Unlock()
		if l != nil || over || !doubts {
			return l, state, nil
		}
		if _, err := s.Next(ctx); err != nil {
			return nil, untried, err
		}
	}
}

// probe asks a server whether it knows an operation. If the server closes the connection
// instead of answering, but answers a question that every server knows on another
// connection, it does not know the operation; otherwise it may just be shutting down.
// untried says that there was no answer.
func (c *Client) probe(ctx context.Context, a address, op OpCode) knowledge {
	ctx, cancel := context.WithTimeout(ctx, c.connectTime(1))
	defer cancel()
	state := c.ask(ctx, a, op)
	if state != doubtful {
		return state
	}
	if c.ask(ctx, a, wire.OpExists) != known {
		return untried
	}
	return unknown
}

// ask sends a request that changes nothing, on a connection and in a session of its own.
// doubtful says that the connection ended before the answer.
func (c *Client) ask(ctx context.Context, a address, op OpCode) knowledge {
	conn, stop, err := c.dialUntil(ctx, a)
	if err != nil {
		return untried
	}
	defer conn.Close()
	defer stop()
	r := bufio.NewReaderSize(conn, readBufferSize)
	resp, err := greet(conn, r, &wire.ConnectRequest{TimeoutMS: probeTimeoutMS, Password: make([]byte, wire.PasswordLen), ReadOnly: true, HasReadOnly: true})
	if err != nil || resp.TimeoutMS <= 0 {
		return untried
	}
	out, mark := wire.BeginFrame(nil)
	out = wire.Append(out, &wire.RequestHeader{Xid: 1, Op: op})
	if req := harmless(op); req != nil {
		out = wire.Append(out, req)
	}
	var frame []byte
	if _, err = conn.Write(wire.EndFrame(out, mark)); err == nil {
		frame, err = wire.ReadFrame(r, nil, smallFrameMax)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return untried
	case err != nil:
		return doubtful
	}
	var h wire.ReplyHeader
	if wire.Decode(frame, &h) != nil || h.Err == wire.ErrUnimplemented && h.Zxid == -1 {
		return unknown
	}
	hangUp(conn)
	var end *wire.FrameError
	if _, err = wire.ReadFrame(r, frame, smallFrameMax); errors.As(err, &end) {
		return untried
	}
	return known
}

// harmless returns a request of that operation about a path that does not exist.
func harmless(op OpCode) wire.Record {
	path := "/" + rand.Text()
	create := wire.CreateRequest{Path: path + "/x", ACL: wire.OpenACL()}
	switch op {
	case wire.OpCreate2, wire.OpCreateContainer:
		return &create
	case wire.OpCreateTTL:
		create.Flags = wire.FlagPersistentTTL
		return &wire.CreateTTLRequest{CreateRequest: create, TTL: 1000}
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		return &wire.WatchesRequest{Path: path, Type: wire.WatcherAny}
	case wire.OpMultiRead:
		return &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpGetData, Request: &wire.PathWatchRequest{Path: path}}}}
	case wire.OpGetEphemerals:
		return &wire.NullPathRequest{Path: wire.Text(path)}
	case wire.OpGetAllChildrenNumber:
		return &wire.PathRequest{Path: path}
	case wire.OpExists:
		return &wire.PathWatchRequest{Path: path}
	case wire.OpSetWatches2:
		return &wire.SetWatches2Request{}
	case wire.OpAddWatch:
		return &wire.AddWatchRequest{Path: path}
	case wire.OpReconfig:
		return &wire.ReconfigRequest{ConfigID: 1 << 62}
	}
	return nil // whoAmI has no request record
}
