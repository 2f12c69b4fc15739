package shell

import (
	"fmt"
	"time"
)

// pulse finds out why a guardian ended its command before the claim was lost. The guardian asks the command to end when
// only the grace is left of the last deadline that it got. The deadline was not moved for one of two reasons: no ping
// was answered, or this process did not run.
type pulse struct {
	ran       time.Time     // the last beat
	acts      time.Duration // how long after ran the guardian asks the command to end
	confirmed time.Time     // when the last answered ping was sent
	paused    time.Duration // the longest time between two beats since confirmed
	why       string        // the reason, as of the last beat at which the guardian had acted; empty: it had not acted
}

// neverActs is pulse.acts before the command runs.
const neverActs = time.Duration(1<<63 - 1)

func newPulse(confirmed time.Time) *pulse {
	return &pulse{ran: time.Now(), acts: neverActs, confirmed: confirmed}
}

// beat notes that this process runs. confirmed is when the last answered ping was sent; zero if the session has ended.
func (p *pulse) beat(confirmed time.Time) {
	gap := passed(p.ran)
	p.ran = time.Now()
	p.paused = max(p.paused, gap)
	if gap >= p.acts {
		p.why = whyEnded(passed(p.confirmed), p.paused)
	}
	if !confirmed.IsZero() && !confirmed.Equal(p.confirmed) {
		p.confirmed, p.paused = confirmed, 0
	}
}

// reason returns why the guardian has ended the command.
func (p *pulse) reason() string {
	if p.why == "" { // the guardian acted earlier than its orders say
		return whyEnded(passed(p.confirmed), p.paused)
	}
	return p.why
}

// whyEnded returns the reason for a last answered ping that was sent so long ago, and for a process that did not run for
// so long since then. If it did not run for most of that time, the server could not have changed that.
func whyEnded(unanswered, paused time.Duration) string {
	if paused > unanswered/2 {
		return fmt.Sprintf("this process was paused for %v", paused.Round(10*time.Millisecond))
	}
	return fmt.Sprintf("no ping of the last %v was answered by a server", unanswered.Round(10*time.Millisecond))
}

// passed returns the time since an earlier moment by the monotonic or by the wall clock: the longer one, because the
// monotonic clock stops while the machine is suspended.
func passed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
