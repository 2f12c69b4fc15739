package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bellwether/recipe"
	"bellwether/zk"
)

// holder is a runner whose claim is a lock or a lease of a semaphore.
type holder struct {
	*runner
	try     bool
	naming  string
	namings string // the accepted values of --naming, for messages
}

const holdLong = `

The command runs under a guardian, which is another process. The guardian asks the command to end (SIGTERM) --grace
before %[1]s could expire, and kills it (SIGKILL) at the moment when %[1]s could expire. It does so even if
bellwether itself is stopped, gets no CPU time or is killed. On Linux, all processes that the command has started are
killed with it, daemons included, also when the command ends by itself; on other systems, its process group is
killed. Processes that cannot be killed, for example those of another user, are reported here, and %[1]s is not
given up before they end. Signals are passed on to the command. %[2]s is given up when the command ends. The command's
environment contains

  BELLWETHER_TOKEN      a number that is larger for every later holder (the czxid of its bid, in decimal)
  BELLWETHER_%-9[3]s  PATH
  BELLWETHER_BID        the path of the bid; the znode exists for as long as it is held
  BELLWETHER_ID         the id of this holder

`

func newHolder(base maker, variable, claim, namings string) *holder {
	r := newRunner(base)
	r.variable, r.claim, r.obtained = variable, claim, "obtained"
	return &holder{runner: r, namings: namings}
}

func (h *holder) flags(c *cobra.Command) {
	h.runner.flags(c)
	h.claimFlags(c, "holder")
	c.Flags().BoolVar(&h.try, "try", false, "do not wait: exit with status 121 if it cannot be obtained at once")
	c.Flags().StringVar(&h.naming, "naming", "own", "naming convention of the programs that share PATH: "+h.namings)
}

// options returns the options of the recipe.
func (h *holder) options(zc *zk.Client) (*recipe.LockOptions, error) {
	naming, ok := map[string]recipe.Naming{
		"own": recipe.OwnNames, "curator": recipe.CuratorLockNames, "kazoo": recipe.KazooNames, "go-zk": recipe.GoZKNames,
	}[h.naming]
	if !ok {
		return nil, fmt.Errorf("--naming %q: want %s", h.naming, h.namings)
	}
	if h.try && h.wait > 0 {
		return nil, errors.New("--try does not wait, so it cannot be combined with --wait")
	}
	return &recipe.LockOptions{ID: h.id, Naming: naming, LeaseDelay: h.delay, Logger: h.logger()}, nil
}

// obtainBy sets obtain to wait or, with --try, to try.
func (h *holder) obtainBy(wait, try func(context.Context) (*recipe.Hold, error)) {
	if h.try {
		wait = try
	}
	h.obtain = func(ctx context.Context) (standing, error) { return wait(ctx) }
}

func newLock(base maker) *cobra.Command {
	h := newHolder(base, "LOCK", "the lock", "own, curator, kazoo or, without --read and --write, go-zk")
	h.others = "nobody else holds the lock"
	var read, write bool
	c := &cobra.Command{
		Use:   "lock [flags] PATH -- COMMAND [ARGUMENT]...",
		Short: "run a command while holding a lock",
		Long: "Wait for the lock at PATH, in the order of arrival, and run a command while holding it. With --read, several readers hold\n" +
			"the lock together, and their tokens have no order; with --write, one process holds it. Without both it counts as a writer." +
			fmt.Sprintf(holdLong, "its hold", "The lock", "LOCK") + fmt.Sprintf(holdStatus, "the lock", "obtained"),
		Example: "  bellwether lock /backup -- ./backup\n" +
			"  bellwether lock --try /nightly -- ./report; [ $? = 121 ] && echo it runs elsewhere\n" +
			"  bellwether lock --read /catalogue -- ./export\n" +
			"  bellwether lock --naming curator /app/lock -- ./migrate",
		Args: h.takeArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return h.run(cmd.Context(), func(zc *zk.Client) error { return h.prepareLock(zc, read, write) })
		},
	}
	h.flags(c)
	c.Flags().BoolVar(&read, "read", false, "hold the lock as a reader")
	c.Flags().BoolVar(&write, "write", false, "hold the lock as a writer")
	c.MarkFlagsMutuallyExclusive("read", "write")
	return c
}

func (h *holder) prepareLock(zc *zk.Client, read, write bool) error {
	o, err := h.options(zc)
	if err != nil {
		return err
	}
	if !read && !write {
		l, err := recipe.NewLock(zc, h.parent, o)
		h.obtainBy(l.Lock, l.TryLock)
		return err
	}
	l, err := recipe.NewReadWriteLock(zc, h.parent, o)
	if read {
		h.obtainBy(l.RLock, l.TryRLock)
	} else {
		h.obtainBy(l.Lock, l.TryLock)
	}
	return err
}

func newSemaphore(base maker) *cobra.Command {
	h := newHolder(base, "SEMAPHORE", "the lease", "own, curator or kazoo")
	h.others = "no more than N clients hold a lease"
	n := 0
	c := &cobra.Command{
		Use:   "semaphore [flags] -n N PATH -- COMMAND [ARGUMENT]...",
		Short: "run a command while holding one of N leases",
		Long: "Wait for one of the N leases at PATH, in the order of arrival, and run a command while holding it: at most N at a time.\n" +
			"All users of PATH must give the same N." +
			fmt.Sprintf(holdLong, "its lease", "The lease", "SEMAPHORE") + fmt.Sprintf(holdStatus, "the lease", "obtained"),
		Example: "  bellwether semaphore -n 3 /downloads -- curl -O https://example.org/file\n" +
			"  bellwether semaphore -n 10 --again /workers -- ./worker",
		Args: h.takeArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return h.run(cmd.Context(), func(zc *zk.Client) error {
				o, err := h.options(zc)
				if err != nil {
					return err
				}
				s, err := recipe.NewSemaphore(zc, h.parent, n, o)
				h.obtainBy(s.Acquire, s.TryAcquire)
				return err
			})
		},
	}
	h.flags(c)
	c.Flags().IntVarP(&n, "leases", "n", 0, "how many leases there are")
	if err := c.MarkFlagRequired("leases"); err != nil {
		panic(err) // the flag is defined above
	}
	return c
}
