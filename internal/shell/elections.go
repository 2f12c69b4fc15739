package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/fourletter"
)

// electionJSON holds the fields of an election, as the word elog prints it, that these
// commands use. The JSON output passes on all fields.
type electionJSON struct {
	Server      int64     `json:"server"`
	Began       time.Time `json:"began"`
	Line        string    `json:"line"`
	Explanation string    `json:"story"`
}

func newElection(base maker) *cobra.Command {
	return Group(&cobra.Command{
		Use:   "election",
		Short: "show the elections of the servers, and transfer leadership",
	}, newElectionLog(base), newElectionExplain(base), newElectionHandover(base))
}

const electionLong = `Each server records its last 64 elections: why it looked for a leader, the votes with the times of their arrival, how the
election ended, and how long each phase took. The command asks for them with the four-letter word elog, which needs no
entry in 4lw.commands.whitelist. ZooKeeper's servers and standalone servers have no such record.
The exit status is 0 if all servers answered, 1 if some did not, 4 if none was reached.

`

func newElectionLog(base maker) *cobra.Command {
	a := base()
	c := &cobra.Command{
		Use:     "log",
		Short:   "print the recorded elections, one per line",
		Long:    electionLong + "The elections of all servers of --server are printed in the order of their start.",
		Example: "  bellwether election log --server a,b,c\n  bellwether election log -o json | jq .story",
		Args:    argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.elections(cmd.Context(), func(all []recorded) []recorded { return all }, func(r recorded) string {
				return Instant(r.Began.UnixMilli()) + "  " + r.Line + "\n"
			})
		},
	}
	a.serverFlags(c)
	a.outputFlag(c)
	return c
}

func newElectionExplain(base maker) *cobra.Command {
	a := base()
	back := 0
	c := &cobra.Command{
		Use:     "explain",
		Short:   "print the last election as each server saw it, vote by vote",
		Long:    electionLong + "The last election of each server of --server is printed; --back 1 selects the one before it, and so on.",
		Example: "  bellwether election explain --server a,b,c\n  bellwether election explain --back 2",
		Args:    argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if back < 0 {
				return usagef("--back %d: want 0 or more", back)
			}
			return a.elections(cmd.Context(), func(all []recorded) []recorded { return lastOfEach(all, back) }, func(r recorded) string {
				return Instant(r.Began.UnixMilli()) + "\n" + r.Explanation + "\n"
			})
		},
	}
	c.Flags().IntVar(&back, "back", 0, "how many elections to go back")
	a.serverFlags(c)
	a.outputFlag(c)
	return c
}

// recorded is an election together with the text in which it arrived.
type recorded struct {
	electionJSON
	raw json.RawMessage
}

// elections asks each server for its elections and prints the ones that the function
// choose selects.
func (a *app) elections(ctx context.Context, choose func([]recorded) []recorded, text func(recorded) string) error {
	hosts, _, _ := strings.Cut(a.servers, "/")
	var all []recorded
	asked, answered, recording := 0, 0, 0
	for h := range strings.SplitSeq(hosts, ",") {
		asked++
		text, err := a.word(ctx, withPort(h), "elog", a.timeout)
		if err == nil {
			answered++
			var found []recorded
			if found, err = parseElections(text); text == "" {
				err = fmt.Errorf("%w%s", err, a.withoutTLS())
			}
			all = append(all, found...)
		}
		if err != nil {
			fmt.Fprintf(a.err, "%s: %v\n", withPort(h), err)
			continue
		}
		recording++
	}
	slices.SortStableFunc(all, func(x, y recorded) int { return x.Began.Compare(y.Began) })
	chosen := choose(all)
	for _, r := range chosen {
		out := text(r)
		if a.json() {
			out = string(r.raw) + "\n"
		}
		if _, err := fmt.Fprint(a.out, out); err != nil {
			return err
		}
	}
	switch {
	case answered == 0:
		return &StatusError{Status: ExitNoConnection}
	case len(chosen) == 0 && len(all) > 0:
		fmt.Fprintln(a.err, "no server has a record of so many elections: use a smaller --back")
	case recording == asked:
		return nil
	}
	return &StatusError{Status: ExitFailed}
}

// parseElections parses the answer to the word elog.
func parseElections(text string) ([]recorded, error) {
	raws, err := fourletter.ParseElog(text)
	if err != nil {
		return nil, err
	}
	var out []recorded
	for _, raw := range raws {
		r := recorded{raw: raw}
		if err := json.Unmarshal(raw, &r.electionJSON); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// lastOfEach returns one election per server: its last one, or the one that is back positions
// before that.
func lastOfEach(all []recorded, back int) []recorded {
	byServer := map[int64][]recorded{}
	for _, r := range all {
		byServer[r.Server] = append(byServer[r.Server], r)
	}
	return slices.DeleteFunc(slices.Clone(all), func(r recorded) bool {
		own := byServer[r.Server]
		return len(own) <= back || !own[len(own)-1-back].Began.Equal(r.Began)
	})
}

// Leadership is the election in which a server got its current role.
type Leadership = fourletter.Election

// LeaderElection asks a server for the election in which it became the leader. It returns
// nil if the server does not lead.
func LeaderElection(ctx context.Context, server string) (*Leadership, error) {
	return new(app).leaderElection(ctx, server, time.Second)
}

// Serves asks a server whether it now serves as a leader, follower or observer.
func Serves(ctx context.Context, server string) (bool, error) {
	e, err := new(app).servingElection(ctx, server, time.Second)
	return e != nil, err
}

func (a *app) leaderElection(ctx context.Context, server string, timeout time.Duration) (*Leadership, error) {
	e, err := a.servingElection(ctx, server, timeout)
	if e == nil || e.State != "LEADING" {
		return nil, err
	}
	return e, nil
}

// servingElection returns the election in which a server got the role in which it serves,
// or nil if it does not serve.
func (a *app) servingElection(ctx context.Context, server string, timeout time.Duration) (*Leadership, error) {
	text, err := a.word(ctx, server, "elog", timeout)
	if err != nil {
		return nil, err
	}
	return fourletter.Serving(text)
}
