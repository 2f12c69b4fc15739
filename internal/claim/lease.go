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

// NoProof is the error for a session whose timeout is too short to prove a deadline.
type NoProof struct{ Timeout, Delay time.Duration }

func (e *NoProof) Error() string {
	return fmt.Sprintf("session timeout %v is too short beside the %v within which the server learns of a ping: "+
		"ask for at least %v, or say how soon this server confirms", e.Timeout, e.Delay, e.enough())
}

// enough returns a timeout with which the deadline would be proven: the solution of [Lease.provable] for the
// timeout, rounded up to 10 ms.
func (e *NoProof) enough() time.Duration {
	const step = 10 * time.Millisecond
	t := (e.Delay + confirmMax(e.Delay)) * 100 / 99
	return (t + 2*step - 1).Truncate(step)
}

// Proof returns nil if the deadline of the lease is proven, otherwise a [*NoProof].
func (l Lease) Proof() error {
	if !l.provable() {
		return &NoProof{l.Timeout, l.Delay}
	}
	return nil
}

// confirmMax returns the shortest window that is useful with a delay of D: the longest time that a server needs to
// answer a ping, and time for a few more pings. A follower answers a ping when its leader has confirmed it. That takes
// up to two heartbeats, 200 ms. Under a ZooKeeper leader it takes half a tick, a fourteenth of D.
func confirmMax(d time.Duration) time.Duration { return 300*time.Millisecond + d/10 }

// provable reports whether the proven window is long enough to be useful. It begins when a ping is sent. With a
// window shorter than confirmMax, every proof could have expired when it arrives, or before the next one. Then the
// first bid in line would never lead, or would lose its term again and again.
func (l Lease) provable() bool { return l.Timeout > 0 && l.proven() >= confirmMax(l.Delay) }

// proven returns T - D - 1 % of T. The last term is a margin for clocks that run at different speeds. No
// server expires the session, and so deletes its bids, sooner than this after Sent.
func (l Lease) proven() time.Duration { return l.Timeout - l.Delay - l.Timeout/100 }

// Window returns how long after Sent a term lasts. If no deadline is proven, it returns two thirds of
// the timeout, the time after which a client gives up a silent connection. See [Lease.Proof].
func (l Lease) Window() time.Duration {
	if l.provable() {
		return l.proven()
	}
	return l.Timeout * 2 / 3
}

// Pace returns the time between two pings of a holder: a tenth of the timeout, or a quarter of the window if that is
// shorter, so that a ping may be answered late.
func (l Lease) Pace() time.Duration { return min(l.Timeout/10, l.Window()/4) }

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
