package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// The behaviour suite has one body for each family of rules. Each body runs against both
// servers and records what it sees. The two transcripts must be equal, line by line, except
// for the differences that docs/differences.md lists with a reason. A row there begins with
// a tag in backquotes, and the table of excuses says which lines of which server the tag
// allows. Bodies record zxids, times and session ids relative to the body's start, so that
// they can be compared.

// behaviourTimeout bounds one call; it is reached only on failure.
const behaviourTimeout = 3 * time.Minute

// behaviourSession is the timeout, in milliseconds, of sessions that a body leaves open. They
// must not expire during a later body, which would see the zxids.
const behaviourSession = 30 * 60_000

// seen is one body's view of one server. It records the transcript.
type seen struct {
	t      *testing.T
	ctx    context.Context
	server *target.Server
	zc     *zk.Client
	root   string
	base   wire.Zxid
	blind  bool // zxids are not compared, because sessions may end meanwhile
	// shifted hides all zxids, also those of stats. ZooKeeper 3.9 gives no zxid to writes whose fields
	// it cannot read, unlike 3.8 and Bellwether, so that all later zxids are shifted.
	shifted bool
	lines   []string
}

// say adds a line to the transcript.
func (s *seen) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// result returns an outcome as text: the text of the error code, or ok.
func result(err error) string {
	var code wire.Code
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &code):
		return code.Error()
	}
	return err.Error()
}

// z returns a zxid as its distance from the body's start.
func (s *seen) z(z wire.Zxid) string {
	if z == 0 {
		return "0"
	}
	if s.shifted {
		return "base+0"
	}
	return fmt.Sprintf("base%+d", int64(z-s.base))
}

// stat returns a stat as text, without its times.
func (s *seen) stat(st wire.Stat) string {
	owner := "none"
	switch {
	case st.EphemeralOwner == s.zc.Session().ID:
		owner = "this session"
	case st.EphemeralOwner != 0:
		owner = "another session"
	}
	return fmt.Sprintf("c=%s m=%s p=%s version=%d cversion=%d aversion=%d owner=%s length=%d children=%d",
		s.z(st.Czxid), s.z(st.Mzxid), s.z(st.Pzxid), st.Version, st.Cversion, st.Aversion, owner, st.DataLength, st.NumChildren)
}

// at returns a path below the body's root.
func (s *seen) at(rest string) string { return s.root + rest }

// create creates a znode that the body requires.
func (s *seen) create(rest string, data string, opts ...zk.CreateOption) string {
	s.t.Helper()
	path, _, err := s.zc.Create(s.ctx, s.at(rest), []byte(data), opts...)
	if err != nil {
		s.t.Fatalf("%s: create %s: %v", s.server.Kind, rest, err)
	}
	return path
}

// client opens another session.
func (s *seen) client(o *zk.Options) *zk.Client {
	s.t.Helper()
	c, err := zk.Connect(s.ctx, s.server.Addr, o)
	if err != nil {
		s.t.Fatalf("%s: %v", s.server.Kind, err)
	}
	s.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// behaviours are the bodies, in the order of their runs.
var behaviours = []struct {
	name string
	body func(*seen)
}{
	{"create", seeCreate},
	{"sequence", seeSequence},
	{"delete", seeDelete},
	{"data", seeData},
	{"children", seeChildren},
	{"acl", seeACL},
	{"odd ACLs", seeOddACLs},
	{"ACL forms", seeListForms},
	{"auth", seeAuth},
	{"credentials", seeCredentials},
	{"multi", seeMulti},
	{"multi failing", seeMultiFailing},
	{"multiRead", seeMultiRead},
	{"watch", seeWatch},
	{"watch order", seeWatchOrder},
	{"persistent watch", seePersistentWatch},
	{"watch removal", seeWatchRemoval},
	{"ephemerals", seeEphemerals},
	{"containers and TTLs", seeContainers},
	{"quota", seeQuota},
	{"quota texts", seeQuotaTexts},
	{"built-in nodes", seeBuiltIn},
	{"reconfig", seeReconfig},
	{"resume", seeResume},
	{"raw paths", seeRawPaths},
	{"raw requests", seeRawRequests},
	{"raw cut writes", seeCutWrites},
	{"raw null fields", seeNullFields},
	{"raw cut logins", seeCutLogins},
	{"raw handshake", seeRawHandshake},
	{"raw headers", seeRawHeaders},
	{"raw setWatches", seeRawSetWatches},
	{"null ids", seeNullIDs},
	{"raw null watches", seeNullWatches},
	{"random requests", seeRandomRequests},
	{"words", seeWords},
}

// TestBehaviourIsTheSame runs every body against both servers and compares the transcripts.
func TestBehaviourIsTheSame(t *testing.T) {
	t.Parallel()
	listed := listedDifferences(t)
	servers := map[target.Kind]*target.Server{}
	for _, kind := range target.Kinds() {
		servers[kind] = target.StartFor(t, kind, target.Options{Reap: noReap, Extra: map[string]string{
			"enforceQuota": "true", "tickTime": "5000", "maxSessionTimeout": strconv.Itoa(behaviourSession), // two ticks, which is the shortest session timeout
		}})
	}
	used := map[string]bool{}
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			saw := map[target.Kind][]string{}
			for _, kind := range target.Kinds() {
				saw[kind] = observe(t, servers[kind], b.name, b.body)
			}
			if len(saw) == 2 {
				compare(t, b.name, saw[target.Apache], saw[target.Bellwether], listed, used)
			} else {
				for kind, lines := range saw {
					t.Logf("%s alone:\n%s", kind, strings.Join(lines, "\n"))
				}
			}
		})
	}
	for _, d := range excused {
		if len(target.Kinds()) == 2 && !t.Failed() && !target.OtherZooKeeper() && !used[d.tag] && d.body != readOnlyBody && d.body != watchWordsBody {
			t.Errorf("the difference %q did not occur: if it no longer exists, remove it from excused", d.tag)
		}
	}
}

