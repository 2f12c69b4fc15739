package server

import (
	"net"
	"runtime"
	"syscall"
)

// turns bounds how many goroutines at a time do the work of large reads:
// encode many names, copy long replies to sockets, or answer a long pipeline of
// small reads. The others wait in the order in which they came, so that every
// connection gets its turn, and the loop, the log writer and requests for little
// find a processor. Nobody waits for a client, a disk or a lock of the output
// while it has a place.
type turns struct {
	places chan struct{}
}

// newTurns leaves half of the processors to all others.
func newTurns() *turns {
	return &turns{places: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

func (t *turns) enter() { t.places <- struct{}{} }

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

// writeLong writes a buffer with a long part, or a long one, in pieces of
// bufferKept bytes, each in a turn of its own.
func (c *conn) writeLong(b *buffer) error {
	room := takeLarge()
	defer giveBuffer(room)
	room.b = room.b[:0]
	put := func(piece []byte) (err error) {
		for len(piece) > 0 && err == nil {
			if len(room.b) == 0 && len(piece) >= bufferKept {
				err = c.writeInTurns(piece[:bufferKept])
				piece = piece[bufferKept:]
				continue
			}
			n := min(len(piece), bufferKept-len(room.b))
			room.b, piece = append(room.b, piece[:n]...), piece[n:]
			if len(room.b) == bufferKept {
				err, room.b = c.writeInTurns(room.b), room.b[:0]
			}
		}
		return err
	}
	err := put(b.b)
	if b.long != nil {
		for piece := range b.long.pieces {
			if err == nil {
				err = put(piece)
			}
		}
	}
	if err == nil && len(room.b) > 0 {
		err = c.writeInTurns(room.b)
	}
	return err
}

// writeInTurns writes while it has a place. It leaves the place while the socket
// takes no more. It waits for a place without using the descriptor: a goroutine
// that closes the descriptor waits for its users, with the output locked.
func (c *conn) writeInTurns(piece []byte) error {
	if c.raw == nil { // not a socket of the system
		_, err := c.net.Write(piece)
		return err
	}
	for len(piece) > 0 {
		n, err := c.writeOnce(piece)
		if err != nil {
			return err
		}
		piece = piece[n:]
	}
	return nil
}

// writeOnce writes what the socket takes in one turn. If that is nothing, it
// leaves its turn, waits until the socket takes something, and returns 0.
func (c *conn) writeOnce(piece []byte) (n int, err error) {
	var failed error
	c.srv.turns.enter()
	inTurn := true
	leave := func() {
		if inTurn {
			c.srv.turns.leave()
		}
		inTurn = false
	}
	defer leave()
	err = c.raw.Write(func(fd uintptr) bool {
		if !inTurn {
			return true
		}
		if n, failed = writeSocket(fd, piece); failed == syscall.EAGAIN {
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
