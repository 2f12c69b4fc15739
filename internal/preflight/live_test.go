package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/store"
	"bellwether/wire"
)

// memberOf returns the configuration of server 1 of an ensemble of three, with an observer if it is asked for.
func memberOf(t *testing.T, extra string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	text := "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=" + dir + "\nserver.1=a:2888:3888;2181\nserver.2=b:2888:3888;2181\nserver.3=c:2888:3888;2181\n" + extra
	for name, content := range map[string]string{"zoo.cfg": text, "myid": "1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "zoo.cfg"), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// scripted answers for a server: the value of each word; an absent word is a lost connection.
type scripted map[string]string

// healthy returns the answers of server 1, 2 or 3 of a healthy ensemble that server 3 leads.
func healthy(c *config.Config, id int) scripted {
	mode, mntr := "follower", ""
	if id == 3 {
		mode, mntr = "leader", "zk_synced_followers\t2\n"
	}
	conf := fmt.Sprintf("tickTime=2000\nmaxClientCnxns=60\nminSessionTimeout=4000\nmaxSessionTimeout=40000\nserverId=%d\n", id)
	if id == 1 {
		conf += "dataDir=" + c.DataDir + "/version-2\ndataLogDir=" + c.DataDir + "/version-2\n"
	}
	conf += "initLimit=10\nsyncLimit=5\nmembership: \nserver.1=a:2888:3888:participant\nserver.2=b:2888:3888:participant\nserver.3=c:2888:3888:participant\nversion=0"
	return scripted{
		"srvr": "Zookeeper version: 3.8.0-abc, built on 2022-02-25\nLatency min/avg/max: 0/0.0/0\nReceived: 1\nSent: 1\nConnections: 1\nOutstanding: 0\nZxid: 0x200000010\nMode: " + mode + "\nNode count: 5\n",
		"conf": conf,
		"mntr": "zk_digest_mismatches_count\t0\n" + mntr,
	}
}

// ask returns the answers of servers by their client addresses.
func ask(servers map[string]scripted) Asker {
	return func(_ context.Context, server, word string) (string, error) {
		if text, ok := servers[server][word]; ok {
			return text, nil
		}
		return "", errors.New("connection refused")
	}
}

// addresses are those of memberOf.
var addresses = []string{"a:2181", "b:2181", "c:2181"}

// TestLiveServers changes one thing in a healthy ensemble and requires the finding about it, and no other one.
func TestLiveServers(t *testing.T) {
	srvr := func(s scripted, old, now string) { s["srvr"] = strings.Replace(s["srvr"], old, now, 1) }
	conf := func(s scripted, old, now string) { s["conf"] = strings.Replace(s["conf"], old, now, 1) }
	for name, test := range map[string]struct {
		change   func(all map[string]scripted)
		severity Severity // empty: no finding
		where    string
		what     string
	}{
		"healthy": {func(map[string]scripted) {}, "", "", ""},
		"an old version": {func(all map[string]scripted) { srvr(all["b:2181"], "3.8.0", "3.4.14") },
			Prevents, "b:2181", "its version is 3.4.14"},
		"a version that is not tested": {func(all map[string]scripted) { srvr(all["b:2181"], "3.8.0", "3.6.3") },
			Warns, "b:2181", "its version is 3.6.3"},
		"a newer version": {func(all map[string]scripted) { srvr(all["b:2181"], "3.8.0", "3.10.1") },
			Warns, "b:2181", "its version is 3.10.1"},
		"a Bellwether server": {func(all map[string]scripted) { srvr(all["b:2181"], "3.8.0-abc", "3.9.5-bellwether-0.1.0") }, "", "", ""},
		"no version": {func(all map[string]scripted) { srvr(all["b:2181"], "3.8.0-abc", "?") },
			Warns, "b:2181", "not one of ZooKeeper"},
		"a server that does not answer": {func(all map[string]scripted) { delete(all, "b:2181") },
			Prevents, "server.2=b:2888:3888:participant;0.0.0.0:2181", "the server does not serve: connection refused"},
		"another member": {func(all map[string]scripted) { conf(all["c:2181"], "server.2=b", "server.2=x") },
			Prevents, "c:2181", "its members are server.1=a:2888:3888:participant server.2=x:2888:3888"},
		"another data directory": {func(all map[string]scripted) { conf(all["a:2181"], "dataDir=", "dataDir=/srv") },
			Prevents, "a:2181", "the running server has dataDir=/srv"},
		"another tick": {func(all map[string]scripted) { conf(all["a:2181"], "tickTime=2000", "tickTime=3000") },
			Warns, "a:2181", "the running server has tickTime=3000, and by zoo.cfg it would be 2000"},
		"another time to begin": {func(all map[string]scripted) { conf(all["b:2181"], "initLimit=10", "initLimit=20") },
			Warns, "b:2181", "the running server has initLimit=20, and by zoo.cfg it would be 10"},
		"another time to follow": {func(all map[string]scripted) { conf(all["b:2181"], "syncLimit=5", "syncLimit=2") },
			Warns, "b:2181", "the running server has syncLimit=2, and by zoo.cfg it would be 5"},
		"an id twice": {func(all map[string]scripted) { conf(all["c:2181"], "serverId=3", "serverId=2") },
			Prevents, "c:2181", "has the id 2, as b:2181 has"},
		"another myid": {func(all map[string]scripted) { conf(all["a:2181"], "serverId=1", "serverId=7") },
			Prevents, "myid", "contains 1, and the running server at a:2181 has the id 7"},
		"digests that differ": {func(all map[string]scripted) { all["b:2181"]["mntr"] = "zk_digest_mismatches_count\t3\n" },
			Prevents, "b:2181", "3 digest mismatches"},
		"a follower that is not caught up": {func(all map[string]scripted) { all["c:2181"]["mntr"] = "zk_synced_followers\t1\n" },
			Prevents, "c:2181", "the leader has 1 followers that are caught up, want 2"},
		"a follower far behind": {func(all map[string]scripted) { srvr(all["c:2181"], "0x200000010", "0x200100010") },
			Warns, "b:2181", "is 1048576 transactions behind the leader"},
		"syncs that wait": {func(all map[string]scripted) { all["c:2181"]["mntr"] += "zk_pending_syncs\t50\n" },
			Warns, "c:2181", "50 requests sync wait"},
		"the end of an epoch": {func(all map[string]scripted) {
			for _, s := range all {
				srvr(s, "0x200000010", "0x2ffffff10")
			}
		}, Warns, "c:2181", "close to the end of its epoch"},
		"words that are not allowed": {func(all map[string]scripted) {
			all["b:2181"]["mntr"] = "mntr is not executed because it is not in the whitelist.\n"
		}, Warns, "b:2181", "the server does not answer mntr"},
		"a read-only server": {func(all map[string]scripted) { srvr(all["a:2181"], "Mode: follower", "Mode: read-only") },
			Prevents, "a:2181", "the server is read-only"},
		"a standalone server": {func(all map[string]scripted) { srvr(all["b:2181"], "Mode: follower", "Mode: standalone") },
			Prevents, "b:2181", "the server is standalone, and zoo.cfg describes an ensemble"},
		"no leader": {func(all map[string]scripted) { srvr(all["c:2181"], "Mode: leader", "Mode: follower") },
			Prevents, "ensemble", "0 leaders, want one"},
		"local sessions": {func(all map[string]scripted) { all["b:2181"]["mntr"] += "zk_local_sessions\t4\n" },
			Warns, "b:2181", "4 local sessions"},
		"nobody answers": {func(all map[string]scripted) { clear(all) }, Unseen, "a:2181", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			c := memberOf(t, "")
			all := map[string]scripted{"a:2181": healthy(c, 1), "b:2181": healthy(c, 2), "c:2181": healthy(c, 3)}
			test.change(all)
			got := NewLive(c, Ask(t.Context(), ask(all), Servers(c))).Judge()
			if test.severity == "" {
				if len(got) > 0 {
					t.Errorf("findings: %+v", got)
				}
				return
			}
			if !finds(got, test.severity, test.where, test.what) {
				t.Errorf("want %s at %s: %s; got %+v", test.severity, test.where, test.what, got)
			}
			for _, f := range got {
				if f.Severity == Prevents && test.severity == Warns {
					t.Errorf("a warning came with %+v", f)
				}
			}
		})
	}
}

// TestOneDataDirectoryByTwoPaths shows that a path with .., with . or through a symbolic link is no difference, and that
// another directory is one.
func TestOneDataDirectoryByTwoPaths(t *testing.T) {
	c := memberOf(t, "")
	parent := t.TempDir()
	link := filepath.Join(parent, "link")
	for _, dir := range []string{filepath.Join(c.DataDir, "version-2"), filepath.Join(parent, "version-2")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(c.DataDir, link); err != nil {
		t.Fatal(err)
	}
	up := "/../" + filepath.Base(c.DataDir)
	for _, test := range []struct {
		running, zoo string
		differ       bool
	}{
		{c.DataDir + up, c.DataDir, false},
		{c.DataDir, c.DataDir + up, false},
		{c.DataDir + "/.", c.DataDir, false},
		{link, c.DataDir, false},
		{c.DataDir, link, false},
		{link + up, c.DataDir, false}, // for the system, .. is the parent of what the link names
		{link + up, link + up, true},  // Bellwether opens the path without link/..
		{"/nonexistent/../absent", "/absent/.", false},
		{parent, c.DataDir, true},
		{c.DataDir, parent, true},
		{c.DataDir + "/../none", c.DataDir, true},
	} {
		all := map[string]scripted{"a:2181": healthy(c, 1), "b:2181": healthy(c, 2), "c:2181": healthy(c, 3)}
		all["a:2181"]["conf"] = strings.ReplaceAll(all["a:2181"]["conf"], c.DataDir+"/version-2", test.running+"/version-2")
		given := *c
		given.DataDir, given.DataLogDir = test.zoo, test.zoo
		got := NewLive(&given, Ask(t.Context(), ask(all), Servers(c))).Judge()
		for _, key := range []string{"dataDir", "dataLogDir"} {
			if finds(got, Prevents, "a:2181", "has "+key+"=") != test.differ {
				t.Errorf("%+v, %s: %+v", test, key, got)
			}
		}
	}
}

// finds reports whether a finding of this severity is at a place and says something.
func finds(all []Finding, severity Severity, where, what string) bool {
	for _, f := range all {
		if f.Severity == severity && strings.Contains(f.Where, where) && strings.Contains(f.What, what) {
			return true
		}
	}
	return false
}

// TestNextStep shows that followers come first and the leader last, and that a leader may be replaced when only
// Bellwether servers follow it.
func TestNextStep(t *testing.T) {
	c := memberOf(t, "")
	all := map[string]scripted{"a:2181": healthy(c, 1), "b:2181": healthy(c, 2), "c:2181": healthy(c, 3)}
	next := func() string { return NewLive(c, Ask(t.Context(), ask(all), Servers(c))).Next() }
	if got := next(); !strings.HasPrefix(got, "stop ZooKeeper here, start bellwether serve --config "+c.File) || !strings.Contains(got, "shows it as a follower that") {
		t.Errorf("a follower: %s", got)
	}
	swap := func(server, old, now string) {
		all[server]["srvr"] = strings.Replace(all[server]["srvr"], old, now, 1)
	}
	swap("a:2181", "Mode: follower", "Mode: leader")
	swap("c:2181", "Mode: leader", "Mode: follower")
	if got := next(); got != "this server leads: replace it last, after b:2181, c:2181" {
		t.Errorf("the leader: %s", got)
	}
	swap("b:2181", "3.8.0-abc", "3.9.5-bellwether-0.1.0")
	swap("c:2181", "3.8.0-abc", "3.9.5-bellwether-0.1.0")
	if got := next(); !strings.HasPrefix(got, "stop ZooKeeper here") {
		t.Errorf("the last one: %s", got)
	}
}

// withObserver returns the answers of a healthy ensemble of three and an observer, which has the id 4.
func withObserver(t *testing.T, extra string) (*config.Config, map[string]scripted) {
	t.Helper()
	const line = "server.4=d:2888:3888:observer"
	c := memberOf(t, line+";2181\n"+extra)
	all := map[string]scripted{"a:2181": healthy(c, 1), "b:2181": healthy(c, 2), "c:2181": healthy(c, 3), "d:2181": healthy(c, 4)}
	all["d:2181"]["srvr"] = strings.Replace(all["d:2181"]["srvr"], "Mode: follower", "Mode: observer", 1)
	for _, s := range all {
		s["conf"] = strings.Replace(s["conf"], "version=0", line+"\nversion=0", 1)
	}
	return c, all
}

// TestAbsentObserver shows that an observer that is down costs no tolerated failure and prevents nothing: it has no vote.
func TestAbsentObserver(t *testing.T) {
	c, all := withObserver(t, "")
	delete(all, "d:2181")
	got := NewLive(c, Ask(t.Context(), ask(all), Servers(c))).Judge()
	if !finds(got, Warns, "server.4=", "the server does not serve") {
		t.Errorf("findings: %+v", got)
	}
	for _, f := range got {
		if f.Severity == Prevents || strings.Contains(f.Why, "one failure less") {
			t.Errorf("finding: %+v", f)
		}
	}
}

// TestTwoVotersAndAnAbsentObserver shows that the observer does not hide what follows from the voters: with two, the
// ensemble does not serve while one is replaced, which is to be expected.
func TestTwoVotersAndAnAbsentObserver(t *testing.T) {
	c, all := withObserver(t, "server.3=c:2888:3888:observer;2181\n")
	for _, s := range all {
		s["conf"] = strings.Replace(s["conf"], "c:2888:3888:participant", "c:2888:3888:observer", 1)
	}
	swap := func(server, old, now string) { all[server]["srvr"] = strings.Replace(all[server]["srvr"], old, now, 1) }
	swap("c:2181", "leader", "observer")
	swap("b:2181", "follower", "leader")
	all["c:2181"]["mntr"], all["b:2181"]["mntr"] = "", "zk_synced_followers\t1\n"
	delete(all, "d:2181")
	got := NewLive(c, Ask(t.Context(), ask(all), Servers(c))).Judge()
	if !finds(got, Warns, c.File, "the other members are no quorum without this one") || finds(got, Prevents, "", "") {
		t.Errorf("findings: %+v", got)
	}
}

// TestNextStepOfAnObserver shows which role the new server will have, and that a server that does not run is not stopped.
func TestNextStepOfAnObserver(t *testing.T) {
	c, all := withObserver(t, "")
	if err := os.WriteFile(filepath.Join(c.DataDir, "myid"), []byte("4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(c.File, "")
	if err != nil {
		t.Fatal(err)
	}
	next := func() string { return NewLive(c, Ask(t.Context(), ask(all), Servers(c))).Next() }
	if got := next(); !strings.HasPrefix(got, "stop ZooKeeper here, start") || !strings.Contains(got, "shows it as an observer that is not behind") {
		t.Errorf("it runs: %s", got)
	}
	delete(all, "d:2181")
	if got := next(); !strings.HasPrefix(got, "ZooKeeper does not answer here: see that it is stopped, start bellwether serve") {
		t.Errorf("it does not run: %s", got)
	}
}

// TestServersOfAZooCfg shows which client addresses are asked, by address and each once.
func TestServersOfAZooCfg(t *testing.T) {
	if got := Servers(memberOf(t, "")); strings.Join(got, " ") != strings.Join(addresses, " ") {
		t.Errorf("servers %v", got)
	}
}

// TestBelongs shows that data that are ahead of the ensemble, or of another epoch, are not those of the running server.
func TestBelongs(t *testing.T) {
	c := memberOf(t, "")
	all := map[string]scripted{"a:2181": healthy(c, 1), "b:2181": healthy(c, 2), "c:2181": healthy(c, 3)}
	live := NewLive(c, Ask(t.Context(), ask(all), Servers(c)))
	for _, test := range []struct {
		last  wire.Zxid
		epoch wire.Epoch
		ok    bool
		wrong string
	}{
		{0x200000010, 2, true, ""},
		{0x1000fffff, 2, true, ""},
		{0x200000020, 2, true, ""}, // proposals that were logged and not yet carried out
		{0x200000010, 0, false, ""},
		{0x200100010, 2, true, "the data reach 0x200100010, and c:2181 is at 0x200000010"},
		{0x300000001, 3, true, "the data reach 0x300000001"},
		{0x100000001, 1, true, "currentEpoch is 1, and the epoch of c:2181 is 2"},
		{0x200000010, 5, true, "currentEpoch is 5"},
	} {
		d := &Data{Check: &store.Report{LastZxid: test.last}}
		got := d.Belongs(live, c.DataDir, test.epoch, test.ok)
		if test.wrong == "" && len(got) > 0 || test.wrong != "" && !finds(got, Prevents, c.DataDir, test.wrong) {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

// TestMembersThatChange shows what dynamic configuration, local sessions and observers add.
func TestMembersThatChange(t *testing.T) {
	c := memberOf(t, "reconfigEnabled=true\nlocalSessionsEnabled=true\nserver.4=d:2888:3888:observer;2181\n")
	got := append(Settings(c, nil), NewLive(c, nil).observers()...)
	for _, what := range []string{"the members can be changed", "localSessionsEnabled is true", "1 member without a vote"} {
		if !finds(got, Warns, "", what) {
			t.Errorf("no finding %q in %+v", what, got)
		}
	}
}
