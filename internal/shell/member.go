package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/ensemble"
	"bellwether/internal/member"
	"bellwether/zk"
)

const memberLong = `List the members of an ensemble, plan changes of them, and carry out one change at a time, while the ensemble runs.

The servers must allow changes (reconfigEnabled=true), and the client must be allowed to write /zookeeper/config: by
--auth digest:super:PASSWORD, or by the ACL of that znode. list and plan need neither.

Before each change the commands ask every server, at the client address in its line, by the four-letter words srvr and
elog, and read the list of members that it has. They refuse a change that could lose data or the quorum, and say what
would make it safe. The members do not change then.`

func newMember(base maker) *cobra.Command {
	return Group(&cobra.Command{
		Use:   "member",
		Short: "list the members of the ensemble, plan changes of them, and change them",
		Long:  memberLong,
	}, newMemberList(base), newMemberPlan(base), newMemberAdd(base), newMemberRemove(base), newMemberPromote(base), newMemberDemote(base), newMemberPrefer(base))
}

// members is a command about the members of an ensemble.
type members struct {
	*app
	behind    int64                        // how far a server may be behind and count as caught up
	stepMax   time.Duration                // how long a change, or a wait, may take
	version   string                       // the version that the members must have; empty: any
	addresses []string                     // ID=HOST:PORT of servers that cannot be reached as their lines say
	known     map[ensemble.ServerID]string // the servers of --server by their ids; nil: not asked yet
}

// memberCommand adds the flags that all commands about members have.
func memberCommand(base maker, command func(*members) *cobra.Command) *cobra.Command {
	m := &members{app: base()}
	c := command(m)
	m.serverFlags(c)
	m.sessionFlags(c)
	m.outputFlag(c)
	f := c.Flags()
	f.Int64Var(&m.behind, "behind", 1000, "a server has caught up if it is at most `N` transactions behind the leader")
	f.StringArrayVar(&m.addresses, "address", nil, "`ID=HOST:PORT` at which a server answers, if not at the client address in its line; may be repeated")
	addExitStatuses(c)
	return c
}

// changeFlags adds the flags of the commands that change the members.
func (m *members) changeFlags(c *cobra.Command) {
	c.Flags().DurationVar(&m.stepMax, "timeout", 10*time.Minute, "how long each step may take")
	c.Flags().StringVarP(&m.version, "version", "v", "", "only if the list of members has this version, in hex")
}

// run runs f in a session. A signal ends it, with the exit status that shells give it.
func (m *members) run(cmd *cobra.Command, f func(ctx context.Context, zc *zk.Client) error) error {
	if m.behind < 0 {
		return usagef("--behind %d: want 0 or more", m.behind)
	}
	return m.with(cmd, func(ctx context.Context, zc *zk.Client) error {
		ctx, stop := UntilSignal(ctx)
		defer stop()
		err := f(ctx, zc)
		var ended *StatusError
		if err != nil && errors.As(context.Cause(ctx), &ended) {
			return ended
		}
		return err
	})
}

// UntilSignal returns a context that ends at SIGINT or SIGTERM. The cause is then a [StatusError] with the exit status that
// shells give. The caller must call stop.
func UntilSignal(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1) // the first signal decides
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	var heeded sync.WaitGroup
	heeded.Go(func() {
		select {
		case s := <-signals:
			n, _ := s.(syscall.Signal)
			end(&StatusError{Status: 128 + int(n), Err: errors.New("interrupted")})
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		end(nil)
		heeded.Wait()
	}
}

func newMemberList(base maker) *cobra.Command {
	return memberCommand(base, func(m *members) *cobra.Command {
		return &cobra.Command{
			Use:   "list",
			Short: "show the members: role, state, how far each is behind, addresses",
			Long: "Show each member as its line says (ROLE, SERVERS: its addresses for other servers, CLIENTS) and as it answers\n" +
				"(STATE; BEHIND: transactions that the leader had applied and it had not; VERSION). The lines below the table name\n" +
				"the version of the list, how many servers may fail, and members that disagree about the list or whose tree differs.\n\n" +
				"Exit status: 0 all members serve and agree, 1 not so, 2 usage, 4 no connection.",
			Example: "  bellwether member list --server zk1,zk2,zk3\n  bellwether member list -o json",
			Args:    argCount(0, 0),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return m.run(cmd, func(ctx context.Context, zc *zk.Client) error { return m.list(ctx, zc) })
			},
		}
	})
}

