package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/guard"
	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// holdSession is the session timeout that holders ask for: longer than the
// 14 s for which a ZooKeeper server's leader may not know of an answered ping.
const holdSession = 20 * time.Second

// standing is a claim that stands: a *recipe.Handle, a *recipe.Hold or a
// *sitting.
type standing interface {
	Context() context.Context
	Bid() string
	Token() wire.Zxid
	Left() time.Duration
	Proof() error
	Lost() error
}

// runner runs a command while a claim stands: what the commands have in
// common that take one.
type runner struct {
	*app
	parent, id         string
	wait, grace, delay time.Duration
	again              bool
	argv               []string

	// What the claim is called.
	variable string // that holds PATH, after BELLWETHER_
	claim    string // "leadership", which is lost
	obtained string // "elected", within --wait
	others   string // "no other candidate leads", which is proven

	// Set by some.
	obtain  func(context.Context) (standing, error)
	environ func(standing) []string                    // default environment
	stdin   *os.File                                   // default this process's
	settle  func(context.Context, standing, int) error // when the command has ended by itself

	signals chan os.Signal
	told    bool // to end, by a signal while the command ran
}

func newRunner() *runner {
	r := &runner{app: newApp()}
	r.session = holdSession
	return r
}

// holdStatus is what the help texts say of the exit status.
const holdStatus = `Exit status: that of the command, 128+n for a signal; 120 %s was lost while the command ran, 121 not %s
within --wait, 122 no connection, 126 the command cannot be run, 127 there is no such command; 1 and 2 as always.`

// alone is added where there may be no command.
const alone = "\nWithout a command: 0 done, 4 no connection, 121 not in time, 128+n ended by a signal."

// flags gives c the flags of all who run a command under a claim.
func (r *runner) flags(c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	r.serverFlags(c)
	r.sessionFlags(c)
	r.waitFlag(c)
	f := c.Flags()
	f.DurationVar(&r.grace, "grace", 0, "how long the command has to end before it is killed; 0: a quarter of what the session proves")
	f.DurationVar(&r.delay, "lease-delay", 0, "how long the servers may not know of an answered ping; 0: as they say, else 14s")
}

func (r *runner) waitFlag(c *cobra.Command) {
	c.Flags().DurationVar(&r.wait, "wait", 0, fmt.Sprintf("how long to wait to be %s; 0: for ever", r.obtained))
}

// claimFlags are the flags of those whose claim has a line of bids.
func (r *runner) claimFlags(c *cobra.Command, who string) {
	f := c.Flags()
	f.StringVar(&r.id, "id", fmt.Sprintf("%s:%d", hostName(), os.Getpid()), "how others see this "+who)
	f.Lookup("id").DefValue = "host:process"
	f.BoolVar(&r.again, "again", false, fmt.Sprintf("wait and run the command again when %s is lost, instead of ending with 120", r.claim))
}

// takeArgs parts PATH from the command.
func (r *runner) takeArgs(c *cobra.Command, args []string) error {
	if c.ArgsLenAtDash() != 1 || len(args) < 2 {
		return fmt.Errorf("want %s", c.UseLine())
	}
	if args[1] == "" {
		return errors.New("the COMMAND behind -- is empty")
	}
	r.parent, r.argv = args[0], args[1:]
	return r.checkTimes()
}

func (r *runner) checkTimes() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"wait", r.wait}, {"grace", r.grace}, {"lease-delay", r.delay}} {
		if d.value < 0 {
			return fmt.Errorf("--%s %v: want 0 or more", d.name, d.value)
		}
	}
	return nil
}

// hostName is this machine's name, for the id of a candidate.
func hostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "unknown-host"
}

// ends reports whether a signal ends a wait; others are for the command.
func ends(s os.Signal) bool {
	return slices.Contains([]os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}, s)
}

// open connects, with prepare sets obtain, and runs f. With the session ends
// what was claimed in it. Prepare is called without a client first, so that who has
// typed nonsense is told so whether or not there is a server.
func (r *runner) open(ctx context.Context, prepare func(*zk.Client) error, f func(*zk.Client) error) error {
	r.signals = make(chan os.Signal, 16) // more than a person sends while one is handled
	signal.Notify(r.signals, guard.Forwarded()...)
	defer signal.Stop(r.signals)
	if err := prepare(nil); err != nil {
		return usagef("%w", err)
	}
	var zc *zk.Client
	err := r.interruptible(ctx, func(ctx context.Context) (err error) {
		zc, err = r.connect(ctx)
		return err
	})
	if err != nil && len(r.argv) > 0 {
		return noServer(err)
	}
	if err != nil {
		return err
	}
	defer endSession(ctx, zc)
	if err := prepare(zc); err != nil {
		return usagef("%w", err)
	}
	return f(zc)
}