// observe runs one body against one server and returns its transcript.
func observe(t *testing.T, server *target.Server, name string, body func(*seen)) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*behaviourTimeout)
	defer cancel()
	zc, err := zk.Connect(ctx, server.Addr, &zk.Options{SessionTimeout: electionTimeout})
	if err != nil {
		t.Fatalf("%s: %v", server.Kind, err)
	}
	defer zc.Close(context.Background())
	root := "/" + strings.ReplaceAll(name, " ", "-")
	_, stat, err := zc.Create(ctx, root, nil)
	if err != nil {
		t.Fatalf("%s: %v", server.Kind, err)
	}
	s := &seen{t: t, ctx: ctx, server: server, zc: zc, root: root, base: stat.Czxid}
	body(s)
	return s.lines
}

// excuse is an intended difference: the affected lines of a body, as patterns for Apache
// ZooKeeper 3.8.0 and for Bellwether. The text that the first group of the two patterns
// matches must be equal.
type excuse struct {
	tag                string // the tag of the row in docs/differences.md
	body               string
	apache, bellwether *regexp.Regexp
}

// excuseOf returns an excuse; an empty body means any body.
func excuseOf(tag, body, apache, bellwether string) excuse {
	return excuse{tag, body, regexp.MustCompile("^(?:" + apache + ")$"), regexp.MustCompile("^(?:" + bellwether + ")$")}
}

// compare fails the test for each line in which the two transcripts differ, unless the difference is listed.
func compare(t *testing.T, body string, apache, ours []string, listed map[string]bool, used map[string]bool) {
	t.Helper()
	for i := range max(len(apache), len(ours)) {
		a, b := line(apache, i), line(ours, i)
		if a == b {
			continue
		}
		tag := excuseFor(body, a, b)
		if tag == "" || !listed[tag] {
			t.Errorf("line %d differs (excuse %q, listed: %v)\napache:     %s\nbellwether: %s", i+1, tag, listed[tag], a, b)
			continue
		}
		used[tag] = true
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

func excuseFor(body, apache, ours string) string {
	known := excused
	if target.OtherZooKeeper() {
		known = slices.Concat(excused, excusedLater)
	}
	for _, d := range known {
		a, b := d.apache.FindStringSubmatch(apache), d.bellwether.FindStringSubmatch(ours)
		if (d.body == "" || d.body == body) && a != nil && b != nil && a[1] == b[1] {
			return d.tag
		}
	}
	return ""
}

// listedDifferences reads the tags of docs/differences.md.
func listedDifferences(t *testing.T) map[string]bool {
	t.Helper()
	f, err := os.Open("../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tag := regexp.MustCompile("^\\| `([a-z0-9-]+)` \\| [^|]+ \\| [^|]+ \\| [^|]+ \\|$")
	tags := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if m := tag.FindStringSubmatch(lines.Text()); m != nil {
			tags[m[1]] = true
		}
	}
	for _, d := range slices.Concat(excused, excusedLater) {
		if !tags[d.tag] {
			t.Errorf("docs/differences.md has no complete row for %q", d.tag)
		}
	}
	return tags
}

// sorted returns the names in sorted order.
func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
