package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestReconfigWithOtherClients changes the membership of ensembles of four servers with kazoo and with zkCli: a
// follower leaves, joins again, becomes an observer, and votes again. After each change every server must show it. Then
// the leader is killed, and the others must serve, as in the beginning.
func TestReconfigWithOtherClients(t *testing.T) {
	t.Parallel()
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	a, b := target.Apache, target.Bellwether
	for name, kinds := range map[string][]target.Kind{
		"apache":          {a, a, a, a},
		"bellwether":      {b, b, b, b},
		"mixed-one":       {b, b, b, a},
		"mixed-one-first": {a, b, b, b},
		"mixed-half":      {a, b, a, b},
		"mixed-last":      {b, b, a, a},
	} {
		t.Run(name, func(t *testing.T) { reconfigure(t, kinds) })
	}
}

// TestReconfigRemovesTheLeader: in ensembles of three servers of one or both kinds, the leader is removed and added
// again, three times. Another server must lead, all must show each configuration, and serve writes. In an ensemble of
// Bellwether the client gets the answer of its first request.
func TestReconfigRemovesTheLeader(t *testing.T) {
	t.Parallel()
	a, b := target.Apache, target.Bellwether
	for name, kinds := range map[string][]target.Kind{
		"apache":       {a, a, a},
		"bellwether":   {b, b, b},
		"mixed-apache": {b, b, a},
		"mixed":        {a, a, b},
	} {
		t.Run(name, func(t *testing.T) {
			e := reconfigurable(t, kinds)
			for round := range 3 {
				e.removeLeader(round)
			}
		})
	}
}

// removeLeader removes the leader and adds it again.
func (e *memberChange) removeLeader(round int) {
	e.t.Helper()
	leader, err := e.AwaitWhole(reconfigMax)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Logf("server %d (%s) leads and is removed", leader+1, e.Servers[leader].Kind)
	e.reconfig("", fmt.Sprint(leader+1), leader)
	e.write(fmt.Sprintf("/removed-%d", round))
	next, err := e.AwaitLeader(reconfigMax)
	if err != nil || next == leader {
		e.t.Fatalf("server %d leads: %v", next+1, err)
	}
	e.reconfig(e.line(leader), "")
	e.write(fmt.Sprintf("/added-%d", round))
}

// reconfig changes the membership through a server that stays in it, and repeats the request until it is accepted. A
// change of leaders of ZooKeeper leaves it open whether a request had an effect.
func (e *memberChange) reconfig(joining, leaving string, gone ...int) {
	e.t.Helper()
	through := e.at[(slices.Max(append([]int{0}, gone...))+1)%len(e.at)]
	ctx, cancel := context.WithTimeout(e.t.Context(), reconfigMax)
	defer cancel()
	if err := through.AddAuth(ctx, zk.Auth{Scheme: "digest", Data: []byte("super:" + target.Password)}); err != nil {
		e.t.Fatal(err)
	}
	var got []byte
	e.await("the change is accepted", func() bool {
		text, _, err := through.Reconfig(ctx, joining, leaving, "", -1)
		if err != nil {
			e.t.Log(err)
			if !slices.ContainsFunc(e.Servers, func(s *target.Server) bool { return s.Kind == target.Apache }) {
				e.t.Fatal("a Bellwether ensemble has refused the request")
			}
		}
		got = text
		return err == nil
	})
	for i := range e.Servers {
		if strings.Contains(string(got), fmt.Sprintf("server.%d=", i+1)) == slices.Contains(gone, i) {
			e.t.Fatalf("server %d must be gone: %v, and the configuration is\n%s", i+1, slices.Contains(gone, i), got)
		}
		e.shows(strings.TrimSpace(string(got)), i)
	}
}

// memberChange is a running ensemble whose membership changes.
type memberChange struct {
	t *testing.T
	*target.Ensemble
	at []*zk.Client // a client of each server
}

// reconfigMax is how long a change may take.
const reconfigMax = 3 * time.Minute

// reconfigurable starts an ensemble whose membership can change.
func reconfigurable(t *testing.T, kinds []target.Kind) *memberChange {
	e := &memberChange{t: t, Ensemble: target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds, Extra: map[string]string{"reconfigEnabled": "true", "initLimit": "20", "syncLimit": "10"}})}
	if _, err := e.AwaitWhole(reconfigMax); err != nil {
		t.Fatal(err)
	}
	for _, s := range e.Servers {
		e.at = append(e.at, attach(t, s.Addr, electionTimeout))
	}
	return e
}