// run runs the command while the claim stands that obtain gives.
func (r *runner) run(ctx context.Context, prepare func(*zk.Client) error) error {
	return r.open(ctx, prepare, func(zc *zk.Client) error {
		for {
			var s standing
			err := r.await(ctx, func(ctx context.Context) (err error) {
				s, err = r.obtain(ctx)
				return err
			})
			if err != nil {
				return err
			}
			status, lost, err := r.lead(zc, s)
			switch {
			case err != nil:
				return err
			case !lost && r.settle != nil:
				return r.finish(ctx, s, status)
			case !lost:
				return statusOf(status)
			case !r.again || r.told:
				return &StatusError{ExitLost, r.lost(s)}
			}
			fmt.Fprintf(r.err, "bellwether: %v; waiting for it again\n", r.lost(s))
		}
	})
}

// finish does what is left to do when the command has ended by itself.
func (r *runner) finish(ctx context.Context, s standing, status int) error {
	err := r.interruptible(ctx, func(ctx context.Context) error { return r.settle(ctx, s, status) })
	if status != ExitDone {
		return statusOf(status)
	}
	return err
}

// noServer gives a failed connection a status that is not the command's.
func noServer(err error) error {
	var s *StatusError
	if errors.As(err, &s) && s.Status == ExitNoConnection {
		return &StatusError{ExitNoServer, s.Err}
	}
	return err
}

// statusOf passes on a command's status; what there is to say it has said.
func statusOf(status int) error {
	if status == ExitDone {
		return nil
	}
	return &StatusError{Status: status}
}

// lost is why a claim was lost. A guardian acts on what it was told last, so
// that it may be earlier than the claim.
func (r *runner) lost(s standing) error {
	if err := s.Lost(); err != nil {
		return fmt.Errorf("%s is lost: %w", r.claim, err)
	}
	return fmt.Errorf("%s is lost: this process did not run for too long", r.claim)
}

// await waits for what f obtains, for --wait, or until a signal.
func (r *runner) await(ctx context.Context, f func(context.Context) error) error {
	if r.wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, r.wait,
			&StatusError{ExitNotObtained, fmt.Errorf("not %s within %v", r.obtained, r.wait)})
		defer stop()
	}
	err := r.interruptible(ctx, f)
	if errors.Is(err, recipe.ErrHeld) {
		err = &StatusError{ExitNotObtained, fmt.Errorf("not %s: %w", r.obtained, err)}
	}
	return err
}

// interruptible runs f with a context that a signal ends. One that came too
// late for f is left to what follows.
func (r *runner) interruptible(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over, heard := make(chan struct{}), make(chan os.Signal, 1)
	go func() { heard <- r.heed(over, cancel) }()
	err := f(ctx)
	close(over)
	if signal := <-heard; err == nil && signal != nil {
		select {
		case r.signals <- signal:
		default: // others wait there
		}
	}
	var s *StatusError
	if err != nil && errors.As(context.Cause(ctx), &s) {
		return s
	}
	return err
}

// heed ends a wait at a signal, and returns the one that did.
func (r *runner) heed(over <-chan struct{}, cancel context.CancelCauseFunc) (by os.Signal) {
	for {
		select {
		case s := <-r.signals:
			if ends(s) {
				cancel(&StatusError{Status: 128 + int(s.(syscall.Signal))})
				by = s
			}
		case <-over:
			return by
		}
	}
}

// pace is the time between two pings of a holder: what is proven by one must
// not run short before the next, even if the servers do not say how soon they
// confirm.
func (r *runner) pace(zc *zk.Client) time.Duration {
	if zc == nil { // what was typed is looked at
		return 0
	}
	l := r.lease(zc)
	pace := l.Timeout / 10
	if w := l.Term(); w > 0 {
		pace = min(pace, w/4)
	}
	return pace
}

// lease is what the session proves, with --lease-delay if it is given.
func (r *runner) lease(zc *zk.Client) zk.Lease {
	l := zc.Lease()
	if r.delay > 0 {
		l.Delay, l.DelayKnown = r.delay, true
	}
	return l
}
