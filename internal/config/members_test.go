package config

import (
	"strings"
	"testing"

	"bellwether/internal/ensemble"
)

const trio = `dataDir=DIR/data
initLimit=10
syncLimit=5
server.1=zk1:2888:3888;2181
server.2=zk2:2888:3888;10.0.0.2:2182
server.3=zk3:2888:3888:observer
server.4=zk4:2888:3888
`

// TestEnsemble shows that the settings of an ensemble's member are read in full and that
// it is not standalone.
func TestEnsemble(t *testing.T) {
	c := load(t, "", trio, "data/myid", "2\n")
	if c.Standalone() || c.Ensemble.ID != 2 || !c.Ensemble.HasID || c.Client.String() != "10.0.0.2:2182" || c.Ensemble.PeerType != ensemble.Participant {
		t.Errorf("%+v", c.Ensemble)
	}
	want := "server.1=zk1:2888:3888:participant;0.0.0.0:2181\nserver.2=zk2:2888:3888:participant;10.0.0.2:2182\n" +
		"server.3=zk3:2888:3888:observer\nserver.4=zk4:2888:3888:participant\nversion=0"
	if got := c.Ensemble.Members.String(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestEnsembleNotices shows the notices about settings without effect in an ensemble.
func TestEnsembleNotices(t *testing.T) {
	cases := []struct{ flags, line, want string }{
		{"", "reconfigEnabled=false", ""},
		{"", "reconfigEnabled=true", ""},
		{"-Dreadonlymode.enabled=true", "", ""},
		{"-Dreadonlymode.enabled=true", "readonlymode.uncommitted=true", ""},
		{"", "readonlymode.uncommitted=true", "readonlymode.uncommitted has no effect without readonlymode.enabled=true"},
		{"", "localSessionsEnabled=true\nlocalSessionsUpgradingEnabled=true", ""},
		{"", "observerMasterPort=2191\nobserverMaster.sizeLimit=1000000", ""},
		{"", "syncEnabled=false", "syncEnabled is ignored: an observer always keeps its log, so that it continues where it stopped"},
		{"", "syncEnabled=true\ntcpKeepAlive=true\nforceSnapshotSync=false", ""},
		{"", "leaderServes=no\nquorumCnxnTimeoutMs=7\ncnxTimeout=8", ""},
	}
	for _, x := range cases {
		got := texts(load(t, x.flags, trio+x.line, "data/myid", "2\n").Notices)
		if x.want == "" && got != "" || !strings.HasSuffix(got, x.want) || strings.Count(got, "\n") > 0 {
			t.Errorf("%s%s: %s", x.flags, x.line, got)
		}
	}
	if got := texts(load(t, "", "dataDir=/nonexistent\nreconfigEnabled=true").Notices); got != "" {
		t.Errorf("standalone: %s", got)
	}
}

// TestStandalone shows which files configure a standalone server, and where its client
// port comes from.
func TestStandalone(t *testing.T) {
	cases := []struct {
		name, text, myid string
		client           string
		alone            bool
	}{
		{"no server line", "clientPort=2181", "", "0.0.0.0:2181", true},
		{"myid without server line", "clientPort=2181", "300", "0.0.0.0:2181", true},
		{"myid 0", "clientPort=2181", "0", "0.0.0.0:2181", true},
		{"myid -1", "clientPort=2181", "-1", "0.0.0.0:2181", true},
		{"myid negative", "clientPort=2181", "-9223372036854775808", "0.0.0.0:2181", true},
		{"myid -1 with one line", "server.1=h:1:2;2181\nclientPort=9", "-1\n", "0.0.0.0:9", true},
		{"large id and TTLs", "clientPort=2181\nextendedTypesEnabled=true", "255", "0.0.0.0:2181", true},
		{"one line", "server.1=h:1:2;2181", "1", "0.0.0.0:2181", true},
		{"one line, id given without newline", "server.1=h:1:2;[::1]:2181", "1", "[::1]:2181", true},
		{"one line of Windows", "server.1=h:1:2;2181", "1\r\n", "0.0.0.0:2181", true},
		{"one line, another id", "server.1=h:1:2;2181", "2", "", true},
		{"one line, no id", "server.1=h:1:2;2181", "", "", true},
		{"one line without client", "server.1=h:1:2\nclientPort=9", "1", "0.0.0.0:9", true},
		{"both agree", "server.1=h:1:2;10.0.0.1:9\nclientPort=9", "1", "10.0.0.1:9", true},
		{"both agree in IPv6", "server.1=h:1:2;[0::1]:9\nclientPort=9\nclientPortAddress=::1", "1", "[0::1]:9", true},
		{"names are not compared", "server.1=h:1:2;h:9\nclientPort=9\nclientPortAddress=10.0.0.1", "1", "h:9", true},
		{"an ensemble of one", "standaloneEnabled=false\nserver.1=h:1:2;5\ninitLimit=1\nsyncLimit=1", "1", "0.0.0.0:5", false},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			var files []string
			if x.myid != "" {
				files = []string{"data/myid", x.myid}
			}
			c := load(t, "", "dataDir=DIR/data\n"+x.text, files...)
			if c.Client.String() != x.client || c.Standalone() != x.alone {
				t.Errorf("client %q, standalone %v", c.Client, c.Standalone())
			}
		})
	}
}

