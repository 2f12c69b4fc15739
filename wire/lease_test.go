package wire_test

import (
	"testing"

	"bellwether/wire"
)

// TestLeaseAnswer: an answer to the lease question can be read back. An echo of the question, and a text
// that is not a number of milliseconds, count as no answer.
func TestLeaseAnswer(t *testing.T) {
	for _, ms := range []int64{1, 500, 14000, 1<<31 - 1} {
		if got, ok := wire.ParseLeaseAnswer(wire.LeaseAnswer(ms)); got != ms || !ok {
			t.Errorf("%d ms reads back as %d, %v", ms, got, ok)
		}
	}
	for _, path := range []string{wire.LeaseQuestion, "", "/a", wire.LeaseQuestion + "=", wire.LeaseQuestion + "=x", wire.LeaseAnswer(0), wire.LeaseAnswer(-5),
		wire.LeaseAnswer(1 << 31), wire.LeaseAnswer(1<<63 - 1)} {
		if got, ok := wire.ParseLeaseAnswer(path); ok {
			t.Errorf("%q is taken for %d ms", path, got)
		}
	}
}
