package shell

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"bellwether/internal/guard"
	"bellwether/zk"
)

// proofAfter is when lead checks whether the deadline is proven. By then the server has
// sent its confirmation delay, if it sends one.
const proofAfter = 2 * time.Second

// lead runs the command while the claim is held. lost reports that the command was made to
// end.
func (r *runner) lead(zc *zk.Client, s standing) (status int, lost bool, err error) {
	if err := r.checkGrace(zc, s); err != nil {
		return 0, false, err
	}
	env := r.environment
	if r.environ != nil {
		env = r.environ
	}
	child, err := guard.Start(guard.Command{
		Argv: r.argv, Env: append(os.Environ(), env(s)...), Stdin: r.stdin,
		Say: func(text string) { fmt.Fprintf(r.err, "bellwether: %s\n", text) },
	})
	if err != nil {
		return 0, false, err
	}
	if r.keep(zc, s, child); !isClosed(child.Ended()) {
		return ExitLost, true, nil
	}
	status, lost = child.Wait()
	return status, lost, nil
}

// checkGrace refuses a --grace that is longer than half of the time that the session
// proves. That time may become known only with an answer of the server.
func (r *runner) checkGrace(zc *zk.Client, s standing) error {
	tick, silent := time.NewTicker(paceMin), time.NewTimer(proofAfter)
	defer tick.Stop()
	defer silent.Stop()
	over := false
	for window := r.window(zc, s); r.grace > window/2; window = r.window(zc, s) {
		if over || r.lease(zc).DelayKnown {
			return usagef("--grace %v is more than half of %v, the lease of a session with a timeout of %v: use a longer --session-timeout",
				r.grace, window.Round(time.Millisecond), zc.State().Timeout)
		}
		select {
		case <-tick.C:
		case <-silent.C:
			over = true
		case <-s.Context().Done():
			return nil // keep then ends the command
		}
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// paceMin is the shortest time between two renewals of a deadline.
const paceMin = 10 * time.Millisecond

// keep renews the child's deadline until the child has ended, or until a signal ends the
// wait for processes that cannot be killed.
func (r *runner) keep(zc *zk.Client, s standing, child *guard.Child) {
	window := r.window(zc, s)
	// The command starts with the first renewal, and only when more time is left than
	// its grace.
	begin := (window + r.graceOf(window)) / 2
	tick, proof := time.NewTicker(max(window/20, paceMin)), time.NewTimer(proofAfter)
	defer tick.Stop()
	defer proof.Stop()
	lost, running, stopped, longest := s.Context().Done(), false, false, time.Duration(0)
	pulse := newPulse(zc.Lease().Confirmed)
	for {
		pulse.beat(zc.Lease().Confirmed)
		left := s.Left()
		longest = max(longest, left)
		if running = running || left >= begin; running && !stopped {
			// The session may prove more time before the handle knows it.
			grace := r.graceOf(min(r.window(zc, s), longest))
			child.Renew(s.Left, grace) // an error means that the guardian has ended
			pulse.acts = left - grace
		}
		select {
		case <-child.Ended():
			pulse.beat(zc.Lease().Confirmed)
			r.why = pulse.reason()
			return
		case sig := <-r.signals:
			r.told = r.told || ends(sig)
			if stopped && ends(sig) && child.Survivors() {
				return
			}
			child.Signal(sig)
		case <-lost:
			lost, stopped = nil, true
			child.Stop(0) // another process may already hold the claim
		case <-proof.C:
			if err := s.Proof(); err != nil {
				fmt.Fprintf(r.err, "bellwether: it is not proven that %s: %v\n", r.others, err)
			}
		case <-tick.C:
		}
	}
}

// graceOf returns how long before the deadline the command is asked to end, if one answered
// ping proves the claim for window.
func (r *runner) graceOf(window time.Duration) time.Duration {
	if r.grace == 0 {
		return window / 4
	}
	return min(r.grace, window/2)
}

// window returns the time that one answered ping proves.
func (r *runner) window(zc *zk.Client, s standing) time.Duration {
	l := r.lease(zc)
	if s.Proof() == nil && l.Term() > 0 {
		return l.Term()
	}
	return l.Timeout * 2 / 3 // the fallback that recipe.Handle.Proof documents
}

// environment returns the environment variables that describe the claim.
func (r *runner) environment(s standing) []string {
	return []string{
		"BELLWETHER_TOKEN=" + strconv.FormatInt(int64(s.Token()), 10),
		"BELLWETHER_" + r.variable + "=" + r.parent,
		"BELLWETHER_BID=" + s.Bid(),
		"BELLWETHER_ID=" + r.id,
	}
}
