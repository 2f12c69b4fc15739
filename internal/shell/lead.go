package shell

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/guard"
	"bellwether/zk"
)

// newGuardian is the other end of a runner's pipes; nobody calls it by hand.
func newGuardian() *cobra.Command {
	var grace time.Duration
	c := &cobra.Command{
		Use:    "guardian -- COMMAND [ARGUMENT]...",
		Short:  "run a command for as long as elect or lock allows",
		Long:   "Used by elect, lock and their like, which talk to it through pipes.",
		Hidden: true,
		RunE:   func(_ *cobra.Command, args []string) error { return statusOf(guard.Main(args, grace)) },
	}
	c.Flags().DurationVar(&grace, "grace", 0, "how long before the deadline the command is asked to end")
	return c
}

// proofAfter is when it is looked whether the deadline is proven: by then the
// server has said how soon it confirms, if it is one that does.
const proofAfter = 2 * time.Second

// lead runs the command while the claim stands; lost tells that it was made
// to end.
func (r *runner) lead(zc *zk.Client, s standing) (status int, lost bool, err error) {
	window := r.window(zc, s)
	grace := r.grace
	if grace == 0 {
		grace = window / 4
	}
	if grace > window/2 {
		return 0, false, usagef("--grace %v does not fit into the %v that a session of %v proves: ask for a longer --session-timeout",
			grace, window.Round(time.Millisecond), zc.State().Timeout)
	}
	env := r.environment
	if r.environ != nil {
		env = r.environ
	}
	child, err := guard.Start(append([]string{"guardian", "--grace", grace.String(), "--"}, r.argv...), append(os.Environ(), env(s)...), r.stdin)
	if err != nil {
		return 0, false, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		status, lost = child.Wait()
	}()
	// The command starts with the first renewal, when there is time for more
	// than its grace.
	begin := (window + grace) / 2
	r.keep(s, child, ended, begin, max(window/20, paceMin))
	return status, lost, nil
}

// paceMin is how often a deadline is renewed at most.
const paceMin = 10 * time.Millisecond

// keep renews the child's deadline until it has ended.
func (r *runner) keep(c standing, child *guard.Child, ended <-chan struct{}, begin, pace time.Duration) {
	tick, proof := time.NewTicker(pace), time.NewTimer(proofAfter)
	defer tick.Stop()
	defer proof.Stop()
	lost, running, stopped := c.Context().Done(), false, false
	for {
		if running = running || c.Left() >= begin; running && !stopped {
			child.Renew(c.Left) // a guardian that is gone has ended
		}
		select {
		case <-ended:
			return
		case s := <-r.signals:
			r.told = r.told || ends(s)
			child.Signal(s)
		case <-lost:
			lost, stopped = nil, true
			child.Stop(0) // others may lead already
		case <-proof.C:
			if err := c.Proof(); err != nil {
				fmt.Fprintf(r.err, "bellwether: that %s is not proven: %v\n", r.others, err)
			}
		case <-tick.C:
		}
	}
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
