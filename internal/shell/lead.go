package shell

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"bellwether/internal/guard"
	"bellwether/zk"
)

// proofAfter is when it is looked whether the deadline is proven: by then the
// server has said how soon it confirms, if it is one that does.
const proofAfter = 2 * time.Second

// lead runs the command while the claim stands; lost tells that it was made
// to end.
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

// checkGrace refuses a --grace that is longer than half of what the session
// proves. What it proves may become known only with an answer of the server.
func (r *runner) checkGrace(zc *zk.Client, s standing) error {
	tick, silent := time.NewTicker(paceMin), time.NewTimer(proofAfter)
	defer tick.Stop()
	defer silent.Stop()
	over := false
	for window := r.window(zc, s); r.grace > window/2; window = r.window(zc, s) {
		if over || r.lease(zc).DelayKnown {
			return usagef("--grace %v does not fit into the %v that a session of %v proves: ask for a longer --session-timeout",
				r.grace, window.Round(time.Millisecond), zc.State().Timeout)
		}
		select {
		case <-tick.C:
		case <-silent.C:
			over = true
		case <-s.Context().Done():
			return nil // the guardian is told
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

// paceMin is how often a deadline is renewed at most.
const paceMin = 10 * time.Millisecond

// keep renews the child's deadline until it has ended, or until a signal ends
// the wait for processes that nobody can end.
func (r *runner) keep(zc *zk.Client, s standing, child *guard.Child) {
	window := r.window(zc, s)
	// The command starts with the first renewal, when there is time for more
	// than its grace.
	begin := (window + r.graceOf(window)) / 2
	tick, proof := time.NewTicker(max(window/20, paceMin)), time.NewTimer(proofAfter)
	defer tick.Stop()
	defer proof.Stop()
	lost, running, stopped, longest := s.Context().Done(), false, false, time.Duration(0)
	for {
		left := s.Left()
		longest = max(longest, left)
		if running = running || left >= begin; running && !stopped {
			// What the session proves can become more while the handle does not know yet.
			child.Renew(s.Left, r.graceOf(min(r.window(zc, s), longest))) // a guardian that is gone has ended
		}
		select {
		case <-child.Ended():
			return
		case sig := <-r.signals:
			r.told = r.told || ends(sig)
			if stopped && ends(sig) && child.Survivors() {
				return
			}
			child.Signal(sig)
		case <-lost:
			lost, stopped = nil, true
			child.Stop(0) // others may lead already
		case <-proof.C:
			if err := s.Proof(); err != nil {
				fmt.Fprintf(r.err, "bellwether: that %s is not proven: %v\n", r.others, err)
			}
		case <-tick.C:
		}
	}
}

// graceOf is how long the command has to end where the session proves a window.
func (r *runner) graceOf(window time.Duration) time.Duration {
	if r.grace == 0 {
		return window / 4
	}
	return min(r.grace, window/2)
}

// window is how long one answered ping lasts.
func (r *runner) window(zc *zk.Client, s standing) time.Duration {
	l := r.lease(zc)
	if s.Proof() == nil && l.Term() > 0 {
		return l.Term()
	}
	return l.Timeout * 2 / 3 // as recipe.Handle.Proof says
}

// environment is what the command is told of its claim.
func (r *runner) environment(s standing) []string {
	return []string{
		"BELLWETHER_TOKEN=" + strconv.FormatInt(int64(s.Token()), 10),
		"BELLWETHER_" + r.variable + "=" + r.parent,
		"BELLWETHER_BID=" + s.Bid(),
		"BELLWETHER_ID=" + r.id,
	}
}
