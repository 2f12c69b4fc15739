package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

const kickLong = `Delete the znode by which a client leads, holds, or waits: a bid, a lease, a member, or LEADER. Who stands behind it is
next. It asks before, unless --yes is given, and says whose it was.

The client is not ended by it. A candidate or holder of this program's library finds out within a third of its session
timeout, and by its deadline at the latest; clients of other libraries may never. Until then it may go on beside the next
one: only what checks the token is protected.`

func newKick(a *app) *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use:     "kick PATH",
		Short:   "delete a bid: take leadership, a lock or a place in line from whoever has it",
		Long:    kickLong,
		Example: "  bellwether recipes /job\n  bellwether kick /job/0123456789abcdef0123456789abcdef-n_0000000007",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error { return a.kick(ctx, zc, args[0], yes) })
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

func (a *app) kick(ctx context.Context, zc *zk.Client, target string, yes bool) error {
	data, st, err := zc.Get(ctx, target)
	if err != nil {
		return err
	}
	bid, err := claim.ParseBid(path.Base(target))
	if err != nil && st.EphemeralOwner == 0 && path.Base(target) != "LEADER" {
		return fmt.Errorf("%s is neither a bid nor ephemeral: bellwether delete deletes what you want gone", target)
	}
	id := claim.BidID(bid.Naming, data)
	if n, err := claim.ParseNotice(data); err == nil {
		id = n.ID
	}
	whose := owner(id, st)
	if !yes && !a.agreed(target, whose) {
		return errors.New("nothing was deleted")
	}
	// Not by version alone: a name without a nonce can have come again.
	now, ok, err := zc.Exists(ctx, target)
	if err != nil {
		return err
	}
	if !ok || now.Czxid != st.Czxid {
		return fmt.Errorf("%s has gone by itself", target)
	}
	if err := zc.Delete(ctx, target, now.Version); err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.out, struct {
			Kicked  string `json:"kicked"`
			ID      string `json:"id,omitempty"`
			Session string `json:"session"`
			Token   string `json:"token"`
		}{target, printable(id), st.EphemeralOwner.String(), st.Czxid.String()})
	}
	fmt.Fprintf(a.out, "Kicked %s: %s\n", target, whose)
	if st.EphemeralOwner != 0 {
		fmt.Fprintln(a.out, "Its client may go on until its deadline; what checks the token is protected.")
	}
	return nil
}

// owner says whose a znode is.
func owner(id string, st wire.Stat) string {
	who := "persistent"
	if st.EphemeralOwner != 0 {
		who = fmt.Sprintf("session %v", st.EphemeralOwner)
	}
	if id != "" {
		who = printable(id) + ", " + who
	}
	return fmt.Sprintf("%s, token %v, since %s", who, st.Czxid, Instant(st.Ctime))
}

// agreed asks the user.
func (a *app) agreed(target, whose string) bool {
	fmt.Fprintf(a.err, "Delete %s: %s? [y/N] ", target, whose)
	line, _ := bufio.NewReader(a.in).ReadString('\n') // its end means no
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
