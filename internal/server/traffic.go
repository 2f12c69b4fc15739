package server

import (
	"math"
	"sync/atomic"

	"bellwether/wire"
)

// traffic holds what the four-letter words cons and stat show about a connection. The
// output's lock guards it. Latencies are in ns.
type traffic struct {
	made     int64 // the server's clock
	received int64
	sent     int64
	bytesIn  int64 // of complete requests, with their lengths
	bytesOut int64
	lastOp   wire.OpCode
	lastXid  int32
	lastZxid wire.Zxid
	lastAt   int64 // the server's clock; 0: no request was answered yet
	last     int64
	min      int64
	max      int64
	total    int64
	count    int64
}

// reset carries out the four-letter word crst for a connection.
func (t *traffic) reset() {
	*t = traffic{made: t.made, lastXid: -1, lastZxid: -1, min: math.MaxInt64}
}

// answered records n requests that were answered within ns each; xid is the last of them.
func (t *traffic) answered(n int64, xid int32, op wire.OpCode, z wire.Zxid, ns int64, at int64) {
	t.lastOp, t.lastZxid, t.lastAt = op, z, at
	if xid >= 0 { // pings and other requests of the client library, which have negative xids, do not count
		t.lastXid = xid
	}
	t.last = ns
	t.min, t.max = min(t.min, ns), max(t.max, ns)
	t.total += n * ns
	t.count += n
}

// lastMinMax holds the last, smallest and largest size of a reply or proposal; -1 before
// the first.
type lastMinMax struct{ last, min, max atomic.Int64 }

func (m *lastMinMax) reset() {
	m.last.Store(-1)
	m.min.Store(math.MaxInt64)
	m.max.Store(-1)
}

func (m *lastMinMax) most() int64 { return m.max.Load() }

func (m *lastMinMax) least() int64 {
	if v := m.min.Load(); v != math.MaxInt64 {
		return v
	}
	return -1
}

// size records one size.
func (m *lastMinMax) size(n int64) {
	m.note(&buffer{last: n, min: n, max: n})
}

// note records the replies of one write.
func (m *lastMinMax) note(b *buffer) {
	m.last.Store(b.last)
	for old := m.min.Load(); b.min < old && !m.min.CompareAndSwap(old, b.min); {
		old = m.min.Load()
	}
	for old := m.max.Load(); b.max > old && !m.max.CompareAndSwap(old, b.max); {
		old = m.max.Load()
	}
}
