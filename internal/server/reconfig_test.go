package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"regexp"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/portblock"
	"bellwether/internal/store"
	"bellwether/wire"
)

// dynamicEnsemble makes servers whose membership can change: voters with a client port in
// their lines, and spares that are in no list yet.
func dynamicEnsemble(t *testing.T, voters, spares int) *testEnsemble {
	t.Helper()
	g := newTestEnsemble(t, voters, 0, false)
	ports := freePorts(t, 2*spares)
	for i := range spares {
		id := voters + i + 1
		m := &testServer{id: ensemble.ServerID(id), fs: store.NewMem(uint64(id)), dir: "data", down: true}
		g.servers = append(g.servers, m)
		g.lines = append(g.lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d:participant", id, ports[2*i], ports[2*i+1]))
	}
	g.change = func(c *config.Config) {
		c.Tree.Reconfig, c.Access.SuperDigest = true, superDigest
		if _, listed := c.Ensemble.Members.Server(c.Ensemble.ID); !listed {
			c.Ensemble.Members = g.with(c.Ensemble.ID)
		}
	}
	return g
}

// superDigest is that of super:test.
const superDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="

// with returns the members and a spare, as the list with which the spare starts.
func (g *testEnsemble) with(id ensemble.ServerID) *ensemble.Membership {
	g.t.Helper()
	m, err := ensemble.Parse(g.members.FileText(false) + "\n" + g.line(id))
	if err != nil {
		g.t.Fatal(err)
	}
	return m
}

// line returns the line of a spare.
func (g *testEnsemble) line(id ensemble.ServerID) string {
	return g.lines[int(id)-len(g.members.Servers())-1]
}

// administrator returns a client that may change the membership.
func (m *testServer) administrator() *client {
	c := m.connect()
	c.login("super:test")
	return c
}

// reconfig asks for a change and returns the code and the new membership.
func (c *client) reconfig(q wire.ReconfigRequest) (wire.Code, *ensemble.Membership) {
	c.t.Helper()
	var r wire.DataResponse
	h := c.call(wire.OpReconfig, &q, &r)
	if h.Err != wire.OK {
		return h.Err, nil
	}
	m, err := ensemble.Parse(string(r.Data))
	if err != nil {
		c.t.Fatal(err)
	}
	if r.Stat.Mzxid != wire.Zxid(m.Version()) || r.Stat.Version != -1 || h.Zxid != r.Stat.Mzxid {
		c.t.Errorf("reply %v, stat %+v, version %x", h, r.Stat, m.Version())
	}
	return wire.OK, m
}

// showing waits until all running servers show a membership.
func (g *testEnsemble) showing(want *ensemble.Membership) {
	g.t.Helper()
	for _, m := range g.servers {
		if m.down {
			continue
		}
		eventually(g.t, fmt.Sprintf("server %d shows %x", m.id, want.Version()), func() bool {
			text, at := m.Tree().Described()
			return text == want.String() && at == wire.Zxid(want.Version()) && m.members().Version() == want.Version()
		})
	}
}

// TestReconfig: spares join as voters, one after the other. A former voter leaves, and then
// the leader. At each step every server shows the new membership, clients write, and the trees are equal.
func TestReconfig(t *testing.T) {
	g := dynamicEnsemble(t, 3, 2)
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled().connect().create("/before", "x")
	step := 0
	change := func(q wire.ReconfigRequest, voters string) {
		t.Helper()
		q.ConfigID = -1
		var got *ensemble.Membership
		eventually(t, "the change is accepted", func() bool { // the server may lose its leader on the way, or not be a learner yet
			code, m := g.settled().administrator().reconfig(q)
			got = m
			return code == wire.OK
		})
		if fmt.Sprint(got.Voters()) != voters {
			t.Fatalf("voters %v, want %s", got.Voters(), voters)
		}
		g.settled()
		g.showing(got)
		for _, m := range g.servers {
			step++
			m.connect().create(fmt.Sprintf("/n%d", step), "x")
		}
		g.equal()
	}
	change(wire.ReconfigRequest{Joining: wire.Text(g.line(4) + ";0.0.0.0:14")}, "[1 2 3 4]")
	change(wire.ReconfigRequest{Joining: wire.Text(g.line(5) + ";0.0.0.0:15")}, "[1 2 3 4 5]")
	follower := g.follower()
	change(wire.ReconfigRequest{Leaving: wire.Text(fmt.Sprint(follower.id))}, "["+others("1 2 3 4 5", follower.id)+"]")
	if follower.serves(peerwire.Leading) {
		t.Error("a server without a vote leads")
	}
	left := others("1 2 3 4 5", follower.id)
	leader := g.leader()
	change(wire.ReconfigRequest{Leaving: wire.Text(fmt.Sprint(leader.id))}, "["+others(left, leader.id)+"]")
	if g.leader() == leader {
		t.Error("the leader that was removed leads")
	}
}

// others returns a list of ids without one of them.
func others(ids string, without ensemble.ServerID) string {
	var left []string
	for _, id := range strings.Fields(ids) {
		if id != fmt.Sprint(without) {
			left = append(left, id)
		}
	}
	return strings.Join(left, " ")
}

// TestReconfigRefused: a change that breaks a rule is refused with the code for it, by each
// server, and the leader's log names the rule in a warning.
func TestReconfigRefused(t *testing.T) {
	g := dynamicEnsemble(t, 3, 1)
	book := &logBook{}
	g.book = book
	for _, m := range g.servers[:3] {
		g.start(m)
	}
	g.settled()
	line := g.line(4) + ";14"
	first, _ := g.members.Server(1)
	a := first.Addresses[0]
	for _, c := range []struct {
		q    wire.ReconfigRequest
		want wire.Code
		rule string
	}{
		{wire.ReconfigRequest{Joining: wire.Text(line), ConfigID: 7}, wire.ErrBadVersion, "it is based on version 7"},
		{wire.ReconfigRequest{Leaving: wire.Text("1,2,3"), ConfigID: -1}, wire.ErrBadArguments, "0 voters"},
		{wire.ReconfigRequest{Members: wire.Text(""), ConfigID: -1}, wire.ErrBadArguments, "0 voters"},
		{wire.ReconfigRequest{Joining: wire.Text(fmt.Sprintf("server.4=127.0.0.1:%d:9;14", a.QuorumPort)), ConfigID: -1}, wire.ErrBadArguments, "have the same address"},
		{wire.ReconfigRequest{Joining: wire.Text("server.4=127.0.0.1:8:9;8"), ConfigID: -1}, wire.ErrBadArguments, "uses port 8 both"},
		{wire.ReconfigRequest{Leaving: wire.Text("1,2"), Joining: wire.Text(line), ConfigID: -1}, wire.ErrNewConfigNoQuorum, "are no quorum"},
	} {
		for _, m := range g.servers[:3] {
			if code, _ := m.administrator().reconfig(c.q); code != c.want {
				t.Errorf("%+v by server %d: %v, want %v", c.q, m.id, code, c.want)
			}
		}
		warning := regexp.MustCompile(`level=WARN msg="refuses a reconfiguration: [^"]*` + c.rule)
		eventually(t, c.rule, func() bool { return warning.MatchString(book.String()) })
	}
	for _, m := range g.servers[:3] {
		if code, _ := m.connect().reconfig(wire.ReconfigRequest{Leaving: wire.Text("3"), ConfigID: -1}); code != wire.ErrNoAuth {
			t.Errorf("without permission: %v", code)
		}
	}
	g.showing(g.members.WithVersion(1 << 32))
}

// TestReconfigFiles: a server keeps the membership in the files of ZooKeeper, and starts
// from them. The client port follows the server line.
func TestReconfigFiles(t *testing.T) {
	g := dynamicEnsemble(t, 3, 0)
	change := g.change
	g.change = func(c *config.Config) {
		change(c)
		c.File = "/etc/zoo.cfg"
		m := g.servers[c.Ensemble.ID-1]
		if _, err := m.fs.Stat(c.File); errors.Is(err, fs.ErrNotExist) {
			write(t, m.fs, c.File, "tickTime=500\nclientPort=1\n"+g.members.FileText(false)+"\n")
		}
	}
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	files := func(m *testServer) *store.MemberFiles {
		return &store.MemberFiles{FS: m.fs, Static: "/etc/zoo.cfg", Next: "/etc/zoo.cfg.dynamic.next"}
	}
	points := func(m *testServer, to *ensemble.Membership, static string) {
		t.Helper()
		name := to.FileName("/etc/zoo.cfg")
		eventually(t, "the files are written", func() bool {
			text, err := files(m).Read("/etc/zoo.cfg")
			return err == nil && text == static+"dynamicConfigFile="+name+"\n"
		})
		if text, err := files(m).Read(name); err != nil || text != to.FileText(false) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		eventually(t, "the file of the proposed membership is removed", func() bool {
			_, err := m.fs.Stat("/etc/zoo.cfg.dynamic.next")
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	for _, m := range g.servers {
		points(m, g.members.WithVersion(1<<32), "tickTime=500\nclientPort=1\n")
		if text, err := files(m).Read("/etc/zoo.cfg.bak"); err != nil || !strings.Contains(text, "server.1=") {
			t.Errorf("backup %q, %v", text, err)
		}
	}
	ports, err := portblock.Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := g.members.Server(l.id)
	before := l.Addr().String()
	line := fmt.Sprintf("%s;127.0.0.1:%d", strings.TrimSuffix(self.Line(), ":participant"), ports[0])
	code, now := l.administrator().reconfig(wire.ReconfigRequest{Joining: wire.Text(line), ConfigID: 1 << 32})
	if code != wire.OK {
		t.Fatal(code)
	}
	g.showing(now)
	for _, m := range g.servers {
		static := "tickTime=500\nclientPort=1\n"
		if m == l {
			static = "tickTime=500\n"
		}
		points(m, now, static)
	}
	eventually(t, "the client port moves", func() bool { return l.Addr().String() == fmt.Sprintf("127.0.0.1:%d", ports[0]) })
	l.connect().create("/there", "x")
	eventually(t, "the former port is closed", func() bool {
		c, err := net.Dial("tcp", before)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// write writes a file and makes it durable.
func write(t *testing.T, to store.FS, path, text string) {
	t.Helper()
	if err := to.MkdirAll("/etc"); err != nil {
		t.Fatal(err)
	}
	f, err := to.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(text), 0)
	if err = errors.Join(err, f.Sync(), f.Close(), to.SyncDir("/etc")); err != nil {
		t.Fatal(err)
	}
}

// TestMembershipAfterARestart: a server without files finds the membership in its log or
// snapshot again.
func TestMembershipAfterARestart(t *testing.T) {
	g := dynamicEnsemble(t, 4, 0)
	for _, m := range g.servers {
		g.start(m)
	}
	code, now := g.settled().administrator().reconfig(wire.ReconfigRequest{Leaving: wire.Text(fmt.Sprint(g.follower().id)), ConfigID: -1})
	if code != wire.OK {
		t.Fatal(code)
	}
	g.showing(now)
	for _, m := range g.servers {
		g.stopped(m)
	}
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	g.showing(now)
	g.equal()
}

// TestClientPortMovesToOverlappingAddress: the client port moves from one address to all
// addresses, with the same port, and back. If that fails, it is open at its former address.
func TestClientPortMovesToOverlappingAddress(t *testing.T) {
	g := dynamicEnsemble(t, 3, 0)
	book := &logBook{}
	g.book = book
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	ports, err := portblock.Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	self, _ := g.members.Server(l.id)
	move := func(host string) {
		t.Helper()
		line := fmt.Sprintf("%s;%s:%d", strings.TrimSuffix(self.Line(), ":participant"), host, ports[0])
		if code, _ := l.administrator().reconfig(wire.ReconfigRequest{Joining: wire.Text(line), ConfigID: -1}); code != wire.OK {
			t.Fatal(code)
		}
	}
	at := func(want func(net.IP) bool) func() bool {
		return func() bool {
			now := l.Addr().(*net.TCPAddr)
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
			if err == nil {
				c.Close()
			}
			return now.Port == ports[0] && want(now.IP) && err == nil
		}
	}
	move("127.0.0.1")
	eventually(t, "the port is open on loopback", at(net.IP.IsLoopback))
	move("0.0.0.0")
	eventually(t, "the port is open on all addresses", at(net.IP.IsUnspecified))
	move("127.0.0.1")
	eventually(t, "the port is open on loopback again", at(net.IP.IsLoopback))
	other, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	move("0.0.0.0")
	eventually(t, "the failure is logged", func() bool { return strings.Contains(book.String(), "stays at its former address") })
	eventually(t, "the port is open on loopback as before", at(net.IP.IsLoopback))
}

// TestReplacedDisksDoNotVoteBeforeTheyHaveTheHistory: two servers in a row are replaced by ones with the same id and a new
// disk. Each time the only disk with an acknowledged write is that of a third server, which is down. The new disk and a server
// that is behind elect no leader. When the third server is back, the new one gets the history; then it votes.
func TestReplacedDisksDoNotVoteBeforeTheyHaveTheHistory(t *testing.T) {
	g := dynamicEnsemble(t, 3, 0)
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled().connect().create("/first", "x")
	keeper := g.servers[0]
	for i, replaced := range g.servers[1:] {
		behind := g.servers[2-i]
		g.equal()
		g.kill(behind)
		path := fmt.Sprintf("/kept%d", replaced.id)
		g.settled().connect().create(path, "x") // the keeper and the server that is replaced have it
		g.kill(keeper)
		g.kill(replaced)
		replaced.fs = store.NewMem(uint64(100 + i))
		g.start(replaced)
		g.start(behind)
		eventually(t, "the new disk votes for nobody", func() bool {
			all := replaced.Elections()
			return len(all) > 0 && all[len(all)-1].Barred
		})
		if l := g.leader(); l != nil {
			t.Fatalf("server %d leads without %s, which was acknowledged", l.id, path)
		}
		g.start(keeper)
		g.settled()
		g.equal()
		for _, m := range g.servers {
			if m.connect().data(path) != "x" {
				t.Errorf("server %d has lost %s", m.id, path)
			}
		}
	}
	g.kill(keeper)
	g.settled().connect().create("/both-vote", "x")
}

// TestReconfigWithoutFiles: if a server cannot write its configuration files, the change goes on, and the log says so.
func TestReconfigWithoutFiles(t *testing.T) {
	g := dynamicEnsemble(t, 3, 1)
	book := &logBook{}
	g.book = book
	change := g.change
	g.change = func(c *config.Config) {
		change(c)
		c.File, c.Ensemble.DynamicFile = "/missing/zoo.cfg", "/missing/zoo.cfg.dynamic.1"
	}
	for _, m := range g.servers {
		g.start(m)
	}
	code, now := g.settled().administrator().reconfig(wire.ReconfigRequest{Joining: wire.Text(g.line(4) + ";14"), ConfigID: -1})
	if code != wire.OK {
		t.Fatal(code)
	}
	g.showing(now)
	eventually(t, "the log has the error", func() bool {
		return strings.Contains(book.String(), "level=ERROR msg=\"the configuration files could not be written; the membership is kept in the log")
	})
}
