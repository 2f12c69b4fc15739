package shell

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bellwether/recipe"
	"bellwether/zk"
)

const electLong = `Campaign in the election at PATH and run a command while leading it, so that it runs on exactly one machine at a time.

The command runs under a guardian, which is another process. The guardian asks the command to end (SIGTERM) --grace
before the leadership could expire, and kills it (SIGKILL) at the moment when the leadership could expire. It does so
even if bellwether itself is stopped, gets no CPU time or is killed. On Linux, all processes that the command has
started are killed with it, daemons included, also when the command ends by itself; on other systems, its process
group is killed. Processes that cannot be killed, for example those of another user, are reported here, and leadership
is not given up before they end. Signals are passed on to the command. Leadership is given up when the command ends.
The command's environment contains

  BELLWETHER_TOKEN      a number that is larger for every later leader (the czxid of its bid, in decimal)
  BELLWETHER_ELECTION   PATH
  BELLWETHER_BID        the path of the bid; the znode exists for as long as the leadership
  BELLWETHER_ID         the id of this candidate

The znode PATH/LEADER names the leader. Candidates that use other libraries can take part in the same election.

`

func newElect(base maker) *cobra.Command {
	r := newRunner(base)
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
					Leader: leaderPath, LeaseDelay: r.delay, Logger: r.logger(),
				})
				r.obtain = func(ctx context.Context) (standing, error) { return e.Campaign(ctx) }
				return err
			})
		},
	}
	r.flags(c)
	r.claimFlags(c, "candidate")
	c.Flags().StringVar(&leaderPath, "leader-path", "", "znode that names the leader (default PATH/LEADER)")
	return c
}
