package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bellwether/recipe"
	"bellwether/zk"
)

func newBarrier(base maker) *cobra.Command {
	return Group(&cobra.Command{
		Use:   "barrier",
		Short: "hold back processes until a barrier opens, or until all have arrived",
	}, newBarrierClose(base), newBarrierOpen(base), newBarrierWait(base), newBarrierEnter(base))
}

// barrierCommand returns a command that changes the barrier at one path.
func barrierCommand(base maker, name, short string, do func(*recipe.Barrier, context.Context) error) *cobra.Command {
	return dataCommand(base, func(a *app) *cobra.Command {
		return &cobra.Command{
			Use:     name + " PATH",
			Short:   short,
			Example: "  bellwether barrier " + name + " /gate",
			Args:    argCount(1, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				if _, err := recipe.NewBarrier(unconnected, args[0], nil); err != nil {
					return usagef("%w", err)
				}
				return a.withoutTimeout(cmd, func(ctx context.Context, zc *zk.Client) error {
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

func newBarrierClose(base maker) *cobra.Command {
	return barrierCommand(base, "close", "close a barrier: create the znode PATH", (*recipe.Barrier).Close)
}

func newBarrierOpen(base maker) *cobra.Command {
	return barrierCommand(base, "open", "open a barrier: delete the znode PATH", (*recipe.Barrier).Open)
}

// barrierRunner returns a runner for commands that wait at a barrier.
func barrierRunner(base maker) *runner {
	r := newRunner(base)
	r.variable, r.claim, r.obtained = "BARRIER", "the place in the barrier", "let through"
	r.others = "the others wait for the command"
	return r
}

func newBarrierWait(base maker) *cobra.Command {
	r := barrierRunner(base)
	c := &cobra.Command{
		Use:   "wait PATH",
		Short: "wait until the barrier is open: until there is no znode PATH",
		Long: "Wait until the barrier is open. It is open while there is no znode PATH.\n\n" +
			"Exit status: 0 the barrier is open, 4 no connection, 121 not open within --wait, 128+n ended by a signal.",
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

const enterLong = `Wait until N members are in the barrier, run the command, and wait until the commands of all members have ended.
Without a command, the members only wait for each other.

If this member's session is lost, the others no longer wait for it. Before that, a guardian asks the command to end and
then kills it, as with bellwether lock. The command's environment contains BELLWETHER_BARRIER, which is PATH.
Members that use Curator's DistributedDoubleBarrier can share the barrier. Members that use kazoo can share it if all
give --kazoo.

`

func newBarrierEnter(base maker) *cobra.Command {
	r := barrierRunner(base)
	n, kazoo := 0, false
	c := &cobra.Command{
		Use:   "enter [flags] -n N PATH [-- COMMAND [ARGUMENT]...]",
		Short: "start and end together with the other members of a double barrier",
		Long:  enterLong + fmt.Sprintf(holdStatus, "the place in the barrier", "let through") + withoutCommandStatus,
		Example: "  bellwether barrier enter -n 5 /step-7 -- ./step-7\n" +
			"  bellwether barrier enter -n 2 --wait 1m /meet",
		Args: r.takePath,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.enter(cmd.Context(), n, kazoo) },
	}
	r.flags(c)
	c.Flags().IntVarP(&n, "members", "n", 0, "how many members must be in the barrier")
	c.Flags().BoolVar(&kazoo, "kazoo", false, "members use kazoo's DoubleBarrier")
	if err := c.MarkFlagRequired("members"); err != nil {
		panic(err) // the flag is defined above
	}
	return c
}

// takePath parses the arguments like takeArgs, but the command is optional.
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
			return r.claimSession(zc, d.Session()), nil
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

// leave waits until all members have left the barrier.
func (r *runner) leave(ctx context.Context, d *recipe.DoubleBarrier) error {
	err := d.Leave(ctx)
	if errors.Is(err, zk.ErrSessionExpired) {
		return &StatusError{ExitLost, fmt.Errorf("%s is lost: %w", r.claim, err)}
	}
	return err
}
