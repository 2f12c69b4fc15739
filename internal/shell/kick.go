package shell

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/spf13/cobra"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
	"bellwether/zk"
)

const kickLong = `Delete the znode with which a client leads, holds or waits: a bid, a lease, a member, or LEADER. The next one in line takes
its place. The command prints whose znode it is and asks for confirmation unless --yes is given.

The client itself is not stopped. A candidate or holder that uses this program's library notices the deletion within a
third of its session timeout, and at its deadline at the latest; clients of other libraries may never notice. Until then
it may continue in parallel with the next one: only resources that check the token are protected.`

func newKick(a *app) *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use:     "kick PATH",
		Short:   "delete a bid: take leadership, a lock or a queue position from its client",
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
		return fmt.Errorf("%s is neither a bid nor ephemeral: use bellwether delete to delete it", target)
	}
	id := lines.BidID(bid.Naming, data)
	if n, err := claim.ParseNotice(data); err == nil {
		id = n.ID
	}
	whose := owner(id, st)
	if !yes && !Agreed(a.in, a.err, fmt.Sprintf("Delete %s: %s?", target, whose)) {
		return errors.New("nothing was deleted")
	}
	// The version is not enough: a name without a nonce may have been created again.
	now, ok, err := zc.Exists(ctx, target)
	if err != nil {
		return err
	}
	if !ok || now.Czxid != st.Czxid {
		return fmt.Errorf("%s has already been deleted", target)
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
		fmt.Fprintln(a.out, "Its client may continue until its deadline; resources that check the token are protected.")
	}
	return nil
}

// owner describes the owner of a znode.
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
