package server

import (
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/rate"
	"bellwether/wire"
)

// rateLimits delays requests above the limits for client addresses and paths. A request
// that would wait for more than a third of its session's timeout is refused with
// ErrThrottledOp after that time, so that its client hears from the server and no session
// expires because of a limit. A request that clients cannot repeat is never refused
// (refusable).
type rateLimits struct {
	rates config.Rates
	// requestsAt and bytesAt hold the limits for paths, longest path first.
	requestsAt, bytesAt []pathBucket

	mu     sync.Mutex // guards the following and all buckets
	byAddr *rate.Table[netip.Prefix, addrBuckets]
}

type pathBucket struct {
	config.PathRate
	bucket rate.Bucket
}

type addrBuckets struct{ requests, bytes rate.Bucket }

// limitKind is one of the four kinds of limits.
type limitKind int

const (
	clientRequests limitKind = iota
	clientBytes
	pathRequests
	pathBytes
	limitKinds
)

// exceeded is what the log says about a request that waits.
var exceeded = [limitKinds]string{
	"requests of a client wait: they exceed clientRequestsPerSecond",
	"requests of a client wait: they exceed clientBytesPerSecond",
	"requests for a path wait: they exceed pathRequestsPerSecond",
	"requests for a path wait: they exceed pathBytesPerSecond",
}

// charge holds what a request takes from one bucket.
type charge struct {
	bucket *rate.Bucket
	limit  rate.Limit
	n      int64
	kind   limitKind
}

// reloadRates makes the limits of a configuration. Limits that have not changed keep their
// state.
func (s *Server) reloadRates(c *config.Config) {
	rates := c.Limits.Rates
	old := s.rates.Load()
	switch {
	case !rates.Limited():
		s.rates.Store(nil)
		return
	case old != nil && reflect.DeepEqual(old.rates, rates):
		return
	}
	r := &rateLimits{rates: rates, byAddr: rate.NewTable[netip.Prefix, addrBuckets](addressesMax)}
	for _, p := range rates.PathRequests {
		r.requestsAt = append(r.requestsAt, pathBucket{PathRate: p})
	}
	for _, p := range rates.PathBytes {
		r.bytesAt = append(r.bytesAt, pathBucket{PathRate: p})
	}
	s.rates.Store(r)
}

// limitRate waits until the limits admit a request of size bytes. It returns false if the
// request must be refused.
func (c *conn) limitRate(op wire.OpCode, body []byte, size int, now *batch) bool {
	r := c.srv.rates.Load()
	if r == nil || op == wire.OpPing || op == wire.OpCloseSession {
		return true
	}
	var room [4]charge
	charges, ops := r.pathCharges(room[:0], op, body)
	key, longest := c.srv.clientPrefix(c.addr.Addr()), int64(c.longestPause())
	cost := addrCost{key, ops, int64(size)}
	wait, kind := r.take(c.srv.clock(), cost, charges, longest)
	if wait == 0 {
		return true
	}
	c.srv.stats.limited[kind].Add(1)
	c.srv.notices.Say(slog.LevelWarn, exceeded[kind], c.addr.String(), "session", c.Session())
	c.pauseReading(func() { c.pause(time.Duration(min(wait, longest))) })
	now.sealed = !c.touch(c.srv.clock()) || now.sealed
	if wait <= longest {
		return true
	}
	if wait, _ = r.take(c.srv.clock(), cost, charges, 0); wait == 0 {
		return true
	}
	if !refusable(op) {
		r.take(c.srv.clock(), cost, charges, math.MaxInt64)
		return true
	}
	c.srv.stats.limitRefused.Add(1)
	return false
}

// refusable reports whether a request may be refused: not a login, and not the watches
// that a client library registers again by itself.
func refusable(op wire.OpCode) bool {
	switch op {
	case wire.OpAuth, wire.OpSASL, wire.OpSetWatches, wire.OpSetWatches2:
		return false
	}
	return true
}

// addrCost holds what a request takes from the buckets of its client's address.
type addrCost struct {
	key             netip.Prefix
	requests, bytes int64
}

// take returns how long a request must wait, and because of which kind of limit. If the wait is
// not longer than longest, it takes the cost of the request from the buckets.
func (r *rateLimits) take(now int64, cost addrCost, charges []charge, longest int64) (wait int64, kind limitKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rates.Requests > 0 || r.rates.Bytes > 0 {
		b := r.byAddr.Use(cost.key)
		charges = append(charges, charge{&b.requests, rate.Limit(r.rates.Requests), cost.requests, clientRequests},
			charge{&b.bytes, rate.Limit(r.rates.Bytes), cost.bytes, clientBytes})
	}
	for i := range charges {
		ch := &charges[i]
		if w := ch.bucket.Wait(now, ch.n, ch.limit); w > wait {
			wait, kind = w, ch.kind
		}
	}
	if wait <= longest {
		for i := range charges {
			ch := &charges[i]
			ch.bucket.Take(now, ch.n, ch.limit)
		}
	}
	return wait, kind
}

// pathCharges appends what a request takes from the buckets of paths. It also returns how
// many operations the request has.
func (r *rateLimits) pathCharges(to []charge, op wire.OpCode, body []byte) (charges []charge, ops int64) {
	paths := len(r.requestsAt)+len(r.bytesAt) > 0
	switch {
	case op == wire.OpMulti || op == wire.OpMultiRead:
		var q wire.MultiRequest
		in := wire.Decoder(body)
		in.Alias = true
		q.Code(&in) // of a body that cannot be decoded, the operations before the error count
		for i := 0; i < len(q.Ops) && paths; i++ {
			path, n := opPath(q.Ops[i].Request)
			to = r.chargePath(to, path, n)
		}
		return to, max(1, int64(len(q.Ops)))
	case paths:
		if path, ok := requestPath(op, body); ok {
			to = r.chargePath(to, path, int64(len(body)))
		}
	}
	return to, 1
}

// chargePath appends what an operation with a path takes.
func (r *rateLimits) chargePath(to []charge, path string, bytes int64) []charge {
	to = chargeLongest(to, r.requestsAt, path, 1, pathRequests)
	return chargeLongest(to, r.bytesAt, path, bytes, pathBytes)
}

// chargeLongest appends a charge of n to the bucket of the longest limited path that is path
// or above it. If to already has a charge for this bucket, n is added to that charge.
func chargeLongest(to []charge, at []pathBucket, path string, n int64, kind limitKind) []charge {
	for i := range at {
		p := &at[i]
		if !holds(p.Path, path) {
			continue
		}
		for j := range to {
			if to[j].bucket == &p.bucket {
				to[j].n += n
				return to
			}
		}
		return append(to, charge{&p.bucket, rate.Limit(p.PerSecond), n, kind})
	}
	return to
}

// holds reports whether a path is top or below it.
func holds(top, path string) bool {
	n := len(top)
	return len(path) >= n && path[:n] == top && (n == 1 || len(path) == n || path[n] == '/')
}
