package embed

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// streamMax bounds the bytes that are on their way in one direction. When they reach it, a writer waits, as with
// a socket whose buffers are full.
const streamMax = 256 << 10

// errReset is the error of a read when the other end has crashed.
var errReset = os.NewSyscallError("read", syscall.ECONNRESET)

// errPipe is the error of a write when the other end has closed the connection.
var errPipe = os.NewSyscallError("write", syscall.EPIPE)

// stream is one direction of a connection: bytes in order, each with its time of arrival. A cut holds back the
// bytes and the end of the stream, as a network does while TCP resends what is lost.
type stream struct {
	mu     sync.Mutex
	change sync.Cond // uses mu; signals a change of any field below
	queue  []chunk
	bytes  int       // number of bytes in queue
	last   time.Time // arrival of the newest chunk; no later chunk arrives before it
	cut    atomic.Bool
	delay  time.Duration
	end    error // what Read returns after the queue is empty; nil: the stream has not ended
	gone   bool  // the reader has closed its end
	read   time.Time
	write  time.Time // read and write are the deadlines; zero: none
}

// chunk is the data of one write, with its time of arrival.
type chunk struct {
	due  time.Time
	data []byte
}

func newStream() *stream {
	s := &stream{}
	s.change.L = &s.mu
	return s
}

// await waits until a field changes or, if until is not zero, until that time. The caller holds s.mu.
func (s *stream) await(until time.Time) {
	if until.IsZero() {
		s.change.Wait()
		return
	}
	t := time.AfterFunc(time.Until(until), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.change.Broadcast()
	})
	defer t.Stop()
	s.change.Wait()
}

func passed(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }

// sooner returns the earlier of two times; zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Read waits until bytes have arrived.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var due time.Time
		switch {
		case s.gone:
			return 0, net.ErrClosed
		case passed(s.read):
			return 0, os.ErrDeadlineExceeded
		case s.cut.Load():
		case len(s.queue) > 0:
			if due = s.queue[0].due; !time.Now().Before(due) {
				return s.take(p), nil
			}
		case s.end != nil:
			if due = s.last; !time.Now().Before(due) {
				return 0, s.end
			}
		}
		s.await(sooner(due, s.read))
	}
}

// take copies bytes that have arrived to p. The caller holds s.mu.
func (s *stream) take(p []byte) (n int) {
	now := time.Now()
	for len(s.queue) > 0 && n < len(p) && !now.Before(s.queue[0].due) {
		c := &s.queue[0]
		k := copy(p[n:], c.data)
		n += k
		if c.data = c.data[k:]; len(c.data) == 0 {
			s.queue[0] = chunk{}
			s.queue = s.queue[1:]
		}
	}
	s.bytes -= n
	s.change.Broadcast()
	return n
}

// Write appends b to the stream. If silent returns true, the writer cannot know yet that the reader has closed
// its end, so the write does not fail.
func (s *stream) Write(b []byte, late time.Duration, silent func() bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.end == errReset:
			return errPipe
		case s.end != nil:
			return net.ErrClosed
		case passed(s.write):
			return os.ErrDeadlineExceeded
		case s.gone && silent():
			return nil // the bytes are lost on the way
		case s.gone:
			return errPipe
		case s.bytes < streamMax:
			s.push(b, late)
			return nil
		}
		s.await(s.write)
	}
}

// push appends a copy of b to the queue. The caller holds s.mu.
func (s *stream) push(b []byte, late time.Duration) {
	due := time.Now().Add(s.delay + late)
	if due.Before(s.last) {
		due = s.last
	}
	s.last = due
	s.queue = append(s.queue, chunk{due, append(make([]byte, 0, len(b)), b...)})
	s.bytes += len(b)
	s.change.Broadcast()
}

// finish ends the stream after the bytes that are on their way; reset drops them.
func (s *stream) finish(reset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = io.EOF
		if due := time.Now().Add(s.delay); due.After(s.last) {
			s.last = due
		}
	}
	if reset {
		s.end, s.queue, s.bytes = errReset, nil, 0
	}
	s.change.Broadcast()
}

// abandon closes the reader's end.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.queue, s.bytes = true, nil, 0
	s.change.Broadcast()
}

// over reports whether both ends are closed.
func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone && s.end != nil
}

// set sets the faults of the stream.
func (s *stream) set(cut bool, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut.Store(cut)
	s.delay = delay
	s.change.Broadcast()
}

func (s *stream) setDeadline(which *time.Time, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*which = t
	s.change.Broadcast()
}