func reconfigure(t *testing.T, kinds []target.Kind) {
	e := reconfigurable(t, kinds)
	leader, err := e.AwaitWhole(reconfigMax)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("server %d (%s) leads", leader+1, kinds[leader])
	moved, other := (leader+1)%len(kinds), (leader+2)%len(kinds)
	observing := strings.Replace(e.line(moved), ":participant;", ":observer;", 1)
	e.change("kazoo removes a server", func() string { return e.kazoo(other, "-", fmt.Sprint(moved+1), "-") }, moved)
	e.change("zkCli adds it", func() string { return e.zkCLI(other, "-add "+e.line(moved)) })
	e.change("zkCli gives the whole list, in which it observes", func() string { return e.zkCLI(other, "-members "+e.list(moved, observing)) })
	if role := e.Servers[moved].Role(); role != "observer" {
		e.await("the server observes", func() bool { role = e.Servers[moved].Role(); return role == "observer" })
	}
	e.change("kazoo gives the whole list, in which it votes", func() string { return e.kazoo(other, "-", "-", e.list(moved, e.line(moved))) })
	e.change("zkCli removes it", func() string { return e.zkCLI(other, fmt.Sprintf("-remove %d", moved+1)) }, moved)
	e.change("kazoo adds it", func() string { return e.kazoo(other, e.line(moved), "-", "-") })
	now, err := e.AwaitWhole(reconfigMax)
	if err != nil {
		t.Fatal(err)
	}
	e.Servers[now].Kill()
	if _, err := e.AwaitLeader(reconfigMax, now); err != nil {
		t.Fatal(err)
	}
	e.write("/killed", now)
	if err := e.Servers[now].Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AwaitWhole(reconfigMax); err != nil { // it knows the present membership
		t.Fatal(err)
	}
	e.shows(e.config(other), now)
}

// line returns the line of a server in a configuration, with its address for clients.
func (e *memberChange) line(server int) string {
	quorum, election := e.Ports(server)
	return fmt.Sprintf("server.%d=%s:%s:participant;%s", server+1, quorum, election[strings.LastIndexByte(election, ':')+1:], e.Servers[server].Addr)
}

// list returns all lines, one of them with another text.
func (e *memberChange) list(except int, text string) string {
	var lines []string
	for i := range e.Servers {
		if i == except {
			lines = append(lines, text)
		} else {
			lines = append(lines, e.line(i))
		}
	}
	return strings.Join(lines, ",")
}

// change runs a client that changes the membership. Then all servers that were started must show the configuration that it got, without
// the servers in gone, and serve writes.
func (e *memberChange) change(what string, client func() string, gone ...int) {
	e.t.Helper()
	e.t.Log(what)
	got := client()
	for i := range e.Servers {
		if strings.Contains(got, fmt.Sprintf("server.%d=", i+1)) == slices.Contains(gone, i) {
			e.t.Fatalf("%s: server %d must be gone: %v, and the configuration is\n%s", what, i+1, slices.Contains(gone, i), got)
		}
	}
	for i := range e.at {
		e.shows(got, i)
	}
	e.write("/" + strings.ReplaceAll(what, " ", "-"))
}

// shows waits until a server shows a configuration.
func (e *memberChange) shows(want string, server int) {
	e.t.Helper()
	var got string
	e.await(fmt.Sprintf("server %d shows\n%s\nIt shows", server+1, want), func() bool { got = e.config(server); return got == want })
}

func (e *memberChange) config(server int) string {
	ctx, cancel := context.WithTimeout(e.t.Context(), reconfigMax)
	defer cancel()
	text, _, err := e.at[server].Config(ctx)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

func (e *memberChange) await(what string, holds func() bool) {
	e.t.Helper()
	for end := time.Now().Add(reconfigMax); !holds(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			e.t.Fatalf("not within %v: %s", reconfigMax, what)
		}
	}
}

// write creates a znode through each server that is not in except.
func (e *memberChange) write(path string, except ...int) {
	e.t.Helper()
	for i, c := range e.at {
		if !slices.Contains(except, i) {
			e.await(fmt.Sprintf("server %d carries out a write", i+1), func() bool {
				ctx, cancel := context.WithTimeout(e.t.Context(), 10*time.Second)
				defer cancel()
				_, _, err := c.Create(ctx, fmt.Sprintf("%s-%d", path, i+1), nil)
				return err == nil || errors.Is(err, zk.ErrNodeExists)
			})
		}
	}
}

// kazoo changes the membership with kazoo and returns the new configuration.
func (e *memberChange) kazoo(server int, joining, leaving, members string) string {
	e.t.Helper()
	r := target.Script{Args: []string{debianPython, "-B", "reconfig/change.py", e.Servers[server].Addr, target.Password, joining, leaving, members}}.Run(e.t)
	if r.Exit != 0 {
		e.t.Fatal(r.Output())
	}
	return strings.TrimSpace(r.Stdout)
}

// zkCLI changes the membership with Apache's command line and returns the new configuration.
func (e *memberChange) zkCLI(server int, how string) string {
	e.t.Helper()
	r := target.Script{
		Args:  cliArgs(e.t, e.Servers[server]),
		Stdin: "addauth digest super:" + target.Password + "\nreconfig " + how + "\nconfig\nquit\n",
	}.Run(e.t)
	_, text, _ := strings.Cut(r.Stdout, "Committed new configuration:\n")
	text, rest, found := strings.Cut(text, "version=")
	if r.Exit != 0 || !found {
		e.t.Fatal(r.Output())
	}
	version, rest, _ := strings.Cut(rest, "\n")
	got := text + "version=" + version
	if !strings.Contains(rest, got) {
		e.t.Errorf("config prints another configuration than reconfig: %s", r.Output())
	}
	return got
}
