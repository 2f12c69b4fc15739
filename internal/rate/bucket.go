package rate

import "time"

// Limit is a number of units, such as requests or bytes, for each second. 0 means no
// limit. It is at most LimitMax.
type Limit int64

// LimitMax is the largest Limit. One unit then takes 1 ns.
const LimitMax = int64(time.Second)

// Bucket is a token bucket, which enforces a Limit. It holds as many units as come back
// in one second. The zero value is full.
//
// Take may take more units than the bucket holds. The caller first waits for the time that
// Wait returns. If n is more than the units of one second, it waits until the bucket is full,
// and later callers wait until the n units have come back. So in any period no more units are
// taken than the limit allows, apart from the units of one second and one large n.
type Bucket struct {
	full int64 // when the bucket is full again, if nothing more is taken
}

// Wait returns how long, in ns, a caller must wait before it takes n units.
func (b *Bucket) Wait(now, n int64, l Limit) int64 {
	if l <= 0 {
		return 0
	}
	return max(0, b.full-now+l.time(min(n, int64(l)))-int64(time.Second))
}

// Take takes n units, after the wait that Wait has returned.
func (b *Bucket) Take(now, n int64, l Limit) {
	if l > 0 {
		b.full = max(b.full, now) + l.time(n)
	}
}

// time returns how long n units take to come back, rounded up.
func (l Limit) time(n int64) int64 {
	whole, rest := n/int64(l), n%int64(l)
	return whole*int64(time.Second) + (rest*int64(time.Second)+int64(l)-1)/int64(l)
}
