package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// electionJSON is an election as one server saw it, as the word elog has it;
// what is not named here is passed on to programs as it is.
type electionJSON struct {
	Server int64     `json:"server"`
	Began  time.Time `json:"began"`
	Line   string    `json:"line"`
	Story  string    `json:"story"`
}

func newElection() *cobra.Command {
	return Group(&cobra.Command{
		Use:   "election",
		Short: "the elections among the servers, and why they ended as they did",
	}, newElectionLog(), newElectionExplain(), newElectionHandover())
}

const electionLong = `Each server keeps its last 64 elections: why it looked for a leader, the votes with the times at which they
came, how it ended and how long each phase took. They are asked for with the word elog,
which needs no entry in 4lw.commands.whitelist. Servers of ZooKeeper keep none, nor does a server that runs alone.
The exit status is 0 if all servers told, 1 if some did not, 4 if none was reached.

`

func newElectionLog() *cobra.Command {
	a := newApp()
	c := &cobra.Command{
		Use:     "log",
		Short:   "the recorded elections, one in a line",
		Long:    electionLong + "The elections of all servers of --server are printed in the order in which they began.",
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

func newElectionExplain() *cobra.Command {
	a := newApp()
	back := 0
	c := &cobra.Command{
		Use:     "explain",
		Short:   "the last election as each server saw it, vote by vote",
		Long:    electionLong + "The last one of each server of --server is told; --back 1 is the one before it, and so on.",
		Example: "  bellwether election explain --server a,b,c\n  bellwether election explain --back 2",
		Args:    argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if back < 0 {
				return usagef("--back %d: want 0 or more", back)
			}
			return a.elections(cmd.Context(), func(all []recorded) []recorded { return lastOfEach(all, back) }, func(r recorded) string {
				return Instant(r.Began.UnixMilli()) + "\n" + r.Story + "\n"
			})
		},
	}
	c.Flags().IntVar(&back, "back", 0, "how many elections to go back")
	a.serverFlags(c)
	a.outputFlag(c)
	return c
}

// recorded is an election with the whole text that it came in.
type recorded struct {
	electionJSON
	raw json.RawMessage
}

// elections asks each server for its elections, and prints those chosen.
func (a *app) elections(ctx context.Context, choose func([]recorded) []recorded, text func(recorded) string) error {
	hosts, _, _ := strings.Cut(a.servers, "/")
	var all []recorded
	asked, answered, told := 0, 0, 0
	for h := range strings.SplitSeq(hosts, ",") {
		asked++
		text, err := word(ctx, withPort(h), "elog", a.timeout)
		if err == nil {
			answered++
			var found []recorded
			found, err = parseElections(text)
			all = append(all, found...)
		}
		if err != nil {
			fmt.Fprintf(a.err, "%s: %v\n", withPort(h), err)
			continue
		}
		told++
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
		fmt.Fprintln(a.err, "no server keeps an election so far back")
	case told == asked:
		return nil
	}
	return &StatusError{Status: ExitFailed}
}

// parseElections reads the answer to the word elog.
func parseElections(text string) ([]recorded, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raws); err != nil {
		if text = strings.TrimSpace(text); text == "" {
			text = "no answer"
		}
		return nil, fmt.Errorf("it keeps no record of elections, or does not show it: %s", text)
	}
	if len(raws) == 0 {
		return nil, errors.New("no election is recorded; a server that runs alone has none")
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

// lastOfEach is, for each server, the election so many back from its last.
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

// Leadership is the election by which a server leads, or serves in another role.
type Leadership struct {
	Began         time.Time `json:"began"`
	State         string    `json:"state"`
	Phase         string    `json:"phase"`
	Epoch         int64     `json:"epoch"`
	Ending        string    `json:"ending"`
	LookMS        int64     `json:"look_ms"`
	DiscoverMS    int64     `json:"discover_ms"`
	SynchroniseMS int64     `json:"synchronise_ms"`
}

// Since is when the leader was ready to serve.
func (l *Leadership) Since() time.Time {
	return l.Began.Add(time.Duration(l.LookMS+l.DiscoverMS+l.SynchroniseMS) * time.Millisecond)
}

// LeaderElection asks a server for the election by which it leads; nil if it
// does not lead.
func LeaderElection(ctx context.Context, server string) (*Leadership, error) {
	return leaderElection(ctx, server, time.Second)
}

// Serves asks a server whether it leads, follows or observes by now.
func Serves(ctx context.Context, server string) (bool, error) {
	e, err := servingElection(ctx, server, time.Second)
	return e != nil, err
}

func leaderElection(ctx context.Context, server string, timeout time.Duration) (*Leadership, error) {
	e, err := servingElection(ctx, server, timeout)
	if e == nil || e.State != "LEADING" {
		return nil, err
	}
	return e, nil
}

// servingElection is the election by which a server has the role that it serves
// in; nil if it does not serve.
func servingElection(ctx context.Context, server string, timeout time.Duration) (*Leadership, error) {
	text, err := word(ctx, server, "elog", timeout)
	if err != nil {
		return nil, err
	}
	var all []Leadership
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	if len(all) == 0 || all[len(all)-1].Phase != "serve" {
		return nil, nil
	}
	return &all[len(all)-1], nil
}
