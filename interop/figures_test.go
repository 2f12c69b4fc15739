package interop

import (
	"context"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// These tests compare what operators read from both kinds of ensembles: the names of mntr,
// except for the lists in docs/differences.md, and the lines of the other words.

// figuresTimeout bounds the start of an ensemble and each request to it.
const figuresTimeout = 4 * time.Minute

// said holds the answer of a server of each role to each word.
type said map[string]map[string]string

var operatorWords = []string{"mntr", "srvr", "stat", "conf", "cons", "dump", "wchs", "isro", "ruok"}

// ensembleAnswers starts an ensemble of three voters and an observer, sends each a few equal
// requests, and returns their answers.
func ensembleAnswers(t *testing.T, kind target.Kind) said {
	t.Helper()
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: slices.Repeat([]target.Kind{kind}, 4), Observers: 1,
		Extra: map[string]string{"tickTime": "2000", "initLimit": "60", "syncLimit": "30"}})
	roles := awaitRoles(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), figuresTimeout)
	defer cancel()
	for i, s := range e.Servers {
		c, err := zk.Connect(ctx, s.Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		work(ctx, t, c, fmt.Sprintf("/s%d", i))
	}
	all := said{}
	for i, s := range e.Servers {
		all[roles[i]] = map[string]string{}
		for _, word := range operatorWords {
			text, err := s.Word(word)
			if err != nil || text == "" {
				t.Fatalf("%s of %s: %q, %v", word, kind, text, err)
			}
			all[roles[i]][word] = text
		}
	}
	return all
}

// awaitRoles waits until all servers serve.
func awaitRoles(t *testing.T, e *target.Ensemble) []string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(figuresTimeout); ; <-tick.C {
		roles := e.Roles()
		sorted := slices.Sorted(slices.Values(roles))
		if slices.Equal(sorted, []string{"follower", "follower", "leader", "observer"}) {
			return roles
		}
		if time.Now().After(end) {
			t.Fatalf("roles are %q", roles)
		}
	}
}

