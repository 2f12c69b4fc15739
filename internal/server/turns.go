package server

import (
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
)

// turns bounds how many goroutines at a time do the work of large reads:
// encode many names, copy long replies to sockets, or answer a long pipeline of
// small reads. The others wait in the order in which they came, so that every
// connection gets its turn, and the loop, the log writer and requests for little
// find a processor. Nobody waits for a client, a disk or a lock of the output
// while it has a place.
type turns struct {
	places  chan struct{}
	waiting atomic.Int32
}

// newTurns leaves half of the processors to all others.
func newTurns() *turns {
	return &turns{places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

func (t *turns) enter() {
	select {
	case t.places <- struct{}{}:
	default:
		t.waiting.Add(1)
		t.places <- struct{}{}
		t.waiting.Add(-1)
	}
}

// turnWaiters is how many goroutines may wait for a turn before no further
// connection is accepted: clients that come and go faster than their requests are
// carried out would fill the memory. Those that wait depend on no client.
const turnWaiters = 1000

func (t *turns) crowded() bool { return t.waiting.Load() > turnWaiters }

func (t *turns) leave() { <-t.places }

// turnFree is how many reads of a pipeline are answered before the reader has to
// wait for its turn, turnReads how many it answers in one.
const (
	turnFree  = 64
	turnReads = 64
)

// enterTurn begins a turn of the reader's goroutine, which may last over several
// requests.
func (c *conn) enterTurn() {
	if !c.inTurn {
		c.srv.turns.enter()
		c.inTurn = true
	}
}

// leaveTurn ends the reader's turn, if it has one. It is called before the reader waits for anything.
func (c *conn) leaveTurn() {
	if c.inTurn {
		c.inTurn = false
		c.srv.turns.leave()
	}
}

// takeTurn is called before the n-th read of a pipeline.
func (c *conn) takeTurn(n int64) {
	if n < turnFree {
		return
	}
	if n%turnReads == 0 {
		c.leaveTurn()
	}
	c.enterTurn()
}

// writeLong writes a buffer with a long part, or a long one, from where it lies.
func (c *conn) writeLong(b *buffer) error {
	pieces := [][]byte{b.b}
	if b.long != nil {
		pieces = slices.AppendSeq(pieces, b.long.pieces)
	}
	for pieces = behind(pieces, 0); len(pieces) > 0; {
		n, err := c.writeOnce(pieces)
		if err != nil {
			return err
		}
		pieces = behind(pieces, n)
	}
	return nil
}

// behind is what pieces hold behind their first n bytes.
func behind(pieces [][]byte, n int) [][]byte {
	for len(pieces) > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}

// gather is the beginning of pieces, up to bufferKept bytes: where it lies, if the
// first piece is that long, or copied into room.
func gather(pieces [][]byte, room []byte) []byte {
	if len(pieces[0]) >= bufferKept || len(pieces) == 1 {
		return pieces[0][:min(len(pieces[0]), bufferKept)]
	}
	room = room[:0]
	for _, piece := range pieces {
		room = append(room, piece[:min(len(piece), bufferKept-len(room))]...)
	}
	return room
}

// writeOnce writes what the socket takes in one turn. If that is nothing, it
// leaves its turn, waits until the socket takes something, and returns 0. It needs
// a buffer only while it has the turn, so that many clients that do not read take
// no memory for it. It waits for its turn without using the descriptor: a goroutine
// that closes the descriptor waits for its users, with the output locked.
func (c *conn) writeOnce(pieces [][]byte) (n int, err error) {
	if c.raw == nil { // not a socket of the system
		return c.net.Write(pieces[0])
	}
	c.srv.turns.enter()
	room := takeLarge()
	inTurn := true
	leave := func() {
		if inTurn {
			giveBuffer(room)
			c.srv.turns.leave()
		}
		inTurn = false
	}
	defer leave()
	var failed error
	err = c.raw.Write(func(fd uintptr) bool {
		if !inTurn {
			return true
		}
		if n, failed = writeSocket(fd, gather(pieces, room.b)); failed == syscall.EAGAIN {
			leave()
		}
		return inTurn
	})
	switch {
	case err != nil:
		return 0, err
	case failed == syscall.EAGAIN, failed == syscall.EINTR:
		return 0, nil
	}
	return max(n, 0), failed
}

// rawConn is a socket's own interface, nil where there is no socket or the system
// has no write that returns when the socket takes nothing.
func rawConn(nc net.Conn) syscall.RawConn {
	if runtime.GOOS == "windows" {
		return nil
	}
	if s, ok := nc.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}
