package shell

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bellwether/recipe"
	"bellwether/zk"
)

const electLong = `Campaign in the election of PATH and run a command while leading it: on exactly one machine at a time.

The command runs under a guardian, a process that asks it to end (SIGTERM) --grace before its leadership could lapse,
and kills it (SIGKILL) when it could, even if this process is stopped, starved or killed. On Linux, all that the command
has started is killed with it, daemons too, also when the command ends by itself; elsewhere its process group is. What
cannot be killed, a process of another user for example, is named here, and leadership is not given up before it ends.
Signals are passed on. Leadership is given up when the command ends. Its environment has

  BELLWETHER_TOKEN      a number that is larger for every later leader (the czxid of its bid, in decimal)
  BELLWETHER_ELECTION   PATH
  BELLWETHER_BID        the path of the bid; the znode is there as long as the leadership
  BELLWETHER_ID         the id of this candidate

Who leads is told by the znode PATH/LEADER. Candidates of other libraries can stand in the same election.

`

func newElect() *cobra.Command {
	r := newRunner()
	r.variable, r.claim, r.obtained, r.others = "ELECTION", "leadership", "elected", "no other candidate leads"
	leaderPath := ""
	c := &cobra.Command{
		Use:   "elect [flags] PATH -- COMMAND [ARGUMENT]...",
		Short: "run a command on exactly one machine: while leading an election",
		Long:  electLong + fmt.Sprintf(holdStatus, "leadership", "elected"),
		Example: "  bellwether elect /job -- ./run-me --its flags\n" +
			"  bellwether elect --again /job -- ./service\n" +
			"  bellwether elect --wait 1s /nightly -- ./backup; [ $? = 121 ] && echo another machine does it",
		Args: r.takeArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.run(cmd.Context(), func(zc *zk.Client) error {
				e, err := recipe.NewElection(zc, r.parent, r.id, &recipe.ElectionOptions{
					Leader: leaderPath, LeaseDelay: r.delay, KeepAlive: r.pace(zc), Logger: r.logger(),
				})
				r.obtain = func(ctx context.Context) (standing, error) { return e.Campaign(ctx) }
				return err
			})
		},
	}
	r.flags(c)
	r.claimFlags(c, "candidate")
	c.Flags().StringVar(&leaderPath, "leader-path", "", "znode that tells who leads (default PATH/LEADER)")
	return c
}
