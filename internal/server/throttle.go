package server

import (
	"errors"
	"fmt"
	"time"

	"bellwether/internal/replica"
)

// inProcessBytesMax is how many bytes of requests the loop may hold for all connections.
// Above it, connections that have requests in process are not read.
const inProcessBytesMax = 64 << 20

// errStale: the session of a request may have expired while the request waited to be
// read.
var errStale = errors.New("request is older than its session's timeout (request_stale_latency_check)")

// errHeld: there is no leader, and no more requests may wait for one.
var errHeld = errors.New("there is no leader, and too many requests wait for one")

// throttle delays a request while the server has too much in process. Above
// globalOutstandingLimit it stops reading connections that have requests in process.
// While too much waits for the disk, or above request_throttle_max_requests if that is
// set, it stops reading all connections. Without a leader, when no request will be
// answered soon, it closes a connection that has no request in process.
func (c *conn) throttle(size int, started int64) error {
	s := c.srv
	limits := &s.config().Limits
	heavy := s.inProcessBytes.Load()+int64(size) > inProcessBytesMax
	switch {
	case c.outstanding.Load() > 0 && (heavy || s.inProcess.Load() > int64(limits.Outstanding)):
		c.pauseReading(func() { c.waitAnswered(c.outstanding.Load() / 2) })
	case heavy && !s.hasLeader.Load():
		return errHeld
	}
	if s.inbox.full.Load() {
		c.pauseReading(c.waitDisk)
		if c.ended() {
			return errEnded
		}
	}
	t := &limits.Throttle
	if t.MaxRequests <= 0 {
		return nil
	}
	for s.inProcess.Load() >= int64(t.MaxRequests) && !s.stopping.Load() {
		if t.DropStale && t.StaleLatency && s.clock()-started > int64(c.timeout.Load())*int64(time.Millisecond) {
			s.stats.staleRequests.Add(1)
			s.stats.staleDropped.Add(1)
			return errStale
		}
		ended := false
		c.pauseReading(func() { ended = c.stall(t.Stall) })
		if ended {
			return errEnded
		}
	}
	return nil
}

// diskPoll is how often a reader checks whether the disk has caught up.
const diskPoll = 5 * time.Millisecond

// waitDisk waits until the disk has caught up, or until the connection or the server
// ends.
func (c *conn) waitDisk() {
	for c.srv.inbox.full.Load() && !c.srv.stopping.Load() && !c.stall(diskPoll) {
	}
}

// pauseReading submits the pending requests, then waits.
func (c *conn) pauseReading(wait func()) {
	c.srv.stats.throttleWaits.Add(1)
	c.submit()
	c.leaveTurn()
	c.flush()
	start := c.srv.clock()
	wait()
	c.paused = c.srv.clock()
	c.srv.stats.throttleTime.Observe(micro(c.paused-start), 1)
}

// stall waits for d. It returns true if the connection has ended meanwhile.
func (c *conn) stall(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-c.done:
	case <-c.srv.dead:
	}
	return true
}

// pause waits for d, or until the connection or the server is about to end.
func (c *conn) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.done:
	case <-c.srv.stop:
	case <-c.srv.dead:
	}
}

// largeError says that too many bytes of large requests are in process.
type largeError struct{ Size, Max int64 }

func (e *largeError) Error() string {
	return fmt.Sprintf("large request of %d bytes: more than %d bytes of such requests would be in process (largeRequestMaxBytes)", e.Size, e.Max)
}

// countLarge counts a large request, or refuses it.
func (s *Server) countLarge(q *replica.Request) error {
	limits := &s.config().Limits
	size := q.Size + headerLen
	if limits.LargeThreshold <= 0 || size <= int64(limits.LargeThreshold) {
		return nil
	}
	if s.large.Add(size) > int64(limits.LargeBytes) {
		s.large.Add(-size)
		s.stats.large.Add(1)
		return &largeError{size, int64(limits.LargeBytes)}
	}
	q.Large = size
	return nil
}
