package preflight

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
)

// TestGroupsAndWeightsAreCompared shows that servers whose quorums differ from those of zoo.cfg prevent a takeover, and
// that the order of lines and ids, and a weight of 1 that is left out, are no difference.
func TestGroupsAndWeightsAreCompared(t *testing.T) {
	const three = "group.1=1\ngroup.2=2\ngroup.3=3\n"
	for name, test := range map[string]struct {
		zoo, running string
		same         bool
	}{
		"no groups":                     {"", "", true},
		"equal groups":                  {three, three, true},
		"another order":                 {"group.1=1:2:3\n", "group.1=3:1:2\n", true},
		"other lines first":             {three, "weight.2=1\ngroup.3=3\ngroup.2=2\ngroup.1=1\n", true},
		"a weight of 1 is left out":     {three + "weight.1=1\n", three + "weight.1=1\nweight.2=1\nweight.3=1\n", true},
		"groups in zoo.cfg only":        {three, "", false},
		"groups of the servers only":    {"", three, false},
		"a server in another group":     {"group.1=1:2\ngroup.2=3\n", "group.1=1\ngroup.2=2:3\n", false},
		"another weight":                {three + "weight.1=5\n", three + "weight.1=1\n", false},
		"a weight in zoo.cfg only":      {three + "weight.3=0\n", three, false},
		"a weight of the servers alone": {three, three + "weight.3=0\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := memberOf(t, test.zoo)
			all := map[string]scripted{"a:2181": healthy(c, 1), "b:2181": healthy(c, 2), "c:2181": healthy(c, 3)}
			for _, s := range all {
				s["conf"] = strings.Replace(s["conf"], "version=0", test.running+"version=0", 1)
			}
			got := NewLive(c, Ask(t.Context(), ask(all), Servers(c))).Judge()
			if differ := finds(got, Prevents, "b:2181", "its members are server.1="); differ == test.same {
				t.Errorf("findings: %+v", got)
			}
		})
	}
}

// TestObserversHaveNoWeight shows that the weight of an observer is no difference: it never votes.
func TestObserversHaveNoWeight(t *testing.T) {
	parse := func(text string) string {
		t.Helper()
		m, err := ensemble.Parse("server.1=a:1:2:participant\nserver.2=b:1:2:observer\ngroup.1=1\n" + text + "version=0")
		if err != nil {
			t.Fatal(err)
		}
		return memberLines(m, func(ensemble.Server) bool { return false })
	}
	if got, want := parse("weight.2=0\n"), parse(""); got != want {
		t.Errorf("%s\nis not %s", got, want)
	}
}

// TestWildcardOfTheServerItself shows that a server line with a wildcard is equal to one with the real host if the server
// itself has it: in zoo.cfg for server 1, and in what another server says of itself. Elsewhere it is a difference, and so
// are other ports and roles.
func TestWildcardOfTheServerItself(t *testing.T) {
	for name, test := range map[string]struct {
		zoo      string // a line of zoo.cfg that replaces an earlier one
		server   string // this server says now in place of old
		old, now string
		differ   bool
	}{
		"in zoo.cfg":                      {zoo: "server.1=0.0.0.0:2888:3888;2181\n"},
		"in zoo.cfg, IPv6":                {zoo: "server.1=[::]:2888:3888;2181\n"},
		"with another port":               {zoo: "server.1=0.0.0.0:2889:3888;2181\n", differ: true},
		"with another role":               {zoo: "server.1=0.0.0.0:2888:3888:observer;2181\n", differ: true},
		"of this server":                  {server: "a:2181", old: "server.1=a:", now: "server.1=0.0.0.0:"},
		"of another server":               {server: "b:2181", old: "server.2=b:", now: "server.2=[0:0:0:0:0:0:0:0]:"},
		"in zoo.cfg, of another server":   {zoo: "server.2=0.0.0.0:2888:3888;2181\n", differ: true},
		"in a server, of another one":     {server: "c:2181", old: "server.2=b:", now: "server.2=0.0.0.0:", differ: true},
		"in a server, of this one":        {server: "c:2181", old: "server.1=a:", now: "server.1=0.0.0.0:", differ: true},
		"no wildcard, and another host":   {server: "a:2181", old: "server.1=a:", now: "server.1=x:", differ: true},
		"one of two, and another address": {zoo: "server.1=0.0.0.0:2888:3888;2181\nserver.2=x:2888:3888;2181\n", differ: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := memberOf(t, test.zoo)
			all := map[string]scripted{"a:2181": healthy(c, 1), "b:2181": healthy(c, 2), "c:2181": healthy(c, 3)}
			if test.server != "" {
				all[test.server]["conf"] = strings.Replace(all[test.server]["conf"], test.old, test.now, 1)
			}
			got := NewLive(c, Ask(t.Context(), ask(all), addresses)).Judge()
			if differ := finds(got, Prevents, test.server, "its members are server.1="); differ != test.differ {
				t.Errorf("findings: %+v", got)
			}
		})
	}
}

// TestUnreadableMembers shows that members that cannot be read leave the verdict unknown, and are not equal to those of
// zoo.cfg.
func TestUnreadableMembers(t *testing.T) {
	for name, change := range map[string]func(conf string) string{
		"no members":        func(conf string) string { return conf[:strings.Index(conf, "membership: ")] },
		"a form of its own": func(conf string) string { return strings.Replace(conf, "participant", "witness", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			c := memberOf(t, "")
			all := map[string]scripted{"a:2181": healthy(c, 1), "b:2181": healthy(c, 2), "c:2181": healthy(c, 3)}
			all["b:2181"]["conf"] = change(all["b:2181"]["conf"])
			got := NewLive(c, Ask(t.Context(), ask(all), Servers(c))).Judge()
			if !finds(got, Unseen, "b:2181", "its answer to conf has no members that can be read") {
				t.Errorf("findings: %+v", got)
			}
		})
	}
}
