package claim

import (
	"fmt"
	"time"
)

// Moment is one reading of a machine's two clocks. Their origins do not
// matter; only differences are used.
type Moment struct {
	Mono time.Duration // never set back, but may stop while the machine is suspended
	Wall time.Duration // goes on during a suspend, but may be set
}

// Since is the time from earlier to m: the larger of what the two clocks say,
// so that neither a suspend nor a clock set back makes time look shorter.
// Both at once, a suspend during which the wall clock is set back, is not seen.
func (m Moment) Since(earlier Moment) time.Duration {
	return max(m.Mono-earlier.Mono, m.Wall-earlier.Wall)
}

// Lease is what a client can prove about its session: at Sent it sent a ping,
// or the request that attached the session, which was answered.
type Lease struct {
	Sent    Moment
	Timeout time.Duration // T, the smallest timeout the session ever had
	Delay   time.Duration // D, how long whoever expires sessions may not know of an answered ping
}

// NoProof: a session's timeout is too short for any deadline to be proven.
type NoProof struct{ Timeout, Delay time.Duration }

func (e *NoProof) Error() string {
	return fmt.Sprintf("session timeout %v is not longer than the %v for which the server may not know of a ping: "+
		"ask for a longer timeout, or say how soon this server confirms", e.Timeout, e.Delay)
}

// Proof is nil when the lease's deadline is proven, else a [*NoProof].
func (l Lease) Proof() error {
	if l.proven() <= 0 {
		return &NoProof{l.Timeout, l.Delay}
	}
	return nil
}

// proven is T - D - 1 % of T, the margin for clocks that run at different
// speeds. Nobody can be given the session's bids sooner after Sent.
func (l Lease) proven() time.Duration { return l.Timeout - l.Delay - l.Timeout/100 }

// Window is how long after Sent a handle lasts. Where nothing is proven it is
// two thirds of the timeout, which is when a client gives up a silent
// connection; see [Lease.Proof].
func (l Lease) Window() time.Duration {
	if w := l.proven(); w > 0 {
		return w
	}
	return l.Timeout * 2 / 3
}

// Left is the time until the deadline, at most 0 when it has passed.
func (l Lease) Left(now Moment) time.Duration { return l.Window() - now.Since(l.Sent) }

// Renew takes a later proof into account. The smallest timeout counts. The
// first proof counts whenever it was sent: moments may be negative, as the
// session may be older than the clock's origin.
func (l *Lease) Renew(later Lease) {
	if l.Timeout == 0 {
		*l = later
		return
	}
	l.Timeout = min(l.Timeout, later.Timeout)
	if later.Sent.Mono >= l.Sent.Mono {
		l.Sent, l.Delay = later.Sent, later.Delay
	}
}
