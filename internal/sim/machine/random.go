package machine

import "bellwether/internal/claim"

// Random is a stream of random numbers that a seed decides (splitmix64).
type Random struct{ state uint64 }

// NewRandom returns the stream of a seed.
func NewRandom(seed uint64) *Random { return &Random{seed} }

// Fork returns a new stream, so that the draws of one part do not change those of another.
func (d *Random) Fork() *Random { return NewRandom(d.Next()) }

// Next returns the next number.
func (d *Random) Next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number from 0 to n-1, or 0 if n is not positive.
func (d *Random) Below(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return int64(d.Next() % uint64(n))
}

// Shuffled returns the numbers below n in random order.
func (d *Random) Shuffled(n int) []int {
	out := make([]int, n)
	for i := range out {
		j := int(d.Below(int64(i) + 1))
		out[i], out[j] = out[j], i
	}
	return out
}

// Between returns a number from lo to hi, both included.
func (d *Random) Between(lo, hi int64) int64 { return lo + d.Below(hi-lo+1) }

// Chance returns true with the given probability in percent.
func (d *Random) Chance(percent float64) bool {
	return float64(d.Next()>>11)/(1<<53)*100 < percent
}

// Nonce returns a nonce that only one bid has.
func (d *Random) Nonce() (n claim.Nonce) {
	for i := range n {
		n[i] = byte(d.Next())
	}
	return n
}
