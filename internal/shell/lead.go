package shell

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/guard"
	"bellwether/recipe"
	"bellwether/zk"
)

// newGuardian is the other end of elect's pipes; nobody calls it by hand.
func newGuardian() *cobra.Command {
	var grace time.Duration
	c := &cobra.Command{
		Use:    "guardian -- COMMAND [ARGUMENT]...",
		Short:  "run a command for as long as elect allows",
		Long:   "Used by elect, which talks to it through pipes.",
		Hidden: true,
		RunE:   func(_ *cobra.Command, args []string) error { return statusOf(guard.Main(args, grace)) },
	}
	c.Flags().DurationVar(&grace, "grace", 0, "how long before the deadline the command is asked to end")
	return c
}

// proofAfter is when it is looked whether the deadline is proven: by then the
// server has said how soon it confirms, if it is one that does.
const proofAfter = 2 * time.Second

// lead runs the command for one term; lost tells that it was made to end.
func (e *elect) lead(zc *zk.Client, h *recipe.Handle) (status int, lost bool, err error) {
	window := e.window(zc, h)
	grace := e.grace
	if grace == 0 {
		grace = window / 4
	}
	if grace > window/2 {
		return 0, false, usagef("--grace %v does not fit into the %v that a session of %v proves: ask for a longer --session-timeout",
			grace, window.Round(time.Millisecond), zc.State().Timeout)
	}
	child, err := guard.Start(append([]string{"guardian", "--grace", grace.String(), "--"}, e.argv...), e.environment(h))
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
	e.keep(h, child, ended, begin, max(window/20, paceMin))
	return status, lost, nil
}

// paceMin is how often a deadline is renewed at most.
const paceMin = 10 * time.Millisecond

// keep renews the child's deadline until it has ended.
func (e *elect) keep(h *recipe.Handle, child *guard.Child, ended <-chan struct{}, begin, pace time.Duration) {
	tick, proof := time.NewTicker(pace), time.NewTimer(proofAfter)
	defer tick.Stop()
	defer proof.Stop()
	lost, running := h.Context().Done(), false
	for {
		if running = running || h.Left() >= begin; running && lost != nil {
			child.Renew(h.Left) // a guardian that is gone has ended
		}
		select {
		case <-ended:
			return
		case s := <-e.signals:
			e.told = e.told || ends(s)
			child.Signal(s)
		case <-lost:
			lost = nil
			child.Stop(0) // others may lead already
		case <-proof.C:
			if err := h.Proof(); err != nil {
				fmt.Fprintf(e.err, "bellwether: that no other candidate leads is not proven: %v\n", err)
			}
		case <-tick.C:
		}
	}
}

// window is how long one answered ping lasts.
func (e *elect) window(zc *zk.Client, h *recipe.Handle) time.Duration {
	l := e.lease(zc)
	if h.Proof() == nil && l.Term() > 0 {
		return l.Term()
	}
	return l.Timeout * 2 / 3 // as recipe.Handle.Proof says
}

// environment is the command's: ours and what it is told of its term.
func (e *elect) environment(h *recipe.Handle) []string {
	return append(os.Environ(),
		"BELLWETHER_TOKEN="+strconv.FormatInt(int64(h.Token()), 10),
		"BELLWETHER_ELECTION="+e.parent,
		"BELLWETHER_BID="+h.Bid(),
		"BELLWETHER_ID="+e.id)
}
