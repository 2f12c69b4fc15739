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

// holdSession is the session timeout that holders request. It is longer than the 14 s within
// which the leader of ZooKeeper servers learns of a ping that another server has answered.
const holdSession = 20 * time.Second

// standing is a claim that is held: a *recipe.Handle, a *recipe.Hold or a *sessionClaim.
type standing interface {
	Context() context.Context
	Bid() string
	Token() wire.Zxid
	Left() time.Duration
	Proof() error
	Lost() error
}

// runner runs a command while a claim is held. It is the part that the commands with a
// claim share.
type runner struct {
	*app
	parent, id         string
	wait, grace, delay time.Duration
	again              bool
	argv               []string

	// Words for messages and the environment.
	variable string // the environment variable for PATH, without BELLWETHER_
	claim    string // such as "leadership", in "leadership is lost"
	obtained string // such as "elected" or "given an item", in "not elected within 1s"
	others   string // such as "no other candidate leads", in "it is not proven that ..."

	// Set by the command. All but obtain may be nil.
	obtain  func(context.Context) (standing, error)
	environ func(standing) []string                    // nil: the function environment
	stdin   *os.File                                   // nil: the standard input of this process
	settle  func(context.Context, standing, int) error // called when the command has ended by itself

	signals chan os.Signal
	told    bool   // a signal asked the command to end while it ran
	why     string // why the guardian ended the command, for a claim that was not lost before
}

func newRunner(base maker) *runner {
	r := &runner{app: base()}
	r.session = holdSession
	return r
}

// holdStatus lists the exit statuses for the help texts.
const holdStatus = `Exit status: that of the command, 128+n for a signal; 120 if %s was lost while the command ran, 121 if not %s
within --wait, 122 no connection, 126 the command cannot be run, 127 there is no such command; 1 failed, 2 usage.`

// withoutCommandStatus lists the exit statuses of a call without a command.
const withoutCommandStatus = "\nWithout a command: 0 done, 4 no connection, 121 not in time, 128+n ended by a signal."

// flags adds the flags of all commands that run a command while they hold a claim.
func (r *runner) flags(c *cobra.Command) {
	c.DisableFlagsInUseLine = true
	r.serverFlags(c)
	r.sessionFlags(c)
	r.waitFlag(c)
	f := c.Flags()
	f.DurationVar(&r.grace, "grace", 0, "how long the command has to end before it is killed; 0: a quarter of the time that the session proves")
	f.DurationVar(&r.delay, "lease-delay", 0, "longest time until all servers know of an answered ping; 0: the time that the server reports, or 14s")
}

func (r *runner) waitFlag(c *cobra.Command) {
	c.Flags().DurationVar(&r.wait, "wait", 0, "longest time to wait; 0: no limit")
}

// claimFlags adds the flags of claims with a line of bids.
func (r *runner) claimFlags(c *cobra.Command, who string) {
	f := c.Flags()
	f.StringVar(&r.id, "id", fmt.Sprintf("%s:%d", hostName(), os.Getpid()), "name under which others see this "+who)
	f.Lookup("id").DefValue = "host:process"
	f.BoolVar(&r.again, "again", false, fmt.Sprintf("wait and run the command again when %s is lost, instead of ending with 120", r.claim))
}

// takeArgs parses PATH and the command.
func (r *runner) takeArgs(c *cobra.Command, args []string) error {
	if c.ArgsLenAtDash() != 1 || len(args) < 2 {
		return fmt.Errorf("want %s", c.UseLine())
	}
	if args[1] == "" {
		return errors.New("the COMMAND after -- is empty")
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

// hostName returns this machine's name, for the id of a candidate.
func hostName() string {
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "unknown-host"
}

// ends reports whether a signal ends a wait; other signals are only passed to the command.
func ends(s os.Signal) bool {
	return slices.Contains([]os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}, s)
}

// unconnected is given to the constructors of recipes to check their arguments without a
// server. It is never used for a call.
var unconnected = new(zk.Client)

// open connects, calls prepare, which sets obtain, and runs f. Claims made in the session
// end with it. open first calls prepare with the client unconnected, so that wrong arguments
// are reported even without a server.
func (r *runner) open(ctx context.Context, prepare func(*zk.Client) error, f func(*zk.Client) error) error {
	r.signals = make(chan os.Signal, 16) // more signals than a person sends while one is handled
	signal.Notify(r.signals, guard.Forwarded()...)
	defer signal.Stop(r.signals)
	if err := prepare(unconnected); err != nil {
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

// run obtains the claim and runs the command while it is held.
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

// finish calls settle after the command has ended by itself.
func (r *runner) finish(ctx context.Context, s standing, status int) error {
	err := r.interruptible(ctx, func(ctx context.Context) error { return r.settle(ctx, s, status) })
	if status != ExitDone {
		return statusOf(status)
	}
	return err
}

// noServer replaces the exit status of a failed connection by one that differs from those
// of commands.
func noServer(err error) error {
	var s *StatusError
	if errors.As(err, &s) && s.Status == ExitNoConnection {
		return &StatusError{ExitNoServer, s.Err}
	}
	return err
}

// statusOf returns a command's status as an error without a message.
func statusOf(status int) error {
	if status == ExitDone {
		return nil
	}
	return &StatusError{Status: status}
}

// lost returns why a claim was lost. The guardian may have ended the command before the claim
// was lost; keep then knows why.
func (r *runner) lost(s standing) error {
	if err := s.Lost(); err != nil {
		return fmt.Errorf("%s is lost: %w", r.claim, err)
	}
	return fmt.Errorf("%s is lost: %s", r.claim, r.why)
}

// await calls f with a context that ends after --wait or at a signal.
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

// interruptible calls f with a context that a signal ends. A signal that comes too late
// for f is put back for the next reader.
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
		default: // the buffer is full of other signals
		}
	}
	var s *StatusError
	if err != nil && errors.As(context.Cause(ctx), &s) {
		return s
	}
	return err
}

// heed cancels at a signal that ends a wait, and returns that signal.
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

// lease returns the session's lease, with --lease-delay if it is given.
func (r *runner) lease(zc *zk.Client) zk.Lease {
	l := zc.Lease()
	if r.delay > 0 {
		l.Delay, l.DelayKnown = r.delay, true
	}
	return l
}
