package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/ensemble"
	"bellwether/zk"
)

// preferredNode is the znode that names the preferred leader (tree.PreferredLeaderPath).
const preferredNode = configNode + "/preferred-leader"

const memberPreferLong = `Name the server that should lead, or show which one is named.

The leader, if it is a Bellwether server, transfers leadership to that server when it has kept up for 10 s and has just
acknowledged a write. If its last term ended badly (its disk did not answer, it was killed or cut off, or an operator
transferred leadership away), this takes an hour. Elections do not depend on it: after an election the elected server
leads first. Leadership does not pass to an observer, to a ZooKeeper server, or to a server that says that it should not
lead. election handover does not wait, and does not change which server is named.

The preference holds until it is changed, also after restarts of all servers and changes of the members. It comes before
leaderPriority in zoo.cfg. It is kept in the znode ` + preferredNode + `, whose ACL is that of /zookeeper/config
when it is created; to create and delete it, a client needs the permissions CREATE and DELETE there (the super user has
them). ZooKeeper's servers keep the znode and ignore it while they lead.

Exit status: 0 done, 1 refused or failed, 2 usage, 4 no connection.`

func newMemberPrefer(base maker) *cobra.Command {
	return memberCommand(base, func(m *members) *cobra.Command {
		remove := false
		c := &cobra.Command{
			Use:     "prefer [ID]",
			Short:   "name the server that should lead, or show which one is named",
			Long:    memberPreferLong,
			Example: "  bellwether member prefer 2 --auth digest:super:secret\n  bellwether member prefer\n  bellwether member prefer --clear --auth digest:super:secret",
			Args:    argCount(0, 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				switch {
				case remove && len(args) > 0:
					return usagef("--clear and a server id: want one of them")
				case remove:
					return m.run(cmd, m.clearPreferred)
				case len(args) == 0:
					return m.run(cmd, m.showPreferred)
				}
				id, err := parseMemberID(args[0])
				if err != nil {
					return Usage(err)
				}
				return m.run(cmd, func(ctx context.Context, zc *zk.Client) error { return m.prefer(ctx, zc, id) })
			},
		}
		c.Flags().BoolVar(&remove, "clear", false, "prefer no server any more")
		return c
	})
}

// prefer writes the id of the preferred leader.
func (m *members) prefer(ctx context.Context, zc *zk.Client, id ensemble.ServerID) error {
	now, err := readMembers(ctx, zc)
	if err != nil {
		return err
	}
	switch s, ok := now.Server(id); {
	case !ok:
		return notMember(id, now)
	case s.Role == ensemble.Observer:
		return fmt.Errorf("server %d is an observer, which cannot lead: member promote %d gives it a vote", id, id)
	}
	data := []byte(strconv.FormatInt(int64(id), 10))
	_, err = zc.Set(ctx, preferredNode, data, -1)
	if errors.Is(err, zk.ErrNoNode) {
		err = createPreferred(ctx, zc, data)
	}
	if err != nil {
		return err
	}
	return m.printPreferred(string(data))
}

// createPreferred creates the znode with the ACL of the configuration znode.
func createPreferred(ctx context.Context, zc *zk.Client, data []byte) error {
	acl, _, err := zc.GetACL(ctx, configNode)
	if err != nil {
		return err
	}
	_, _, err = zc.Create(ctx, preferredNode, data, zk.ACLs(acl))
	return err
}

// clearPreferred deletes the znode.
func (m *members) clearPreferred(ctx context.Context, zc *zk.Client) error {
	if err := zc.Delete(ctx, preferredNode, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return m.printPreferred("")
}

// showPreferred prints which server is named.
func (m *members) showPreferred(ctx context.Context, zc *zk.Client) error {
	if err := zc.Sync(ctx, "/"); err != nil {
		return err
	}
	data, _, err := zc.Get(ctx, preferredNode)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return m.printPreferred(strings.TrimSpace(string(data)))
}

func (m *members) printPreferred(id string) error {
	if m.json() {
		var out struct {
			Preferred *int64 `json:"preferred"` // nil: none
		}
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			out.Preferred = &n
		}
		return printJSON(m.out, out)
	}
	text := "no server is preferred as leader"
	if id != "" {
		text = preferredNode + " contains " + strconv.QuoteToASCII(id) + ", which is no server id: it has no effect"
		if _, err := strconv.ParseInt(id, 10, 64); err == nil {
			text = "preferred leader: server " + id
		}
	}
	_, err := fmt.Fprintln(m.out, text)
	return err
}
