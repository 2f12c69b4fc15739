package shell

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bellwether/internal/ensemble"
	"bellwether/internal/member"
)

const memberChangeLong = `
The command prints a line for each thing that has happened; with -o json, a JSON object. If it is interrupted, it says what has been
done and how to go on: no step leaves the ensemble between two lists.

Exit status: 0 done, 1 refused or failed, 2 usage, 4 no connection, 128+n ended by a signal.`

// place is where a voter belongs in an ensemble with groups.
type place struct{ group, weight int64 }

func (p *place) flags(c *cobra.Command) {
	c.Flags().Int64Var(&p.group, "group", -1, "group of the voter, if the members have groups")
	c.Flags().Int64Var(&p.weight, "weight", 1, "weight of the voter, if the members have groups")
}

// put adds a voter to its group.
func (p *place) put(d *ensemble.Definition, id ensemble.ServerID) error {
	switch {
	case len(d.Groups) == 0 && p.group < 0:
		return nil
	case len(d.Groups) == 0:
		return usagef("--group %d: the members have no groups", p.group)
	case p.group < 0:
		return usagef("the members have groups: name the group of server %d with --group", id)
	}
	g := ensemble.GroupID(p.group)
	d.Groups[g] = append(d.Groups[g], id)
	d.Weights[id] = p.weight
	return nil
}

func newMemberAdd(base maker) *cobra.Command {
	return memberCommand(base, func(m *members) *cobra.Command {
		var at place
		observer := false
		c := &cobra.Command{
			Use:   "add LINE",
			Short: "add a server: as an observer until it has caught up, then as a voter",
			Long: "Add the server whose line is LINE. Start it first, with a zoo.cfg that has the lines of the present members and its own.\n" +
				"The server becomes an observer. When it has caught up with the leader, it gets its vote, unless LINE says observer.\n" +
				"Called again after an interruption, the command goes on where it was." + memberChangeLong,
			Example: "  bellwether member add 'server.4=zk4:2888:3888;2181' --auth digest:super:secret\n  bellwether member add --observer 'server.4=zk4:2888:3888;2181'",
			Args: func(cmd *cobra.Command, args []string) error {
				if len(args) > 1 {
					return errors.New("several servers at once: quorums before and after need not share a server; add one at a time, in the order of member plan")
				}
				return argCount(1, 1)(cmd, args)
			},
			RunE: func(cmd *cobra.Command, args []string) error {
				s, err := parseMember(args[0])
				if err != nil {
					return Usage(err)
				}
				if observer {
					s.Role = ensemble.Observer
				}
				return m.change(cmd, func(ctx context.Context, c *memberChange) error { return c.add(ctx, s, at) })
			},
		}
		c.Flags().BoolVar(&observer, "observer", false, "leave the server an observer")
		at.flags(c)
		m.changeFlags(c)
		return c
	})
}

func newMemberPromote(base maker) *cobra.Command {
	return memberCommand(base, func(m *members) *cobra.Command {
		var at place
		c := &cobra.Command{
			Use:     "promote ID",
			Short:   "give an observer that has caught up a vote",
			Long:    "Make the observer ID a participant. It is refused unless the server has caught up with the leader." + memberChangeLong,
			Example: "  bellwether member promote 4 --auth digest:super:secret",
			Args:    argCount(1, 1),
			RunE:    m.one(member.Promote, "is a participant already", func(s ensemble.Server) bool { return s.Role == ensemble.Participant }, promoteAt, &at),
		}
		at.flags(c)
		m.changeFlags(c)
		return c
	})
}

func newMemberDemote(base maker) *cobra.Command {
	return memberCommand(base, func(m *members) *cobra.Command {
		c := &cobra.Command{
			Use:     "demote ID",
			Short:   "make a voter an observer",
			Long:    "Make the participant ID an observer. If it leads, it first transfers leadership to another voter." + memberChangeLong,
			Example: "  bellwether member demote 4 --auth digest:super:secret",
			Args:    argCount(1, 1),
			RunE:    m.one(member.Demote, "is an observer already", func(s ensemble.Server) bool { return s.Role == ensemble.Observer }, demoteAt, nil),
		}
		m.changeFlags(c)
		return c
	})
}

func newMemberRemove(base maker) *cobra.Command {
	return memberCommand(base, func(m *members) *cobra.Command {
		c := &cobra.Command{
			Use:   "remove ID",
			Short: "remove a server, the leader too",
			Long: "Remove the server ID from the members. If it leads, it first transfers leadership to another voter. The server goes on\n" +
				"without a vote until you stop it." + memberChangeLong,
			Example: "  bellwether member remove 2 --auth digest:super:secret",
			Args:    argCount(1, 1),
			RunE:    m.one(member.Remove, "", func(ensemble.Server) bool { return false }, removeAt, nil),
		}
		m.changeFlags(c)
		return c
	})
}

// one returns the RunE of a command that changes one member in one step. done says that there is nothing to do.
func (m *members) one(kind member.Kind, nothing string, done func(ensemble.Server) bool, do func(*ensemble.Definition, int), at *place) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		id, err := parseMemberID(args[0])
		if err != nil {
			return Usage(err)
		}
		return m.change(cmd, func(ctx context.Context, c *memberChange) error {
			if s, ok := c.now.Server(id); ok && done(s) {
				return c.report(memberEvent{Event: "nothing", Server: id, text: fmt.Sprintf("server %d %s", id, nothing)})
			}
			d := c.now.Definition()
			if err := edit(c.now, &d, "ID", args[0], do); err != nil {
				return err
			}
			if at != nil {
				if err := at.put(&d, id); err != nil {
					return err
				}
			}
			goal, err := ensemble.New(d)
			if err != nil {
				return c.refuse(id, []member.Problem{{What: err.Error(), Do: "choose other members"}})
			}
			return c.single(ctx, kind, id, goal)
		})
	}
}
