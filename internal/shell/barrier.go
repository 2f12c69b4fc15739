package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bellwether/recipe"
	"bellwether/zk"
)

func newBarrier() *cobra.Command {
	return Group(&cobra.Command{
		Use:   "barrier",
		Short: "hold back many until one lets them pass, or until all are there",
	}, newBarrierClose(), newBarrierOpen(), newBarrierWait(), newBarrierEnter())
}

// barrierCommand is a command about the barrier of one path.
func barrierCommand(name, short string, do func(*recipe.Barrier, context.Context) error) *cobra.Command {
	return dataCommand(func(a *app) *cobra.Command {
		return &cobra.Command{
			Use:     name + " PATH",
			Short:   short,
			Example: "  bellwether barrier " + name + " /gate",
			Args:    argCount(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if _, err := recipe.NewBarrier(nil, args[0], nil); err != nil {
					return usagef("%w", err)
				}
				return a.patient(cmd, func(ctx context.Context, zc *zk.Client) error {
					b, err := recipe.NewBarrier(zc, args[0], nil)
					if err != nil {
						return err
					}
					return do(b, ctx)
				})
			},
		}
	})
}

func newBarrierClose() *cobra.Command {
	return barrierCommand("close", "let nobody pass: make the znode PATH", (*recipe.Barrier).Close)
}

func newBarrierOpen() *cobra.Command {
	return barrierCommand("open", "let everybody pass: delete the znode PATH", (*recipe.Barrier).Open)
}

// barrierRunner is a runner for those who wait at a barrier.
func barrierRunner() *runner {
	r := newRunner()
	r.variable, r.claim, r.obtained = "BARRIER", "the place in the barrier", "let through"
	r.others = "the others wait for the command"
	return r
}

func newBarrierWait() *cobra.Command {
	r := barrierRunner()
	c := &cobra.Command{
		Use:   "wait PATH",
		Short: "wait until the barrier is open: while the znode PATH is there",
		Long: "Wait until the barrier is open, which it is while there is no znode PATH.\n\n" +
			"Exit status: 0 it was open, 4 no connection, 121 not within --wait, 128+n ended by a signal.",
		Example: "  bellwether barrier close /gate; prepare; bellwether barrier open /gate\n" +
			"  bellwether barrier wait --wait 10m /gate && ./go-on",
		Args: argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.checkTimes(); err != nil {
				return usagef("%w", err)
			}
			var b *recipe.Barrier
			prepare := func(zc *zk.Client) (err error) {
				b, err = recipe.NewBarrier(zc, args[0], nil)
				return err
			}
			return r.open(cmd.Context(), prepare, func(*zk.Client) error { return r.await(cmd.Context(), b.Wait) })
		},
	}
	r.serverFlags(c)
	r.sessionFlags(c)
	r.waitFlag(c)
	return c
}

const enterLong = `Wait until N members are in the barrier, run the command, and wait until those of all members have ended.
Without a command the members only meet.

Should the session of this member be lost, the others no longer wait for it: then the command is asked to end, and
killed, before that, by a guardian as with bellwether lock. Its environment has BELLWETHER_BARRIER, which is PATH.
Members of Curator's DistributedDoubleBarrier can be in the same barrier, and kazoo's where all say --kazoo.

`

func newBarrierEnter() *cobra.Command {
	r := barrierRunner()
	n, kazoo := 0, false
	c := &cobra.Command{
		Use:   "enter [flags] -n N PATH [-- COMMAND [ARGUMENT]...]",
		Short: "begin and end together with the other members of a double barrier",
		Long:  enterLong + fmt.Sprintf(holdStatus, "the place in the barrier", "let through") + alone,
		Example: "  bellwether barrier enter -n 5 /step-7 -- ./step-7\n" +
			"  bellwether barrier enter -n 2 --wait 1m /meet",
		Args: r.takePath,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.enter(cmd.Context(), n, kazoo) },
	}
	r.flags(c)
	c.Flags().IntVarP(&n, "members", "n", 0, "how many must be in")
	c.Flags().BoolVar(&kazoo, "kazoo", false, "members use kazoo's DoubleBarrier")
	if err := c.MarkFlagRequired("members"); err != nil {
		panic(err) // the flag stands two lines above
	}
	return c
}

// takePath is takeArgs where there may be no command.
func (r *runner) takePath(c *cobra.Command, args []string) error {
	if len(args) == 1 && c.ArgsLenAtDash() < 0 {
		r.parent = args[0]
		return r.checkTimes()
	}
	return r.takeArgs(c, args)
}

func (r *runner) enter(ctx context.Context, n int, kazoo bool) error {
	var d *recipe.DoubleBarrier
	prepare := func(zc *zk.Client) (err error) {
		d, err = recipe.NewDoubleBarrier(zc, r.parent, n, &recipe.BarrierOptions{Kazoo: kazoo})
		r.obtain = func(ctx context.Context) (standing, error) {
			if err := d.Enter(ctx); err != nil {
				return nil, err
			}
			return r.sit(zc, d.Session()), nil
		}
		return err
	}
	r.environ = func(standing) []string { return []string{"BELLWETHER_BARRIER=" + r.parent} }
	r.settle = func(ctx context.Context, _ standing, _ int) error { return r.leave(ctx, d) }
	if len(r.argv) > 0 {
		return r.run(ctx, prepare)
	}
	return r.open(ctx, prepare, func(*zk.Client) error {
		if err := r.await(ctx, d.Enter); err != nil {
			return err
		}
		return r.interruptible(ctx, func(ctx context.Context) error { return r.leave(ctx, d) })
	})
}

// leave waits until all are out.
func (r *runner) leave(ctx context.Context, d *recipe.DoubleBarrier) error {
	err := d.Leave(ctx)
	if errors.Is(err, zk.ErrSessionExpired) {
		return &StatusError{ExitLost, fmt.Errorf("%s is lost: %w", r.claim, err)}
	}
	return err
}