// memberJSON is one member in the output of list.
type memberJSON struct {
	Server  ensemble.ServerID `json:"server"`
	Role    string            `json:"role"`
	State   string            `json:"state"`
	Behind  *int64            `json:"behind,omitempty"`
	Clients string            `json:"clients,omitempty"`
	Servers []string          `json:"servers"`
	Zxid    string            `json:"zxid,omitempty"`
	Version string            `json:"version,omitempty"`
	Error   string            `json:"error,omitempty"`
}

// membersJSON is the output of list.
type membersJSON struct {
	Version  string           `json:"version"`
	Members  []memberJSON     `json:"members"`
	Survives int              `json:"survives"` // how many servers may fail; -1: there is no quorum
	Problems []member.Problem `json:"problems,omitempty"`
}

func (m *members) list(ctx context.Context, zc *zk.Client) error {
	now, err := readMembers(ctx, zc)
	if err != nil {
		return err
	}
	v, err := m.look(ctx, now, nil)
	if err != nil {
		return err
	}
	all := membersJSON{Version: hexVersion(now), Members: []memberJSON{}, Survives: member.Tolerates(now, v.Counts), Problems: append(member.New(now, now, v).Problems, v.Differing(now)...)}
	serving := true
	for _, s := range now.Servers() {
		line := describeMember(s, v.Servers[s.ID])
		serving = serving && line.Error == "" && line.State != notServing
		all.Members = append(all.Members, line)
	}
	if m.json() {
		err = printJSON(m.out, all)
	} else {
		err = all.print(m.out)
	}
	if err == nil && (!serving || len(all.Problems) > 0) {
		return &StatusError{Status: ExitFailed}
	}
	return err
}

const notServing = "not serving"

func describeMember(s ensemble.Server, seen member.Seen) memberJSON {
	line := memberJSON{Server: s.ID, Role: s.Role.String(), State: seen.Role, Clients: seen.Address, Zxid: seen.Zxid, Version: seen.Version, Error: seen.Error}
	for _, a := range s.Addresses {
		line.Servers = append(line.Servers, a.String())
	}
	switch {
	case seen.Error != "":
		line.State = "unreachable"
	case seen.Role == "":
		line.State = notServing
	case seen.Behind >= 0:
		line.Behind = &seen.Behind
	}
	return line
}

func (all *membersJSON) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tROLE\tSTATE\tBEHIND\tCLIENTS\tSERVERS\tVERSION")
	for _, s := range all.Members {
		behind := "-"
		if s.Behind != nil {
			behind = strconv.FormatInt(*s.Behind, 10)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Server, s.Role, s.State, behind, s.Clients, strings.Join(s.Servers, "|"), s.Version)
	}
	t.Flush() // w keeps its first error
	fmt.Fprintf(w, "members version %s; %s\n", all.Version, survivesText(all.Survives))
	for _, s := range all.Members {
		if s.Error != "" {
			fmt.Fprintf(w, "server %d: %s\n", s.Server, s.Error)
		}
	}
	return printProblems(w, "problem", all.Problems)
}

func printProblems(w io.Writer, word string, all []member.Problem) (err error) {
	for _, p := range all {
		_, err = fmt.Fprintf(w, "%s: %s\n    do: %s\n", word, p.What, p.Do)
	}
	return err
}

// survivesText says how many servers may fail.
func survivesText(n int) string {
	switch n {
	case -1:
		return "there is no quorum"
	case 0:
		return "no server may fail"
	case 1:
		return "any 1 server may fail"
	}
	return fmt.Sprintf("any %d servers may fail", n)
}

func hexVersion(m *ensemble.Membership) string { return strconv.FormatInt(m.Version(), 16) }