// TestMemberErrors shows the errors about server lines and myid, with their places.
func TestMemberErrors(t *testing.T) {
	limits := "initLimit=1\nsyncLimit=1\n"
	two := "server.1=a:1:2\nserver.2=b:1:2\n"
	cases := []struct{ name, text, myid, want string }{
		{"wrong form", "server.1=a:1", "", "DIR/zoo.cfg:2: server.1=a:1 is not allowed: \"a:1\" does not have the form host:quorumPort:electionPort"},
		{"equal ports", "server.1=a:1:1", "", "DIR/zoo.cfg:2: server.1=a:1:1 is not allowed: quorum and election port are both 1; they must differ; correct the line"},
		{"id", "server.x=a:1:2", "", `server "x" is not a number of 0 or more`},
		{"groups", two + "group.1=1", "", "DIR/zoo.cfg:2: server 2 is in no group"},
		{"a key like a group", "groupie=1", "", "DIR/zoo.cfg:2: groupie=1 is not allowed: unrecognised; allowed are server.N, group.N and weight.N"},
		{"several addresses", "server.1=a:1:2|b:1:2;5", "", "DIR/zoo.cfg:2: server.1 has several addresses, but multiAddress.enabled is not true"},
		{"observers only", "server.1=a:1:2:observer", "", "DIR/zoo.cfg:2: server.1 names observers, but there are fewer than two participants"},
		{"one and an observer", "server.1=a:1:2\nserver.2=b:1:2:observer", "", "names observers, but there are fewer than two participants"},
		{"nobody in an ensemble", "standaloneEnabled=false", "", "DIR/zoo.cfg:2: standaloneEnabled=false is false, but there is no participant"},
		{"no initLimit", two + "syncLimit=1", "1", "DIR/zoo.cfg: initLimit is not set, but an ensemble needs it; add a line initLimit=10"},
		{"no syncLimit", two + "initLimit=1", "1", "DIR/zoo.cfg: syncLimit is not set"},
		{"initLimit too long", two + "initLimit=715828\nsyncLimit=1", "1", "initLimit=715828 is 2147484000 ms with a tickTime of 3000 ms, but at most 2147483647 ms are possible; set it to at most 715827, or lower tickTime"},
		{"syncLimit too long", two + "initLimit=1\nsyncLimit=2147483647", "1", "syncLimit=2147483647 is 6442450941000 ms with a tickTime of 3000 ms"},
		{"no myid", limits + two, "", "DIR/data/myid: is missing, but an ensemble needs it; write the number of this server's server.N line into it"},
		{"id not in the list", limits + two, "7", "DIR/data/myid:1: contains 7, but there is no line server.7"},
		{"myid with a blank", limits + two, "1 ", `DIR/data/myid:1: "1 " is not a server id; allowed is a decimal number of 0 or more as the whole first line, without blanks`},
		{"myid empty, alone", "clientPort=1", "\n", `DIR/data/myid:1: "" is not a server id`},
		{"myid -1", limits + two, "-1", `DIR/data/myid:1: "-1" is not a server id; allowed is a decimal number of 0 or more`},
		{"myid negative", limits + two, "-2", `"-2" is not a server id`},
		{"server negative", limits + two + "server.-2=c:1:2\n", "1", `server "-2" is not a number of 0 or more`},
		{"the number of observers without an id", limits + two + "server.9223372036854775807=c:1:2\n", "1",
			"server 9223372036854775807 is an observer without an id for other servers; use an id from 0 to 255"},
		{"client ports differ", "server.1=a:1:2;5\nclientPort=6", "1", "DIR/zoo.cfg:3: clientPort=6 gives the client address 0.0.0.0:6, but the line server.1 gives 0.0.0.0:5"},
		{"client addresses differ", "server.1=a:1:2;10.0.0.1:6\nclientPort=6\nclientPortAddress=10.0.0.2", "1", "gives the client address 10.0.0.2:6"},
		{"id too large for TTLs", "extendedTypesEnabled=true\n" + limits + "server.254=a:1:2\nserver.255=b:1:2", "255", "DIR/zoo.cfg:2: extendedTypesEnabled=true needs a server id of at most 254, but DIR/data/myid contains 255"},
		{"no such dynamic file", "dynamicConfigFile=DIR/none", "", "DIR/zoo.cfg:2: dynamicConfigFile=DIR/none cannot be read"},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			var files []string
			if x.myid != "" {
				files = []string{"data/myid", x.myid}
			}
			if got := refuse(t, "", "dataDir=DIR/data\n"+x.text, files...); !strings.Contains(got, x.want) {
				t.Errorf("got %s\nwant %s", got, x.want)
			}
		})
	}
}

