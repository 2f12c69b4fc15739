package ensemble

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) *Membership {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGoldenTexts shows that a text in canonical form is parsed and printed as the same
// bytes. The first text was read from /zookeeper/config of an ensemble of ZooKeeper 3.8.0.
func TestGoldenTexts(t *testing.T) {
	for _, name := range []string{"ensemble", "ipv6", "hierarchical"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := parse(t, string(text)).String(); got != string(text) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, text)
		}
	}
}

// TestTextIsSortedByNumber shows the order of the canonical form, in which the
// version comes last.
func TestTextIsSortedByNumber(t *testing.T) {
	m := parse(t, "version=1f\nserver.10=c:1:2\nserver.2=b:1:2;2181\nserver.1=a:1:2")
	want := "server.1=a:1:2:participant\nserver.2=b:1:2:participant;0.0.0.0:2181\nserver.10=c:1:2:participant\nversion=1f"
	if got := m.String(); got != want {
		t.Errorf("got %q", got)
	}
}

// TestParseRefuses shows the error of each wrong text, with its line.
func TestParseRefuses(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"unknown key", "server.1=a:1:2\ntickTime=2000", "line 2: tickTime=2000: unrecognised"},
		{"bad id", "server.x=a:1:2", `server "x" is not a number`},
		{"negative id", "server.-1=a:1:2", "is not a number of 0 or more"},
		{"same id written twice", "server.1=a:1:2\nserver.01=b:1:2", "server 1 is defined twice"},
		{"bad version", "version=xyz", "is not a hexadecimal version"},
		{"negative version", "version=-1", "is not a hexadecimal version"},
		{"group without number", "group=1:2", `group "" is not a number`},
		{"bad member", "group.1=1:b", `member "b" is not a number`},
		{"bad weight", "weight.1=heavy", "a weight is a number from 0"},
		{"negative weight", "weight.1=-2", "a weight is a number from 0"},
		{"weights without groups", "server.1=a:1:2\nweight.1=2", "weights are given but no groups"},
		{"not in a group", "server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1", "server 2 is in no group"},
		{"in two groups", "server.1=a:1:2\ngroup.1=1\ngroup.2=1", "server 1 is in group 1 and in group 2"},
		{"twice in a group", "server.1=a:1:2\ngroup.1=1:1", "server 1 is in group 1 and in group 1"},
		{"group twice", "server.1=a:1:2\ngroup.1=1\ngroup.01=1", "group 1 is defined twice"},
		{"weight twice", "server.1=a:1:2\ngroup.1=1\nweight.1=1\nweight.01=1", "given twice"},
		{"unknown member", "server.1=a:1:2\ngroup.1=1:9", "group 1 names server 9, which has no server line"},
		{"unknown weight", "server.1=a:1:2\ngroup.1=1\nweight.9=1", "weight given for server 9"},
		{"observer in a group", "server.1=a:1:2\nserver.2=b:1:2:observer\ngroup.1=1:2", "server 2, an observer"},
		{"no weight at all", "server.1=a:1:2\ngroup.1=1\nweight.1=0", "no group has a weight above 0"},
		{"broken escape", "server.1=\\u1", "four hexadecimal digits"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestNewRefuses shows mistakes that are possible in code but not in the text of a configuration.
func TestNewRefuses(t *testing.T) {
	many := make([]Server, 256)
	for i := range many {
		many[i] = Server{ID: ServerID(i), Addresses: []Address{{"a", 1, 2}}}
	}
	cases := []struct {
		want string
		d    Definition
	}{
		{"256 servers", Definition{Servers: many}},
		{"is negative", Definition{Version: -1}},
		{"server id -1 is negative", Definition{Servers: []Server{{ID: -1}}}},
		{"server 1 has no address", Definition{Servers: []Server{{ID: 1}}}},
		{"weight -1 of server 1", Definition{Servers: many[1:2], Groups: map[GroupID][]ServerID{1: {1}}, Weights: map[ServerID]int64{1: -1}}},
	}
	for _, c := range cases {
		if _, err := New(c.d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestMembers shows how servers, voters and versions are looked up, and that SameMembers
// ignores versions.
func TestMembers(t *testing.T) {
	m := parse(t, "server.3=c:1:2:observer\nserver.1=a:1:2\nserver.2=b:1:2\nversion=100000005")
	if !slices.Equal(m.Voters(), []ServerID{1, 2}) || len(m.Servers()) != 3 {
		t.Errorf("voters %v of %d servers", m.Voters(), len(m.Servers()))
	}
	if s, ok := m.Server(3); !ok || s.Role != Observer {
		t.Errorf("server 3: %v %v", s, ok)
	}
	if _, ok := m.Server(4); ok || m.IsVoter(3) || !m.IsVoter(2) {
		t.Error("membership of 2, 3 or 4 wrong")
	}
	next := m.WithVersion(0x100000006)
	if m.Version() != 0x100000005 || next.Version() != 0x100000006 || !m.SameMembers(next) {
		t.Errorf("versions %x and %x", m.Version(), next.Version())
	}
	if m.SameMembers(parse(t, "server.1=a:1:2")) {
		t.Error("different members pass for the same")
	}
}

// TestLastDuplicateCounts shows that a repeated key replaces the earlier line.
func TestLastDuplicateCounts(t *testing.T) {
	m := parse(t, "server.1=broken\nserver.1=a:1:2\n")
	if got := m.String(); got != "server.1=a:1:2:participant\nversion=0" {
		t.Errorf("got %s", got)
	}
}

// TestWarnings shows each thing that is allowed but unwise.
func TestWarnings(t *testing.T) {
	cases := []struct {
		text string
		want []Rule
	}{
		{"server.1=a:1:2", []Rule{OneVoter}},
		{"server.1=a:1:2\nserver.2=b:1:2", []Rule{TwoVoters}},
		{"server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2", nil},
		{"server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2:observer", nil},
		{"server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2", []Rule{EvenVoters}},
		{"server.1=a:1:2\nserver.2=a:3:4\nserver.300=a:5:1", []Rule{LargeID, SharedAddress}},
		{"server.1=0.0.0.0:1:2\nserver.2=0.0.0.0:1:2\nserver.3=c:1:2", nil},
		{"server.1=127.0.0.1:1:2\nserver.2=127.0.0.1:3:2\nserver.3=c:1:2", []Rule{SharedAddress}},
		{"server.1=a:1:2;127.0.0.1:9\nserver.2=b:1:2;127.0.0.1:9\nserver.3=c:1:2;localhost:9", nil},
		{"server.1=a:1:2;x:9\nserver.2=b:1:2;x:9\nserver.3=c:1:2", []Rule{SharedAddress}},
	}
	for _, c := range cases {
		var got []Rule
		for _, w := range parse(t, c.text).Warnings() {
			got = append(got, w.Rule)
			if w.Text == "" {
				t.Errorf("%q: warning %d without text", c.text, w.Rule)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: got %v, want %v", c.text, got, c.want)
		}
	}
}

// FuzzParse shows that no text makes Parse panic. A membership that was parsed is printed as
// a text from which Parse makes the same membership.
func FuzzParse(f *testing.F) {
	f.Add("server.1=[::1]:1:2|b:1:2:observer;[::]:2181\nserver.2=b:3:4\ngroup.1=2\nweight.1=0\nversion=1")
	f.Add("server.1=a:1:2\ngroup.1=1\nweight.1=9")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(m.String())
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, m, err)
		}
		if again.String() != m.String() || !again.SameMembers(m) {
			t.Errorf("%q then %q", m, again)
		}
		m.Warnings()
	})
}
