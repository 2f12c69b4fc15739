package shell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bellwether/internal/bench"
	"bellwether/internal/fourletter"
	"bellwether/wire"
	"bellwether/zk"
)

// benchGuard protects servers and znodes that others use from a measurement.
type benchGuard struct {
	*app
	yes  bool
	path string // where the run makes its znode
}

func (g *benchGuard) check() error {
	if problem := pathProblem(g.path); problem != "" {
		return usagef("--path: %s: %s", problem, printable(g.path))
	}
	if g.path == "/zookeeper" || strings.HasPrefix(g.path, "/zookeeper/") {
		return usagef("--path %s: the servers keep their own znodes there", printable(g.path))
	}
	return nil
}

// root returns a path that no other run uses.
func (g *benchGuard) root() string {
	return fmt.Sprintf("%s/bellwether-bench-%x", strings.TrimSuffix(g.path, "/"), time.Now().UnixNano())
}

// examine returns an error if the servers have other clients, or if the user does not agree to
// the path. Otherwise it returns the servers.
func (g *benchGuard) examine(ctx context.Context) (servers []bench.ServerVersion, err error) {
	zc, err := g.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer endSession(ctx, zc)
	if g.path != "/" {
		if err := g.agree(ctx, zc); err != nil {
			return nil, err
		}
	}
	census := &census{app: g.app, own: map[wire.SessionID]bool{zc.Session().ID: true}, others: map[string]bool{}}
	if g.shell != nil && g.shell.client != nil {
		census.own[g.shell.client.Session().ID] = true
	}
	for _, server := range (&surveyor{app: g.app, zc: zc}).everyServer(ctx) {
		servers = append(servers, census.ask(ctx, server))
	}
	if g.yes {
		return servers, nil
	}
	return servers, census.verdict()
}

// agree asks whether the run may work below a path that is not its own.
func (g *benchGuard) agree(ctx context.Context, zc *zk.Client) error {
	stat, found, err := zc.Exists(ctx, g.path)
	if err != nil {
		return requestError(err)
	}
	if !found {
		return fmt.Errorf("--path %s: no such znode; create it first", g.path)
	}
	if g.yes {
		return nil
	}
	question := fmt.Sprintf("%s (%s) is not a path of the bench. Measure with a new znode below it?", g.path, Count(int(stat.NumChildren), "child znode"))
	if !Agreed(g.in, g.err, question) {
		return fmt.Errorf("nothing was written below %s; --yes answers yes", g.path)
	}
	return nil
}

// census finds out whether servers have clients besides this program.
type census struct {
	*app
	own    map[wire.SessionID]bool // sessions of this program that no server has listed yet
	others map[string]bool         // addresses of other clients
	more   int                     // connections to servers that do not say whose they are
	silent []string                // servers that do not say how many clients they have
}

// ask asks one server for its clients and for its version. ZooKeeper answers only srvr unless the
// whitelist has cons.
func (c *census) ask(ctx context.Context, server string) bench.ServerVersion {
	version, connections := c.srvr(ctx, server)
	cons, err := c.word(ctx, server, "cons", min(c.timeout, askTimeout))
	switch {
	case err == nil && strings.Contains(cons, "(queued="):
		c.count(cons)
	case version.Version != "":
		c.more += connections
	default:
		c.silent = append(c.silent, server)
	}
	return version
}

// count counts the sessions in an answer to cons.
func (c *census) count(cons string) {
	addresses := map[wire.SessionID]string{}
	parseCons(cons, addresses)
	for id, address := range addresses {
		if c.own[id] {
			delete(c.own, id)
		} else {
			c.others[address] = true
		}
	}
}

// A program that only sends words, such as a monitor, is connected for a moment. So srvr is sent
// several times, and the least number of connections counts.
const (
	srvrTries = 3
	srvrPause = 50 * time.Millisecond
)

// srvr returns the version of a server, and how many connections it has besides that of the word.
func (c *census) srvr(ctx context.Context, server string) (version bench.ServerVersion, connections int) {
	for try := range srvrTries {
		if try > 0 {
			select {
			case <-time.After(srvrPause):
			case <-ctx.Done():
			}
		}
		text, _ := c.word(ctx, server, "srvr", min(c.timeout, askTimeout)) // without an answer there is no version
		s := fourletter.ParseSrvr(text)
		version = bench.ServerVersion{Address: server, Version: s.Version, Mode: s.Mode}
		if n := max(s.Connections-1, 0); try == 0 || n < connections {
			connections = n
		}
		if connections <= len(c.own) {
			break
		}
	}
	return version, connections
}

// addressesShown is how many addresses of clients an error lists.
const addressesShown = 3

// verdict returns an error if the servers have, or may have, other clients.
func (c *census) verdict() error {
	more := max(c.more-len(c.own), 0)
	if n := len(c.others) + more; n > 0 {
		from := ""
		if addresses := slices.Sorted(maps.Keys(c.others)); len(addresses) > 0 {
			from = " (" + printable(strings.Join(addresses[:min(len(addresses), addressesShown)], ", ")) + ")"
		}
		return fmt.Errorf("the servers have %s%s, which the measurement would slow down; --yes measures nevertheless", Count(n, "other client"), from)
	}
	if len(c.silent) > 0 {
		return errors.New(strings.Join(c.silent, ", ") + " do not answer srvr or cons, so they may have other clients; --yes measures nevertheless")
	}
	return nil
}
