package sim

// random is a stream of random numbers that a seed decides (splitmix64).
type random struct{ state uint64 }

// fork returns a new stream, so that the draws of one part do not change those of another.
func (d *random) fork() *random { return &random{d.next()} }

func (d *random) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1, or 0 if n is not positive.
func (d *random) below(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return int64(d.next() % uint64(n))
}

// shuffled returns the numbers below n in random order.
func (d *random) shuffled(n int) []int {
	out := make([]int, n)
	for i := range out {
		j := int(d.below(int64(i) + 1))
		out[i], out[j] = out[j], i
	}
	return out
}

// between returns a number from lo to hi, both included.
func (d *random) between(lo, hi int64) int64 { return lo + d.below(hi-lo+1) }

// chance returns true with the given probability in percent.
func (d *random) chance(percent float64) bool {
	return float64(d.next()>>11)/(1<<53)*100 < percent
}
