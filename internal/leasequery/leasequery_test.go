package leasequery_test

import (
	"testing"

	"bellwether/internal/leasequery"
)

// TestLeaseAnswer: an answer to the lease question can be read back. An echo of the question, and a text
// that is not a number of milliseconds, count as no answer.
func TestLeaseAnswer(t *testing.T) {
	for _, ms := range []int64{1, 500, 14000, 1<<31 - 1} {
		if got, ok := leasequery.ParseAnswer(leasequery.Answer(ms)); got != ms || !ok {
			t.Errorf("%d ms reads back as %d, %v", ms, got, ok)
		}
	}
	for _, path := range []string{leasequery.Question, "", "/a", leasequery.Question + "=", leasequery.Question + "=x", leasequery.Answer(0), leasequery.Answer(-5),
		leasequery.Answer(1 << 31), leasequery.Answer(1<<63 - 1)} {
		if got, ok := leasequery.ParseAnswer(path); ok {
			t.Errorf("%q is taken for %d ms", path, got)
		}
	}
}
