package rate

import (
	"testing"
	"time"
)

// TestFailuresDelay: ten failures are free, each further one doubles the delay up to the
// maximum, and a quiet minute forgets all.
func TestFailuresDelay(t *testing.T) {
	var f Failures
	const most = time.Second
	want := []time.Duration{10: 0, 11: 20, 12: 40, 13: 80, 14: 160, 15: 320, 16: 640, 17: 1000, 99: 1000}
	now := int64(5)
	for n, ms := range want {
		if ms == 0 && n > 17 {
			ms = 1000
		}
		if got := f.Delay(now, most); got != ms*time.Millisecond {
			t.Errorf("after %d failures: %v, want %v", n, got, ms*time.Millisecond)
		}
		now += int64(FailuresForgotten) - 1
		f.Add(now, 1)
	}
	if got := f.Delay(now+int64(FailuresForgotten)-1, most); got != most {
		t.Errorf("just before the minute ends: %v", got)
	}
	now += int64(FailuresForgotten)
	if got := f.Delay(now, most); got != 0 {
		t.Errorf("after a quiet minute: %v", got)
	}
	f.Add(now, FailuresFree)
	if got := f.Delay(now, most); got != 0 {
		t.Errorf("old failures count again: %v", got)
	}
	f.Add(now, 1<<40)
	if got := f.Delay(now, time.Hour); got != time.Hour {
		t.Errorf("after very many failures: %v", got)
	}
}
