package blackbox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// tally is what a takeover counts.
type tally struct {
	writes, lost        int // acknowledged writes, and those that are lost
	sessions, ended     int // sessions, and those that were lost
	turns, faults       int // turns of holders, and faults of recipes: two holders
	compared, differing int // digests of trees at one zxid that several servers reported, and those that differ
	steps               []step
	errors              map[string]int // how often a request ended with each error, by client
}

// step is the replacement of one server.
type step struct {
	server    int
	leads     bool        // the server that is replaced leads
	kind      target.Kind // what it becomes
	elections int         // leaders that were established
	took      time.Duration
	gap       time.Duration // the longest time in which a client that may use any server had no acknowledged write
}

// lostConnection holds the errors, by client, that tell of a lost connection. A write may then have no known outcome.
var lostConnection = map[string]bool{
	"go: unknown outcome": true, "go: " + zk.ErrConnectionLoss.Error(): true,
	"Curator: CONNECTIONLOSS": true, "kazoo: ConnectionLoss": true, "C: connection loss": true, "C: operation timeout": true,
}

// String returns the tally as lines of text.
func (c *tally) String() string {
	var text strings.Builder
	replaced, elections := 0, 0
	for _, s := range c.steps {
		if s.leads {
			replaced++
		}
		elections += s.elections
		fmt.Fprintf(&text, "server %d (leader: %v) became %s in %v: %d elections, longest gap %v\n",
			s.server, s.leads, s.kind, s.took.Round(time.Millisecond), s.elections, s.gap.Round(time.Millisecond))
	}
	fmt.Fprintf(&text, "acknowledged writes lost: %d of %d\n", c.lost, c.writes)
	fmt.Fprintf(&text, "sessions lost: %d of %d\n", c.ended, c.sessions)
	fmt.Fprintf(&text, "recipe faults: %d in %d turns\n", c.faults, c.turns)
	fmt.Fprintf(&text, "elections: %d, leaders replaced: %d\n", elections, replaced)
	fmt.Fprintf(&text, "tree digests that differ: %d of %d\n", c.differing, c.compared)
	for _, kind := range slices.Sorted(maps.Keys(c.errors)) {
		fmt.Fprintf(&text, "%s: %d\n", kind, c.errors[kind])
	}
	return text.String()
}

// wrong returns what in the tally contradicts docs/migrate.md.
func (c *tally) wrong() (all []string) {
	for what, n := range map[string]int{
		"acknowledged writes are lost": c.lost, "sessions are lost": c.ended, "recipe faults": c.faults, "digests differ": c.differing,
	} {
		if n != 0 {
			all = append(all, fmt.Sprintf("%d %s", n, what))
		}
	}
	for what, n := range map[string]int{
		"writes": c.writes, "sessions": c.sessions, "turns of holders": c.turns, "digests": c.compared, "steps": len(c.steps),
	} {
		if n == 0 {
			all = append(all, "there were no "+what)
		}
	}
	for _, s := range c.steps {
		want := 0
		if s.leads {
			want = 1
		}
		if s.elections != want {
			all = append(all, fmt.Sprintf("%d elections while server %d was replaced (leader: %v), want %d", s.elections, s.server, s.leads, want))
		}
	}
	for kind, n := range c.errors {
		if !lostConnection[kind] {
			all = append(all, fmt.Sprintf("%d errors that do not tell of a lost connection: %s", n, kind))
		}
	}
	return all
}

// judge logs the tally and fails the test for everything that is wrong in it.
func (c *tally) judge(t testing.TB) {
	t.Helper()
	t.Logf("the tally:\n%s", c)
	for _, what := range c.wrong() {
		t.Error(what)
	}
}

// countStep adds a step, and the digests that the servers have reported until its end.
func (s *takeover) countStep(x step) {
	s.count.steps = append(s.count.steps, x)
	s.count.compared, s.count.differing = s.reports.count()
}

// countSessions compares the sessions of Bellwether's clients before and after.
func (s *takeover) countSessions(before, after []zk.SessionID) {
	s.count.sessions += len(before)
	for i := range before {
		if after[i] != before[i] {
			s.count.ended++
		}
	}
}

// countLoad counts what the load and the candidates saw, after finish.
func (s *takeover) countLoad(c *claims) {
	s.count.writes += s.load.writes
	s.count.lost += s.lost
	s.count.turns += len(c.all)
	s.count.faults += int(c.faults.Load())
	for kind, n := range s.load.errors {
		s.count.errors["go: "+kind] += n
	}
}

// epoch returns the epoch of the leader: each election that ends with a leader begins a new one.
func (s *takeover) epoch() int {
	s.t.Helper()
	text, err := s.e.Servers[s.awaitWhole()].Word("srvr")
	s.must(err)
	_, zxid, _ := strings.Cut(text, "\nZxid: ")
	zxid, _, _ = strings.Cut(zxid, "\n")
	n, err := strconv.ParseUint(zxid, 0, 64)
	s.must(err)
	return int(n >> 32)
}

