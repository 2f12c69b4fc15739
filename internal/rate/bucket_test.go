package rate

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBucketExactly gives a sequence of takes and how long each waits.
func TestBucketExactly(t *testing.T) {
	var b Bucket
	const l = Limit(10)
	for i, step := range []struct{ at, n, wait time.Duration }{
		{0, 10, 0},      // a full bucket holds one second's units
		{0, 1, 100},     // the next one comes after 100 ms
		{0, 2, 300},     // behind that one
		{300, 1, 100},   // as soon as all have come
		{2000, 4, 0},    // full again, not more than that
		{2000, 25, 400}, // more than it holds: waits until it is full
		{2400, 1, 1600}, // the excess must come back, and one more
		{2400, 0, 1600}, // behind that one
	} {
		ms := int64(time.Millisecond)
		if got := b.Wait(int64(step.at)*ms, int64(step.n), l); got != int64(step.wait)*ms {
			t.Errorf("step %d: waits %v, want %d ms", i, time.Duration(got), step.wait)
		}
		b.Take(int64(step.at)*ms, int64(step.n), l)
	}
	if b.Wait(0, 1<<40, 0) != 0 {
		t.Error("a take without a limit waits")
	}
}

// TestBucketProperties: a caller that waits as long as Wait says takes, in any period, no
// more than the limit allows plus one second's units, apart from takes that are larger than
// the bucket. A take after a quiet time never waits.
func TestBucketProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limit(rapid.Int64Range(1, LimitMax).Draw(t, "limit"))
		var b Bucket
		type taken struct{ at, n int64 }
		var all []taken
		now := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "takes") {
			now += rapid.Int64Range(0, 2e9).Draw(t, "ns")
			n := rapid.Int64Range(1, int64(l)).Draw(t, "n")
			wait := b.Wait(now, n, l)
			b.Take(now, n, l)
			all = append(all, taken{now + wait, n})
		}
		for i := range all {
			sum := int64(0)
			for _, x := range all[i:] {
				if x.at < all[i].at {
					t.Fatalf("overtaken: %v", all)
				}
				sum += x.n
				most := float64(l) * (1 + float64(x.at-all[i].at)/1e9)
				if float64(sum) > most*(1+1e-9) {
					t.Fatalf("%d units within %d ns, want at most %v: %v", sum, x.at-all[i].at, most, all)
				}
			}
		}
		last := all[len(all)-1]
		if wait := b.Wait(last.at+int64(time.Second)+1, int64(l), l); wait > int64(len(all)) {
			t.Fatalf("after a quiet second a take waits for %d ns", wait)
		}
	})
}
