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

// streamMax is how many bytes may be on their way in one direction before the writer
// waits, as with a socket whose buffers are full.
const streamMax = 256 << 10

// errReset is what the other side of a crashed end reads.
var errReset = os.NewSyscallError("read", syscall.ECONNRESET)

// errPipe says that the other side has closed the connection.
var errPipe = os.NewSyscallError("write", syscall.EPIPE)

// stream is one direction of a connection: bytes in order, each with the time at which
// it arrives. A cut holds them back, like a network that loses what TCP sends again and
// again. It also holds back the end of the stream.
type stream struct {
	mu     sync.Mutex
	change sync.Cond // on mu: anything below
	queue  []chunk
	bytes  int       // in queue
	last   time.Time // when the newest chunk arrives: none overtakes another
	cut    atomic.Bool
	delay  time.Duration
	end    error // what the reader gets behind the queue; nil: it goes on
	gone   bool  // the reader has closed
	read   time.Time
	write  time.Time // deadlines; zero: none
}

// chunk is what one write has left.
type chunk struct {
	due  time.Time
	data []byte
}

func newStream() *stream {
	s := &stream{}
	s.change.L = &s.mu
	return s
}

// await waits for a change, or until a moment if it is not zero. The lock is held.
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

// sooner returns the earlier of two moments; zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Read waits for something to arrive.
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

// take copies what has arrived. The lock is held.
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

// Write sends all of b, behind what is on its way. silent says that the reader's end
// cannot be known here, so the write does not fail.
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
			return nil // it is lost on the way
		case s.gone:
			return errPipe
		case s.bytes < streamMax:
			s.push(b, late)
			return nil
		}
		s.await(s.write)
	}
}

// push puts a copy of b behind what is on its way. The lock is held.
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

// finish ends the stream behind what is on its way; reset drops that.
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

// abandon is called when the reader closes.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.queue, s.bytes = true, nil, 0
	s.change.Broadcast()
}

// over reports whether both sides have finished with it.
func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone && s.end != nil
}

// set says how the way is from now on.
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
