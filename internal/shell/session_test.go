package shell

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func testSession() *session { return newSession(*newApp(), nil) }

// TestShellPage shows that docs/shell.md lists exactly the commands of the shell.
func TestShellPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/shell.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Commands\n")
	table, _, _ = strings.Cut(table, "\nA test compares")
	var listed []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			listed = append(listed, strings.Trim(name, " `"))
		}
	}
	have := []string{"version"} // the program adds it
	for _, c := range testSession().tree().Commands() {
		have = append(have, c.Name())
	}
	slices.Sort(listed)
	slices.Sort(have)
	if !slices.Equal(listed, have) {
		t.Errorf("docs/shell.md lists\n%v\nthe shell has\n%v", listed, have)
	}
}

// TestZkCLICommands shows that the shell has the commands of ZooKeeper's CLI 3.9, with their options.
func TestZkCLICommands(t *testing.T) {
	tree := testSession().tree()
	for name, options := range map[string]string{
		"addWatch": "m", "addauth": "", "close": "", "config": "cws", "connect": "", "create": "sect", "delete": "v", "deleteall": "b",
		"delquota": "nbNB", "get": "swbx", "getAcl": "s", "getAllChildrenNumber": "", "getEphemerals": "", "history": "", "listquota": "",
		"ls": "swR", "printwatches": "", "quit": "", "reconfig": "sv", "redo": "", "removewatches": "cdpral", "set": "svb", "setAcl": "svR",
		"setquota": "nbNB", "stat": "w", "sync": "", "whoami": "",
	} {
		c, _, err := tree.Find([]string{name})
		if err != nil || c == tree {
			t.Errorf("no command %s", name)
			continue
		}
		for _, o := range options {
			if c.Flags().ShorthandLookup(string(o)) == nil {
				t.Errorf("%s has no option -%c", name, o)
			}
		}
		for _, line := range strings.Split(c.Example, "\n") {
			if strings.Contains(line, "bellwether") {
				t.Errorf("%s: the example %q is one of another shell", name, line)
			}
		}
	}
}

// TestSecrets shows which lines the history does not keep.
func TestSecrets(t *testing.T) {
	for line, want := range map[string]bool{
		"addauth digest ann:secret": true, "  ADDAUTH digest x": true, "adauth digest ann:x": true, "addauht x": true,
		"redo digest ann:x": true, "ls --auth digest:ann:x /": true, "get --sasl-password-file f": true, `addauth "open`: true,
		"addWatch /a": false, "ls /": false, "create /a digest": false, "setAcl /a digest:ann:hash=:r": false, "history": false,
	} {
		if got := hasSecret(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
	if got := withoutSecrets("addauth digest ann:secret"); got != "addauth ****" {
		t.Error(got)
	}
}

// TestModern shows how old forms of commands are rewritten, and what is left as it is.
func TestModern(t *testing.T) {
	for line, want := range map[string]string{
		"ls2 /a": "ls -s /a", "rmr /a": "deleteall /a", "get /a true": "get /a -w", "ls /a watch": "ls /a -w",
		"stat -o json /a watch": "stat -o json /a -w", "delete /a 3": "delete /a -v 3", "delete -v 3 /a": "delete -v 3 /a",
		"get -s /a": "get -s /a", "set /a 3": "set /a 3",
	} {
		got, notice := modern(strings.Fields(line))
		if strings.Join(got, " ") != want || (notice == "") != (line == want) {
			t.Errorf("%q: %q, %q; want %q", line, got, notice, want)
		}
	}
}

// TestZkInvocation shows that the options of zkCli.sh work, and that those of a command are left alone.
func TestZkInvocation(t *testing.T) {
	for line, want := range map[string]string{
		"shell -server h:1 -timeout 5000 ls -s /":        "shell --server h:1 --session-timeout 5000ms ls -s /",
		"shell -r -waitforconnection -server h:1":        "shell -r --waitforconnection --server h:1",
		"shell -client-configuration f create -server x": "shell --client-configuration f create -server x",
		"shell -o json --server=h:1 reconfig -add x":     "shell -o json --server=h:1 reconfig -add x",
		"reconfig -add server.2=h:1:2 -remove 1 -v 3":    "reconfig --add server.2=h:1:2 --remove 1 -v 3",
		"create -s /a -add":                              "create -s /a -add",
		"shell --history - --stop -c -server":            "shell --history - --stop -c -server",
	} {
		if got := strings.Join(zkInvocation(strings.Fields(line)), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestComplete shows the candidates for words that need no server.
func TestComplete(t *testing.T) {
	s := testSession()
	for before, want := range map[string]string{
		"getA":              "getAcl getAllChildrenNumber",
		"help getE":         "getEphemerals",
		"help election l":   "log",
		"election ":         "explain handover log",
		"ls -":              "-h -o -R -s -w",
		"ls --w":            "--watch",
		"ls -o ":            "text json",
		"addWatch -m ":      "PERSISTENT PERSISTENT_RECURSIVE",
		"printwatches ":     "on off",
		"get ":              "/",
		"get /none":         "",
		"nothing ":          "",
		`create /a "not fi`: "",
	} {
		from, all := s.complete(before)
		var words []string
		for _, c := range all {
			words = append(words, c.Word)
		}
		if got := strings.Join(words, " "); got != want || from > len(before) {
			t.Errorf("%q: %q, want %q", before, got, want)
		}
	}
	if got := commonPrefix([]string{"aé1", "aè2"}); got != "a" {
		t.Errorf("%q is not a whole character", got)
	}
}

// TestUnclosedQuotation shows when a line continues.
func TestUnclosedQuotation(t *testing.T) {
	for line, want := range map[string]bool{`set /a "x`: true, `set /a "x"`: false, `# it's "open`: false, `set /a "a"b`: false} {
		if unfinished(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
	if err := withTimeouts(testSession()).execute(context.Background(), "ls /"); err != errNotConnected {
		t.Errorf("without a session: %v", err)
	}
}

// withTimeouts gives a session the timeouts that flags would give it.
func withTimeouts(s *session) *session {
	s.timeout = time.Second
	return s
}
