package claim

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLeaseDeadlines checks that a lease lasts T - D - 1 % of T, or is not proven if less than 300 ms and a tenth of
// D are left.
func TestLeaseDeadlines(t *testing.T) {
	for _, c := range []struct {
		timeout, delay, window time.Duration
		proven                 bool
	}{
		{30 * time.Second, 14 * time.Second, 15700 * time.Millisecond, true},
		{10 * time.Second, 2 * time.Second, 7900 * time.Millisecond, true},
		{10 * time.Second, 500 * time.Millisecond, 9400 * time.Millisecond, true},
		{9 * time.Second, 14 * time.Second, 6 * time.Second, false},
		{9 * time.Second, 9 * time.Second, 6 * time.Second, false},
		{100 * time.Second, 99 * time.Second, 200 * time.Second / 3, false}, // the margin takes the rest
		{600 * time.Millisecond, 500 * time.Millisecond, 400 * time.Millisecond, false},
		{860 * time.Millisecond, 500 * time.Millisecond, 351400 * time.Microsecond, true}, // more than 350 ms are left
		{850 * time.Millisecond, 500 * time.Millisecond, 850 * time.Millisecond * 2 / 3, false},
		{16 * time.Second, 14 * time.Second, 1840 * time.Millisecond, true}, // more than 1.7 s are left
		{15 * time.Second, 14 * time.Second, 10 * time.Second, false},
	} {
		l := Lease{Timeout: c.timeout, Delay: c.delay}
		if got := l.Window(); got != c.window {
			t.Errorf("T %v, D %v: window %v, want %v", c.timeout, c.delay, got, c.window)
		}
		var none *NoProof
		if err := l.Proof(); (err == nil) != c.proven || err != nil && !errors.As(err, &none) {
			t.Errorf("T %v, D %v: proof %v", c.timeout, c.delay, err)
		}
	}
}

// TestNoProofSaysWhatIsEnough checks that the timeout that a NoProof names is enough, and hardly longer than needed.
func TestNoProofSaysWhatIsEnough(t *testing.T) {
	for _, delay := range []time.Duration{1, 200 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 14 * time.Second, time.Hour} {
		enough := (&NoProof{Delay: delay}).enough()
		if err := (Lease{Timeout: enough, Delay: delay}).Proof(); err != nil {
			t.Errorf("D %v: %v", delay, err)
		}
		if less := enough - 30*time.Millisecond; less > 0 && (Lease{Timeout: less, Delay: delay}).Proof() == nil {
			t.Errorf("D %v: %v would also be enough", delay, less)
		}
	}
}

// TestElapsedTimeIsTheLargerClock checks that the larger of the times that the two clocks show has passed, after
// a suspend and after a change of the wall clock.
func TestElapsedTimeIsTheLargerClock(t *testing.T) {
	sent := Moment{Mono: 100 * time.Second, Wall: 5000 * time.Second}
	l := Lease{Sent: sent, Timeout: 10 * time.Second, Delay: time.Second} // lasts 8.9 s
	for _, c := range []struct {
		name       string
		mono, wall time.Duration
		left       time.Duration
	}{
		{"both run", 3 * time.Second, 3 * time.Second, 5900 * time.Millisecond},
		{"suspended for a minute", time.Second, 61 * time.Second, -52100 * time.Millisecond},
		{"wall clock set back an hour", 3 * time.Second, 3*time.Second - time.Hour, 5900 * time.Millisecond},
		{"wall clock set ahead", 3 * time.Second, 8900 * time.Millisecond, 0},
	} {
		now := Moment{sent.Mono + c.mono, sent.Wall + c.wall}
		if got := l.Left(now); got != c.left {
			t.Errorf("%s: left %v, want %v", c.name, got, c.left)
		}
	}
}

// TestSmallestTimeoutCounts checks that a renewal adopts neither a longer timeout nor an older proof.
func TestSmallestTimeoutCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Lease
		least, latest := time.Duration(1<<62), time.Duration(-1<<62)
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			timeout := time.Duration(rapid.Int64Range(1, 1e11).Draw(t, "timeout"))
			sent := time.Duration(rapid.Int64Range(-1e11, 1e11).Draw(t, "sent"))
			l.Renew(Lease{Sent: Moment{sent, sent}, Timeout: timeout, Delay: time.Hour})
			least, latest = min(least, timeout), max(latest, sent)
			if l.Timeout != least || l.Sent.Mono != latest || l.Delay != time.Hour {
				t.Fatalf("%+v, want timeout %v of %v, an hour's delay", l, least, latest)
			}
		}
	})
}
