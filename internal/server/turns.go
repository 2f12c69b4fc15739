package server

import (
	"net"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
)

// turns bounds how many goroutines at a time do the work of large reads: encoding many
// names, copying long replies to sockets, or answering a long pipeline of small reads.
// The others wait in the order in which they came. So every connection gets its turn, and
// the loop, the log writer and small requests get a processor. A goroutine must not wait
// for a client, a disk or the lock of an output while it holds a place.
type turns struct {
	places  chan struct{}
	waiting atomic.Int32
}

// newTurns returns turns for half of the processors.
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

// turnWaiters is how many goroutines may wait for a turn before the server stops
// accepting connections. Otherwise clients that connect and disconnect faster than their
// requests are carried out would fill the memory. The goroutines that wait do not depend
// on any client.
const turnWaiters = 1000

func (t *turns) tooManyWait() bool { return t.waiting.Load() > turnWaiters }

func (t *turns) leave() { <-t.places }

// turnFree is how many reads of a pipeline are answered before the reader must wait for
// its turn. turnReads is how many it answers in one turn.
const (
	turnFree  = 64
	turnReads = 64
)

// enterTurn starts a turn of the reader's goroutine. A turn may last for several
// requests.
func (c *conn) enterTurn() {
	if !c.inTurn {
		c.srv.turns.enter()
		c.inTurn = true
	}
}

// leaveTurn ends the reader's turn, if it has one. It must be called before the reader
// waits for anything.
func (c *conn) leaveTurn() {
	if c.inTurn {
		c.inTurn = false
		c.srv.turns.leave()
	}
}

// takeTurn must be called before the n-th read of a pipeline.
func (c *conn) takeTurn(n int64) {
	if n < turnFree {
		return
	}
	if n%turnReads == 0 {
		c.leaveTurn()
	}
	c.enterTurn()
}

// writeLong writes a buffer with a long part, or a long buffer, without copying it first.
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

// behind returns pieces without their first n bytes.
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

// gather returns the start of pieces, up to bufferKept bytes. It returns the first piece
// itself if that is long enough, and otherwise a copy in room.
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

// writeOnce writes what the socket takes in one turn. If the socket takes nothing, it
// ends the turn, waits until the socket takes something, and returns 0. It needs a buffer
// only during its turn, so that many clients that do not read use no memory for it. While
// it waits for its turn it does not use the descriptor: a goroutine that closes the
// descriptor, with the output locked, waits for its users.
func (c *conn) writeOnce(pieces [][]byte) (n int, err error) {
	if c.raw == nil { // not a socket of the operating system
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

// rawConn returns the raw interface of a socket; nil if there is none, or if the
// operating system has no write that returns when the socket takes nothing.
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
