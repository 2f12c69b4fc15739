package wire

import "testing"

// An answer reads back; an echo, and what is no number of milliseconds, is none.
func TestLeaseAnswer(t *testing.T) {
	for _, ms := range []int64{1, 500, 14000, 1<<31 - 1} {
		if got, ok := ParseLeaseAnswer(LeaseAnswer(ms)); got != ms || !ok {
			t.Errorf("%d ms reads back as %d, %v", ms, got, ok)
		}
	}
	for _, path := range []string{LeaseQuestion, "", "/a", LeaseQuestion + "=", LeaseQuestion + "=x", LeaseAnswer(0), LeaseAnswer(-5),
		LeaseAnswer(1 << 31), LeaseAnswer(1<<63 - 1)} {
		if got, ok := ParseLeaseAnswer(path); ok {
			t.Errorf("%q is taken for %d ms", path, got)
		}
	}
}
