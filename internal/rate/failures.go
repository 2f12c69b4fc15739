package rate

import "time"

// Failures counts the failed logins of one client address. The zero value has counted
// none.
type Failures struct {
	count int   // failures since the last period of FailuresForgotten without one
	last  int64 // time of the last failure
}

const (
	// FailuresFree is how many failures cause no delay, because people mistype.
	FailuresFree = 10
	// FailuresForgotten is how long after the last failure all are forgotten.
	FailuresForgotten = time.Minute
	// failureDelay is the delay after the first failure that is not free. Each further
	// failure doubles it.
	failureDelay = 20 * time.Millisecond
	// failureDoublings is how often the delay is doubled at most. The delay is then longer
	// than any that a configuration allows, and cannot overflow.
	failureDoublings = 20
)

// Add counts n failures.
func (f *Failures) Add(now int64, n int) {
	if now-f.last >= int64(FailuresForgotten) {
		f.count = 0
	}
	f.count = min(f.count+n, FailuresFree+failureDoublings)
	f.last = now
}

// Delay returns how long the next login must wait, at most max.
func (f *Failures) Delay(now int64, max time.Duration) time.Duration {
	counted := f.count - FailuresFree
	if counted <= 0 || now-f.last >= int64(FailuresForgotten) {
		return 0
	}
	return min(failureDelay<<(counted-1), max)
}