// TestDynamicFile shows members in a dynamic configuration file, whose name contains the
// version.
func TestDynamicFile(t *testing.T) {
	text := "dataDir=DIR/data\ninitLimit=1\nsyncLimit=1\ndynamicConfigFile=DIR/zoo.cfg.dynamic.100000005"
	file := "server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:participant;0.0.0.0:2181"
	c := load(t, "", text, "zoo.cfg.dynamic.100000005", file, "data/myid", "1")
	if c.Ensemble.Members.String() != file+"\nversion=100000005" || c.Client.Port != 2181 {
		t.Errorf("%s", c.Ensemble.Members)
	}
	for _, x := range []struct{ name, text, dynamic, want string }{
		{"server line in both", text + "\nserver.1=a:1:2", file, "DIR/zoo.cfg:5: server.1 must be in the dynamic configuration file; move it to DIR/zoo.cfg.dynamic.100000005"},
		{"other key", text, "tickTime=5", "DIR/zoo.cfg.dynamic.100000005:1: tickTime=5 is not allowed in a dynamic configuration file; allowed is server.N, group.N and weight.N; move it to DIR/zoo.cfg"},
		{"version", text, file + "\nversion=5", "DIR/zoo.cfg.dynamic.100000005:3: version=5 is not allowed in a dynamic configuration file; allowed is server.N, group.N and weight.N; remove it: the version is the hexadecimal suffix"},
		{"bad server", text, "server.1=a", "DIR/zoo.cfg.dynamic.100000005:1: server.1=a is not allowed: \"a\" does not have the form"},
		{"bad escape", text, `server.1=\u1`, "DIR/zoo.cfg.dynamic.100000005:1: "},
	} {
		if got := refuse(t, "", x.text, "zoo.cfg.dynamic.100000005", x.dynamic, "data/myid", "1"); !strings.Contains(got, x.want) {
			t.Errorf("%s: got %s", x.name, got)
		}
	}
}

// TestVersionOf shows which file names contain a version.
func TestVersionOf(t *testing.T) {
	for file, want := range map[string]int64{
		"/c/zoo.cfg.dynamic.100000005": 0x100000005, "/c/zoo.cfg.dynamic": 0, "zoo.cfg.dynamic.0": 0,
		"noversion": 0, "/etc/zoo.d/members": 0, "members.d": 0xd, "x.-5": 0, "x.": 0,
	} {
		if got := ensemble.FileVersion(file); got != want {
			t.Errorf("%s: got %x, want %x", file, got, want)
		}
	}
}

// TestMemberWarnings shows the warnings about an ensemble.
func TestMemberWarnings(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"server.1=a:1:2;5", "zoo.cfg:6: server.1 names one participant only, so the server runs standalone"},
		{"server.1=a:1:2;5\nserver.2=b:1:2", "zoo.cfg: two voters only: no server failure is tolerated"},
		{"server.1=a:1:2;5\nserver.2=b:1:2\nserver.3=c:1:2\nserver.4=d:1:2", "zoo.cfg: 4 voters tolerate as many failures as 3"},
		{"server.1=a:1:2:observer;5\nserver.2=b:1:2\nserver.3=c:1:2", "zoo.cfg:5: peerType is participant, but the server line says observer, which takes precedence"},
		{"server.1=a:1:2;h:5\nserver.2=b:1:2\nserver.3=c:1:2\nclientPort=5\nclientPortAddress=10.0.0.1", "zoo.cfg:10: clientPortAddress is 10.0.0.1, but the server line says h, which is used"},
	} {
		c := load(t, "", "dataDir=DIR/data\ninitLimit=1\nsyncLimit=1\nautopurge.purgeInterval=1\npeerType=participant\n"+x.text, "data/myid", "1")
		if got := texts(c.Warnings); !strings.Contains(got, x.want) {
			t.Errorf("%s: got %s", x.text, got)
		}
	}
}
