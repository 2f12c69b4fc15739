package ensemble

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// alone is the membership in which ZooKeeper recorded the changes.
const alone = "server.1=127.0.0.1:31888:32888:participant;127.0.0.1:33888"

// stricter are the recorded changes that ZooKeeper accepts and this package refuses, by a
// part of the change, with a part of the reason.
var stricter = map[string]string{
	"server.2=127.0.0.1:31888:32888:observer;2182":                                           "same address 127.0.0.1:31888",
	"server.2=10.0.0.2:2888:3888:observer;10.0.0.2:2888":                                     "port 2888 both",
	"server.2=10.0.0.2:2888:3888:observer;2888":                                              "port 2888 both",
	"\nserver.2=10.0.0.2:2888:3888:observer;2181\nserver.3=10.0.0.2:2888:3888:observer;2181": "same address 10.0.0.2:2888",
}

// TestRecordedChanges: each change that ZooKeeper 3.8.0 was asked for has the same result
// here: the same text, or a refusal. The file holds joining, leaving, the whole membership,
// the error code and the text. -13 (no quorum of the new servers is connected) is no
// refusal of this package.
func TestRecordedChanges(t *testing.T) {
	file, err := os.ReadFile("testdata/reconfig-3.8.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	before, err := Parse(alone)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(file)), "\n")
	for _, line := range lines {
		var c Change
		var whole, want string
		var code int
		if _, err := fmt.Sscanf(line, "%q %q %q %d %q", &c.Joining, &c.Leaving, &whole, &code, &want); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if c.VotersMin = 1; whole != "" {
			c.Whole = &whole
		}
		got, err := before.Apply(c, 7)
		reason, strict := stricter[c.Joining+strings.TrimPrefix(whole, alone)]
		switch {
		case strict:
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v, want %q", line, err, reason)
			}
		case code == -8 || code == -5 || strings.Contains(whole, "weight.1=0"):
			if err == nil {
				t.Errorf("%s: accepted as %q", line, got)
			}
		case err != nil:
			t.Errorf("%s: %v", line, err)
		case code == 0 && got.String() != want[:strings.LastIndexByte(want, '=')]+"=7":
			t.Errorf("%s: got %q", line, got)
		}
	}
	if len(lines) < 30 {
		t.Errorf("only %d changes", len(lines))
	}
}

// TestRefusedChanges: the error names the rule that a change breaks.
func TestRefusedChanges(t *testing.T) {
	three := "server.1=a:1:2;3\nserver.2=b:1:2;3\nserver.3=c:1:2;3"
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		before string
		change Change
		want   string
	}{
		{three, Change{Leaving: "1,2,3"}, "0 voters, and needs at least 2"},
		{three, Change{Leaving: "1, 2"}, "1 voters, and needs at least 2"},
		{three, Change{Whole: text("server.1=a:1:2:observer;3")}, "0 voters"},
		{three, Change{Whole: text("")}, "0 voters"},
		{three, Change{Joining: "server.4=a:1:9;7"}, "server 1 and server 4 have the same address a:1"},
		{three, Change{Joining: "server.4=a:7:1;8"}, "server 1 and server 4 have the same address a:1"},
		{three, Change{Joining: "server.4=d:1:2;1"}, "server 4 uses port 1 both"},
		{three, Change{Joining: "server.4=d:1:1;5"}, "they must differ"},
		{three, Change{Joining: "server.4=d:1:2"}, "joining server 4 has no client port"},
		{three, Change{Joining: "server.4"}, "does not have the form"},
		{three, Change{Joining: "server.9223372036854775807=d:1:2;3"}, "observers without an id"},
		{three, Change{Leaving: "-1"}, "is not a number of 0 or more"},
		{three, Change{Whole: text(three + "\ngroup.1=1:2")}, "server 3 is in no group"},
		{three, Change{Whole: text(three + "\nweight.1=2")}, "weights are given but no groups"},
		{three + "\ngroup.1=1:2:3", Change{Leaving: "1"}, "has groups"},
	} {
		before, err := Parse(c.before)
		if err != nil {
			t.Fatal(err)
		}
		c.change.VotersMin = 2
		if got, err := before.Apply(c.change, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v, want %q", c.change, got, err, c.want)
		}
	}
}

// TestCheckOfAChange: without the present membership, an error is one that it cannot mend.
func TestCheckOfAChange(t *testing.T) {
	bad, good := "server.1=a", "server.1=a:1:2;3"
	for _, c := range []struct {
		change Change
		want   string
	}{
		{Change{Leaving: "4, 5", Joining: "server.6=a:1:2;3"}, ""},
		{Change{Leaving: "four"}, "leaving server \"four\" is not a number of 0 or more"},
		{Change{Joining: "server.4=d:1:2"}, "joining server 4 has no client port"},
		{Change{Whole: &good}, ""},
		{Change{Whole: &bad}, "does not have the form"},
	} {
		if err := c.change.Check(); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.change, err, c.want)
		}
	}
}

// TestDynamicFiles: names and contents are those of ZooKeeper.
func TestDynamicFiles(t *testing.T) {
	m, err := Parse("server.10=a:1:2;3\nserver.2=b:1:2:observer;3\nversion=100000016")
	if err != nil {
		t.Fatal(err)
	}
	want := "server.10=a:1:2:participant;0.0.0.0:3\nserver.2=b:1:2:observer;0.0.0.0:3"
	if got := m.FileText(false); got != want {
		t.Errorf("%q", got)
	}
	if got := m.FileText(true); got != want+"\nversion=100000016" {
		t.Errorf("%q", got)
	}
	if got := m.FileName("/x/zoo.cfg") + " " + NextFileName("/x/zoo.cfg"); got != "/x/zoo.cfg.dynamic.100000016 /x/zoo.cfg.dynamic.next" {
		t.Error(got)
	}
}

// TestStaticText: the lines that a dynamic file replaces disappear, and everything else
// means the same as before.
func TestStaticText(t *testing.T) {
	before := "# text\ntickTime=200\nserver.1=a:1:2;3\n group.1 : 1\nweight.1=1\npeerType=observer\nclientPort=3\n" +
		"clientPortAddress=h\ndynamicConfigFile=/old\ndataDir=C\\:\\\\d\\u00e9\\ud83d\\ude00\ntickTime=300\na\\ b\\==x = y\n"
	for _, client := range []bool{true, false} {
		text, err := StaticText(before, "/etc/zoo.cfg.dynamic.5", client)
		if err != nil {
			t.Fatal(err)
		}
		after, err := ReadProperties(text)
		if err != nil {
			t.Fatal(err)
		}
		want := "dataDir=C:\\d\u00e9\U0001f600|tickTime=300|a b==x = y|dynamicConfigFile=/etc/zoo.cfg.dynamic.5|"
		if !client {
			want = "clientPort=3|clientPortAddress=h|" + want
		}
		got := ""
		for _, p := range after {
			got += p.Key + "=" + p.Value + "|"
		}
		if got != want {
			t.Errorf("%q\n%q", got, want)
		}
		if v := FileVersion(after[len(after)-1].Value); v != 5 {
			t.Errorf("version %d", v)
		}
		if !strings.HasSuffix(text, "\ndynamicConfigFile=/etc/zoo.cfg.dynamic.5\n") {
			t.Errorf("%q", text)
		}
	}
}
