package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/ensemble"
	"bellwether/zk"
)

const reconfigLong = `Change the members of the ensemble and print the new configuration: add and remove some, or replace all of them with
--members or --file. The server must allow it (reconfigEnabled=true), and the client must be allowed to write
/zookeeper/config. ZooKeeper's spelling of the options, -add, -remove, -members and -file, works too.`

// reconfiguration holds what the command reconfig asks for.
type reconfiguration struct {
	joining, leaving []string
	members, file    string
	version          string
	stat             bool
}

func newReconfig(a *app) *cobra.Command {
	var r reconfiguration
	c := &cobra.Command{
		Use:   "reconfig",
		Short: "change the members of the ensemble",
		Long:  reconfigLong,
		Example: "  bellwether reconfig --add 'server.4=host4:2888:3888;2181' --remove 2\n" +
			"  bellwether reconfig -v 100000000 --members 'server.1=host1:2888:3888;2181'",
		Args: argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, err := r.check()
			if err != nil {
				return err
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				text, st, err := zc.Reconfig(ctx, strings.Join(r.joining, ","), strings.Join(r.leaving, ","), r.members, version)
				if err != nil {
					return err
				}
				if a.json() {
					return printJSON(a.out, struct {
						Config string    `json:"config"`
						Stat   *statJSON `json:"stat,omitempty"`
					}{string(text), statIf(st, r.stat)})
				}
				if _, err = fmt.Fprintf(a.out, "Committed new configuration:\n%s\n", text); err == nil && r.stat {
					printStat(a.out, st)
				}
				return err
			})
		},
	}
	f := c.Flags()
	f.StringArrayVar(&r.joining, "add", nil, "server.ID=HOST:PORT:PORT[:ROLE];PORT[,...] that joins or changes; may be repeated")
	f.StringArrayVar(&r.leaving, "remove", nil, "ID[,ID...] that leaves; may be repeated")
	f.StringVar(&r.members, "members", "", "the whole new membership, in the form of --add")
	f.StringVar(&r.file, "file", "", "`FILE` with the whole new membership, as of a dynamic configuration")
	f.StringVarP(&r.version, "version", "v", "", "only if the configuration has this version, in hex")
	f.BoolVarP(&r.stat, "stat", "s", false, "print the stat too")
	c.MarkFlagsMutuallyExclusive("members", "file")
	c.MarkFlagsOneRequired("add", "remove", "members", "file")
	for _, some := range []string{"add", "remove"} {
		for _, all := range []string{"members", "file"} {
			c.MarkFlagsMutuallyExclusive(some, all)
		}
	}
	return c
}

// check reads the version and the file, and parses the change, so that an error in it is named here and not only in the log of
// the leader.
func (r *reconfiguration) check() (version int64, err error) {
	version = -1
	if r.version != "" {
		if version, err = strconv.ParseInt(strings.TrimPrefix(r.version, "0x"), 16, 64); err != nil {
			return 0, usagef("-v %q: want a version in hex, as config -c prints it", r.version)
		}
	}
	if r.file == "" {
		c := ensemble.Change{Joining: strings.Join(r.joining, ","), Leaving: strings.Join(r.leaving, ",")}
		if r.members != "" {
			c.Whole = &r.members
		}
		if err := c.Check(); err != nil {
			return 0, usagef("%w", err)
		}
		return version, nil
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		return 0, usagef("--file: %w", err)
	}
	m, err := ensemble.Parse(ensemble.Latin1(text))
	if err != nil {
		return 0, usagef("--file %s: %w", r.file, err)
	}
	var lines []string
	for _, s := range m.Servers() {
		lines = append(lines, s.Line())
	}
	r.members = strings.Join(lines, ",")
	return version, nil
}

// reconfigError explains why a server has refused a reconfiguration, after the words of ZooKeeper's CLI; nil: the error is not
// about the change.
func reconfigError(op *zk.OpError) error {
	switch {
	case errors.Is(op, zk.ErrBadArguments):
		return usagef("Arguments are not valid : %s (the change breaks a rule, which the log of the leader names)", op.Path)
	case errors.Is(op, zk.ErrUnsupported):
		return errors.New("the server runs standalone and has no members")
	}
	return nil
}
