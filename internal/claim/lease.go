package claim

import (
	"fmt"
	"time"
)

// Moment is one reading of the monotonic and the wall clock. Their origins do not matter, because only
// differences are used.
type Moment struct {
	Mono time.Duration // never goes back, but may stop while the machine is suspended
	Wall time.Duration // continues during a suspend, but may be set
}

// Since returns the time from earlier to m: the larger of the differences of the two clocks. Neither a
// suspend nor a wall clock that is set back makes it too short. It is too short only if the wall clock is
// set back during a suspend.
func (m Moment) Since(earlier Moment) time.Duration {
	return max(m.Mono-earlier.Mono, m.Wall-earlier.Wall)
}

// Lease is a client's proof that its session is alive. At Sent the client sent a ping, or the request that
// attached the session, and the server answered it.
type Lease struct {
	Sent    Moment
	Timeout time.Duration // T, the smallest timeout that the session ever had
	Delay   time.Duration // D, within which the server that expires sessions learns of an answered ping
}

// NoProof is the error for a session whose timeout is too short to prove any deadline.
type NoProof struct{ Timeout, Delay time.Duration }

func (e *NoProof) Error() string {
	return fmt.Sprintf("session timeout %v is not longer than the %v within which the server learns of a ping: "+
		"ask for a longer timeout, or say how soon this server confirms", e.Timeout, e.Delay)
}

// Proof returns nil if the deadline of the lease is proven, otherwise a [*NoProof].
func (l Lease) Proof() error {
	if l.proven() <= 0 {
		return &NoProof{l.Timeout, l.Delay}
	}
	return nil
}

// proven returns T - D - 1 % of T. The last term is a margin for clocks that run at different speeds. No
// server expires the session, and so deletes its bids, sooner than this after Sent.
func (l Lease) proven() time.Duration { return l.Timeout - l.Delay - l.Timeout/100 }

// Window returns how long after Sent a term lasts. If no deadline can be proven, it returns two thirds of
// the timeout, the time after which a client gives up a silent connection. See [Lease.Proof].
func (l Lease) Window() time.Duration {
	if w := l.proven(); w > 0 {
		return w
	}
	return l.Timeout * 2 / 3
}

// Left returns the time until the deadline; 0 or negative when it has passed.
func (l Lease) Left(now Moment) time.Duration { return l.Window() - now.Since(l.Sent) }

// Renew adopts a later proof and keeps the smallest timeout. The first proof is always adopted. Its Sent
// may be negative, because the session may be older than the clock's origin.
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