// work sends one request of each kind.
func work(ctx context.Context, t *testing.T, c *zk.Client, path string) {
	t.Helper()
	_, _, err := c.Create(ctx, path, []byte("x"))
	if err == nil {
		_, _, _, err = c.GetW(ctx, path)
	}
	if err == nil {
		_, err = c.Set(ctx, path, []byte("yy"), -1)
	}
	if err == nil {
		_, _, _, err = c.ExistsW(ctx, path+"-not")
	}
	if err == nil {
		_, _, err = c.Create(ctx, path+"/e", nil, zk.Ephemeral)
	}
	if err == nil {
		err = c.Sync(ctx, "/")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEnsembleFigures compares the answers of both kinds of ensembles on a leader, a follower
// and an observer.
func TestEnsembleFigures(t *testing.T) {
	t.Parallel()
	theirs, ours := ensembleAnswers(t, target.Apache), ensembleAnswers(t, target.Bellwether)
	left, added := listedFigures(t, leftOutSection), listedFigures(t, addedSection)
	for _, role := range []string{"leader", "follower", "observer"} {
		compareFigures(t, role, theirs[role]["mntr"], ours[role]["mntr"], left, added)
		for _, word := range operatorWords[1:] {
			their, our := form(theirs[role][word]), form(ours[role][word])
			if their != our {
				t.Errorf("%s of a %s:\n%s\nApache ZooKeeper has\n%s", word, role, our, their)
			}
		}
	}
	for pattern, met := range left {
		if !met {
			t.Errorf("docs/differences.md: %s matches no figure that only Apache ZooKeeper has: remove or correct it", pattern)
		}
	}
	for pattern, met := range added {
		if !met && !target.OtherZooKeeper() {
			t.Errorf("docs/differences.md: %s matches no figure that only Bellwether has: remove or correct it", pattern)
		}
	}
}

// TestStandaloneFigures compares mntr of both kinds of standalone servers after a few
// requests: the names are the same, also of the metrics that only an ensemble changes.
func TestStandaloneFigures(t *testing.T) {
	t.Parallel()
	said := map[target.Kind]string{}
	for _, kind := range target.Kinds() {
		s := target.StartFor(t, kind, target.Options{Extra: map[string]string{"tickTime": "2000"}})
		c, err := zk.Connect(t.Context(), s.Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		work(t.Context(), t, c, "/s")
		if said[kind], err = s.Word("mntr"); err != nil {
			t.Fatal(err)
		}
		if n := figures(said[kind])["zk_cnt_propagation_latency"]; n == "0" || n == "" {
			t.Errorf("%s: zk_cnt_propagation_latency is %q", kind, n)
		}
	}
	if len(said) == 2 {
		compareFigures(t, "standalone server", said[target.Apache], said[target.Bellwether],
			listedFigures(t, leftOutSection), listedFigures(t, addedSection))
	}
}

// Sections of docs/differences.md about metrics that only one kind of server has.
const (
	leftOutSection = "Figures of `mntr` that are not there"
	addedSection   = "Figures of `mntr` that ZooKeeper 3.8.0 does not have"
)

var (
	leftOutRow  = regexp.MustCompile("(?m)^\\| ((?:`[a-z0-9_*]+`(?:, )?)+) \\|")
	leftOutName = regexp.MustCompile("`([a-z0-9_*]+)`")
	statistic   = regexp.MustCompile(`^zk_(?:(?:avg|min|max|cnt|sum|p50|p95|p99|p999)_)?(?:\d+_learner)?`)
	learnerID   = regexp.MustCompile(`_\d+_learner`)
)

// listedFigures returns the names that a section of docs/differences.md lists, none of them
// marked as found.
func listedFigures(t *testing.T, section string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "\n## "+section+"\n")
	rows, _, _ = strings.Cut(rows, "\n## ")
	all := map[string]bool{}
	for _, row := range leftOutRow.FindAllStringSubmatch(rows, -1) {
		for _, name := range leftOutName.FindAllStringSubmatch(row[1], -1) {
			all[name[1]] = false
		}
	}
	if len(all) == 0 {
		t.Fatalf("docs/differences.md lists no figures under %q", section)
	}
	return all
}

// compareFigures compares names and notation. Metrics that docs/differences.md lists may be
// missing or additional; left and added record which of them were found.
func compareFigures(t *testing.T, role, theirs, ours string, left, added map[string]bool) {
	t.Helper()
	their, our := figures(theirs), figures(ours)
	for name, value := range their {
		got, there := our[name]
		switch excepted := excepts(left, name, !there); {
		case there && excepted:
			t.Errorf("a %s has %s, but docs/differences.md says that it does not", role, name)
		case !there && !excepted:
			t.Errorf("a %s lacks %s: add it, or list it in docs/differences.md", role, name)
		case there && isNumber(value) && strings.Contains(value, ".") != strings.Contains(got, "."):
			t.Errorf("a %s has %s=%s, Apache ZooKeeper %s", role, name, got, value)
		}
	}
	for name := range our {
		if _, there := their[name]; !excepts(added, name, !there) && !there {
			t.Errorf("a %s has %s, which Apache ZooKeeper does not have: list it in docs/differences.md", role, name)
		}
	}
}

// excepts reports whether a list contains a metric, and marks it there as found.
func excepts(list map[string]bool, name string, met bool) bool {
	excepted := false
	for pattern := range list {
		if fits, _ := path.Match(pattern, statistic.ReplaceAllString(name, "")); fits {
			excepted, list[pattern] = true, list[pattern] || met
		}
	}
	return excepted
}

func isNumber(v string) bool { return v != "" && strings.Trim(v, "0123456789.-") == "" }

// figures returns the lines of mntr, without those of single learners.
func figures(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		m[learnerID.ReplaceAllString(name, "_N_learner")] = value
	}
	return m
}

var formRules = []struct{ what, with string }{
	{`(?m)^Zookeeper version: .*`, `Zookeeper version: VERSION`},
	{`(?m)^(data(?:Log)?Dir)=.*`, `$1=DIR`},
	{`(?m)^.*\[0\]\(queued=.*\n`, ``}, // removes the connections on which the words were sent
	{`[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [A-Z]+ \d{4}`, `DATE`},
	{`0x[0-9a-f]+`, `HEX`},
	{`lop=[A-Z]+`, `lop=OP`}, // a ping may have arrived meanwhile, which changes the last operation
	{`\d+\.\d+\.\d+\.\d+:\d+`, `ADDRESS`},
	{`\d+`, `N`},
}

// form returns a word's answer without varying parts, with each kind of line once.
func form(text string) string {
	for _, r := range formRules {
		text = regexp.MustCompile(r.what).ReplaceAllString(text, r.with)
	}
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