// digests are the digests of trees that servers have reported: by zxid, each with the servers that reported it. A
// server reports the digests at every 128th zxid since its start, also of those that it reads from its files then.
type digests map[string]map[string][]string

func (d digests) add(zxid, digest, server string) {
	if d[zxid] == nil {
		d[zxid] = map[string][]string{}
	}
	if !slices.Contains(d[zxid][digest], server) {
		d[zxid][digest] = append(d[zxid][digest], server)
	}
}

// zxids returns the zxids of all digests.
func (d digests) zxids() map[string]bool {
	all := map[string]bool{}
	for zxid := range d {
		all[zxid] = true
	}
	return all
}

// count returns how many zxids several servers have reported, and at how many of them the digests differ.
func (d digests) count() (compared, differing int) {
	for _, reported := range d {
		servers := 0
		for _, by := range reported {
			servers += len(by)
		}
		if servers > 1 {
			compared++
		}
		if len(reported) > 1 {
			differing++
		}
	}
	return compared, differing
}

// collectDigests reads the digests of all servers, and checks that none has counted a mismatch with its leader. The
// result says how many servers have reported each zxid now.
func (s *takeover) collectDigests() map[string]int {
	s.t.Helper()
	s.sameDigests()
	now := map[string]int{}
	for i, server := range s.e.Servers {
		text, err := server.Word("hash")
		s.must(err)
		for line := range strings.Lines(text) {
			zxid, digest, found := strings.Cut(strings.TrimSpace(line), ": ")
			if !found {
				s.t.Fatalf("server %d reports %q as a digest", i+1, line)
			}
			s.reports.add(zxid, digest, fmt.Sprintf("server %d, %s", i+1, server.Kind))
			now[zxid]++
		}
	}
	return now
}

// awaitSameDigest waits until all servers have reported the digest at a zxid that is not among those known before.
func (s *takeover) awaitSameDigest(known map[string]bool) {
	s.t.Helper()
	for end := time.Now().Add(waitMax); ; <-time.After(20 * time.Millisecond) {
		for zxid, n := range s.collectDigests() {
			if n == len(s.e.Servers) && !known[zxid] {
				return
			}
		}
		if time.Now().After(end) {
			s.t.Fatalf("within %v the servers report no further digest at the same zxid", waitMax)
		}
	}
}

// TestTallyOfTakeover shows that each counter of a takeover fails its test.
func TestTallyOfTakeover(t *testing.T) {
	good := func() *tally {
		return &tally{writes: 9, sessions: 9, turns: 9, compared: 9, errors: map[string]int{"kazoo: ConnectionLoss": 2},
			steps: []step{{server: 1}, {server: 2, leads: true, elections: 1}}}
	}
	if wrong := good().wrong(); wrong != nil {
		t.Errorf("wrong: %q", wrong)
	}
	for want, change := range map[string]func(*tally){
		"1 acknowledged writes are lost":      func(c *tally) { c.lost = 1 },
		"2 sessions are lost":                 func(c *tally) { c.ended = 2 },
		"3 recipe faults":                     func(c *tally) { c.faults = 3 },
		"4 digests differ":                    func(c *tally) { c.compared, c.differing = digestsThatDiffer(4) },
		"there were no writes":                func(c *tally) { c.writes = 0 },
		"there were no sessions":              func(c *tally) { c.sessions = 0 },
		"there were no turns of holders":      func(c *tally) { c.turns = 0 },
		"there were no digests":               func(c *tally) { c.compared = 0 },
		"there were no steps":                 func(c *tally) { c.steps = nil },
		"1 elections while server 1 was repl": func(c *tally) { c.steps[0].elections = 1 },
		"0 elections while server 2 was repl": func(c *tally) { c.steps[1].elections = 0 },
		"2 elections while server 2 was repl": func(c *tally) { c.steps[1].elections = 2 },
		"5 errors that do not tell of a lost connection: kazoo: BadVersionError": func(c *tally) { c.errors["kazoo: BadVersionError"] = 5 },
	} {
		c := good()
		change(c)
		if wrong := c.wrong(); len(wrong) != 1 || !strings.HasPrefix(wrong[0], want) {
			t.Errorf("want %q, got %q", want, wrong)
		}
	}
}

// digestsThatDiffer counts n digests that differ and one that does not.
func digestsThatDiffer(n int) (compared, differing int) {
	d := digests{}
	for i := range n + 1 {
		d.add(fmt.Sprint(i), "7", "server 1")
		d.add(fmt.Sprint(i), fmt.Sprint(7+i), "server 2")
	}
	d.add("80", "9", "server 1")
	return d.count()
}
