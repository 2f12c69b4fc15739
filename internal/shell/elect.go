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
	"bellwether/zk"
)

// electSession is the session timeout that elect asks for: longer than the
// 14 s for which a ZooKeeper server's leader may not know of an answered ping.
const electSession = 20 * time.Second

// elect is what the command elect was asked.
type elect struct {
	*app
	parent, id, leaderPath string
	wait, grace, delay     time.Duration
	again                  bool
	argv                   []string

	signals chan os.Signal
	told    bool // to end, by a signal while the command ran
}

const electLong = `Campaign in the election of PATH and run a command while leading it: on exactly one machine at a time.

The command runs under a guardian, a process that asks it to end (SIGTERM) --grace before its leadership could lapse,
and kills it and all of its process group (SIGKILL) when it could, even if this process is stopped, starved or killed.
Signals are passed on. Leadership is given up when the command ends. Its environment has

  BELLWETHER_TOKEN      a number that is larger for every later leader (the czxid of its bid, in decimal)
  BELLWETHER_ELECTION   PATH
  BELLWETHER_BID        the path of the bid; the znode is there as long as the leadership
  BELLWETHER_ID         the id of this candidate

Who leads is told by the znode PATH/LEADER. Candidates of other libraries can stand in the same election.

Exit status: that of the command, 128+n for a signal; 120 leadership was lost while the command ran, 121 not elected
within --wait, 122 no connection, 126 the command cannot be run, 127 there is no such command; 1 and 2 as always.`

func newElect() *cobra.Command {
	e := &elect{app: newApp()}
	e.session = electSession
	c := &cobra.Command{
		Use:   "elect [flags] PATH -- COMMAND [ARGUMENT]...",
		Short: "run a command on exactly one machine: while leading an election",
		Long:  electLong,
		Example: "  bellwether elect /job -- ./run-me --its flags\n" +
			"  bellwether elect --again /job -- ./service\n" +
			"  bellwether elect --wait 1s /nightly -- ./backup; [ $? = 121 ] && echo another machine does it",
		Args: e.takeArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context()) },

		DisableFlagsInUseLine: true,
	}
	e.serverFlags(c)
	e.sessionFlags(c)
	f := c.Flags()
	f.StringVar(&e.id, "id", fmt.Sprintf("%s:%d", hostName(), os.Getpid()), "how others see this candidate")
	f.DurationVar(&e.wait, "wait", 0, "how long to wait to be elected; 0: for ever")
	f.DurationVar(&e.grace, "grace", 0, "how long the command has to end before it is killed; 0: a quarter of what the session proves")
	f.BoolVar(&e.again, "again", false, "campaign again when leadership is lost, instead of ending with 120")
	f.StringVar(&e.leaderPath, "leader-path", "", "znode that tells who leads (default PATH/LEADER)")
	f.DurationVar(&e.delay, "lease-delay", 0, "how long the servers may not know of an answered ping; 0: as they say, else 14s")
	f.Lookup("id").DefValue = "host:process"
	return c
}

// takeArgs parts PATH from the command.
func (e *elect) takeArgs(c *cobra.Command, args []string) error {
	if c.ArgsLenAtDash() != 1 || len(args) < 2 {
		return fmt.Errorf("want %s", c.UseLine())
	}
	e.parent, e.argv = args[0], args[1:]
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"wait", e.wait}, {"grace", e.grace}, {"lease-delay", e.delay}} {
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

// ends reports whether a signal ends a campaign; others are for the command.
func ends(s os.Signal) bool {
	return slices.Contains([]os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}, s)
}

func (e *elect) run(ctx context.Context) error {
	e.signals = make(chan os.Signal, 16) // more than a person sends while one is handled
	signal.Notify(e.signals, guard.Forwarded()...)
	defer signal.Stop(e.signals)
	zc, err := e.connect(ctx)
	if err != nil {
		return noServer(err)
	}
	defer endSession(ctx, zc) // and with it the claim
	election, err := recipe.NewElection(zc, e.parent, e.id, &recipe.ElectionOptions{
		Leader: e.leaderPath, LeaseDelay: e.delay, KeepAlive: e.pace(zc), Logger: e.logger(),
	})
	if err != nil {
		return usagef("%w", err)
	}
	for {
		h, err := e.campaign(ctx, election)
		if err != nil {
			return err
		}
		status, lost, err := e.lead(zc, h)
		switch {
		case err != nil:
			return err
		case !lost:
			return statusOf(status)
		case !e.again || e.told:
			return &StatusError{ExitLost, lostError(h)}
		}
		fmt.Fprintf(e.err, "bellwether: %v; campaigning again\n", lostError(h))
	}
}

// noServer gives a failed connection the status that elect has for it.
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

// lostError is why leadership was lost. A guardian acts on what it was told
// last, so that it may be earlier than the handle.
func lostError(h *recipe.Handle) error {
	if err := h.Lost(); err != nil {
		return fmt.Errorf("leadership is lost: %w", err)
	}
	return errors.New("leadership is lost: this process did not run for too long")
}

// campaign waits until this candidate leads, for --wait, or until a signal.
func (e *elect) campaign(ctx context.Context, election *recipe.Election) (*recipe.Handle, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if e.wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, e.wait,
			&StatusError{ExitNotObtained, fmt.Errorf("not elected within %v", e.wait)})
		defer stop()
	}
	over, heard := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(heard)
		e.heed(over, cancel)
	}()
	h, err := election.Campaign(ctx)
	close(over)
	<-heard
	var s *StatusError
	if err != nil && errors.As(context.Cause(ctx), &s) {
		return nil, s
	}
	return h, err
}

// heed ends a campaign at a signal.
func (e *elect) heed(over <-chan struct{}, cancel context.CancelCauseFunc) {
	for {
		select {
		case s := <-e.signals:
			if ends(s) {
				cancel(&StatusError{Status: 128 + int(s.(syscall.Signal))})
			}
		case <-over:
			return
		}
	}
}

// pace is the time between two pings of the leader: what is proven by one
// must not run short before the next, even if the servers do not say how soon
// they confirm.
func (e *elect) pace(zc *zk.Client) time.Duration {
	l := e.lease(zc)
	pace := l.Timeout / 10
	if w := l.Term(); w > 0 {
		pace = min(pace, w/4)
	}
	return pace
}

// lease is what the session proves, with --lease-delay if it is given.
func (e *elect) lease(zc *zk.Client) zk.Lease {
	l := zc.Lease()
	if e.delay > 0 {
		l.Delay = e.delay
	}
	return l
}
