package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
)

// Live is what the running servers have said.
type Live struct {
	c        *config.Config
	members  []Member
	byID     map[ensemble.ServerID]*Member // members whose id is known
	twice    []Finding                     // ids that two servers call their own
	silent   []*Member                     // servers that do not serve and whose id is not known
	nameless int                           // servers that serve and whose id is not known
	leaders  []*Member
}

// NewLive prepares the answers of the servers of a zoo.cfg.
func NewLive(c *config.Config, members []Member) *Live {
	l := &Live{c: c, members: members, byID: map[ensemble.ServerID]*Member{}}
	for i := range members {
		m := &members[i]
		if id, ok := l.idOf(m); ok {
			if other := l.byID[id]; other != nil {
				l.twice = append(l.twice, Finding{Prevents, m.Server, fmt.Sprintf("has the id %d, as %s has", id, other.Server),
					"two servers with one id vote as one", "correct myid of one of them and restart it; if both addresses are of one server, name one with --live"})
			}
			l.byID[id] = m
		} else if serving(m) {
			l.nameless++
		} else {
			l.silent = append(l.silent, m)
		}
		if m.Srvr.Mode == "leader" {
			l.leaders = append(l.leaders, m)
		}
	}
	return l
}

// idOf returns the id of a member: as the server says it, or that of the server line with its address.
func (l *Live) idOf(m *Member) (ensemble.ServerID, bool) {
	if id, err := strconv.ParseInt(m.Conf["serverId"], 10, 64); err == nil {
		return ensemble.ServerID(id), true
	}
	if l.c.Standalone() {
		return 0, false
	}
	servers, lines := Servers(l.c), l.c.Ensemble.Members.Servers()
	if i := slices.Index(servers, m.Server); i >= 0 && len(servers) == len(lines) {
		return lines[i].ID, true
	}
	return 0, false
}

// Judge returns the findings about the running servers.
func (l *Live) Judge() []Finding {
	var all []Finding
	answered := 0
	for i := range l.members {
		if l.members[i].Err == nil {
			answered++
		}
	}
	if answered == 0 {
		for _, m := range l.members {
			all = append(all, Finding{Unseen, m.Server, m.Err.Error(), "", "start the server, or name its client address with --live"})
		}
		return all
	}
	for i := range l.members {
		all = append(all, l.member(&l.members[i])...)
	}
	if l.c.Standalone() {
		return all
	}
	all = append(all, l.twice...)
	all = append(all, l.myid()...)
	all = append(all, l.quorum()...)
	all = append(all, l.leader()...)
	return append(all, l.observers()...)
}

// member returns the findings about one server that do not depend on the others.
func (l *Live) member(m *Member) []Finding {
	if m.Err != nil || m.Srvr.Mode == "" {
		return nil // quorum judges what its absence means
	}
	var all []Finding
	if standalone := m.Srvr.Mode == "standalone"; standalone != l.c.Standalone() {
		all = append(all, Finding{Prevents, m.Server, fmt.Sprintf("the server is %s, and zoo.cfg describes %s", m.Srvr.Mode, kindOf(l.c)),
			"the configuration is not that of the running server", "give the zoo.cfg of the running server"})
		return all
	}
	if m.Srvr.Mode == "read-only" {
		all = append(all, Finding{Prevents, m.Server, "the server is read-only: it has no quorum", "no server can be replaced without a quorum", "bring up the other servers"})
	}
	all = append(all, versionOf(m)...)
	all = append(all, l.settings(m)...)
	if n := m.Mntr["digest_mismatches_count"]; n > 0 {
		all = append(all, Finding{Prevents, m.Server, fmt.Sprintf("the server counts %.0f digest mismatches: its tree differs from its leader's", n),
			"a takeover would keep the difference", "stop this server, move the folder version-2 out of its data directories, and start it again, so that the leader sends it the tree"})
	}
	if len(m.Refused) > 0 {
		all = append(all, Finding{Warns, m.Server, "the server does not answer " + strings.Join(m.Refused, " and "),
			"so some things were not compared: " + unchecked(m.Refused), "add " + strings.Join(m.Refused, ",") + " to 4lw.commands.whitelist and restart the server, or compare by hand"})
	}
	return all
}

func kindOf(c *config.Config) string {
	if c.Standalone() {
		return "a standalone server"
	}
	return "an ensemble"
}

func unchecked(refused []string) string {
	what := map[string]string{"conf": "members, groups and weights, directories, times and limits", "mntr": "whether followers are caught up, local sessions, and tree digests"}
	var all []string
	for _, word := range refused {
		all = append(all, what[word])
	}
	return strings.Join(all, "; ")
}

// The versions with which the tests run.
const (
	testedMajor    = 3
	testedMinorMin = 8
	testedMinorMax = 9
	oldestMinor    = 5 // the first release with today's server lines and vote messages
)

// versionOf judges the version of a server.
func versionOf(m *Member) []Finding {
	var major, minor int
	if n, _ := fmt.Sscanf(m.Srvr.Version, "%d.%d", &major, &minor); n < 2 {
		return []Finding{{Warns, m.Server, fmt.Sprintf("its version %q is not one of ZooKeeper", m.Srvr.Version), "the takeover was not tested with it", ""}}
	}
	upgrade := fmt.Sprintf("upgrade the ensemble to ZooKeeper %d.%d first, as its release notes say", testedMajor, testedMinorMin)
	switch {
	case major < testedMajor || major == testedMajor && minor < oldestMinor:
		return []Finding{{Prevents, m.Server, "its version is " + m.Srvr.Version, "servers before 3.5 have other server lines, votes and transactions", upgrade}}
	case major == testedMajor && minor < testedMinorMin:
		return []Finding{{Warns, m.Server, "its version is " + m.Srvr.Version, fmt.Sprintf("the takeover is tested with %d.%d and %d.%d", testedMajor, testedMinorMin, testedMajor, testedMinorMax), upgrade}}
	case major > testedMajor || minor > testedMinorMax:
		return []Finding{{Warns, m.Server, "its version is " + m.Srvr.Version, fmt.Sprintf("it is newer than %d.%d, the newest with which the takeover is tested", testedMajor, testedMinorMax), "try the takeover with a copy first"}}
	}
	return nil
}

// settings compares what a server says of itself with zoo.cfg.
func (l *Live) settings(m *Member) []Finding {
	if m.Conf == nil {
		return nil
	}
	id, known := l.idOf(m)
	own := l.c.Standalone() || known && id == l.c.Ensemble.ID
	var all []Finding
	compare := func(s Severity, key, want string, same func(a, b string) bool) {
		if got := m.Conf[key]; got != "" && !same(got, want) {
			all = append(all, Finding{s, m.Server, fmt.Sprintf("the running server has %s=%s, and by zoo.cfg it would be %s", key, got, want),
				"zoo.cfg is not what the running server has read, so a start changes the setting", "give the zoo.cfg of the running server, or correct it"})
		}
	}
	if own && filepath.IsAbs(l.c.DataDir) {
		// Bellwether opens this path, without the .. that ZooKeeper leaves to the system. After a symbolic link the two differ.
		compare(Prevents, "dataDir", filepath.Join(l.c.DataDir, "version-2"), sameDir)
		compare(Prevents, "dataLogDir", filepath.Join(l.c.DataLogDir, "version-2"), sameDir)
	}
	number := func(key string, n int64) {
		compare(Warns, key, strconv.FormatInt(n, 10), func(a, b string) bool { return a == b })
	}
	if own {
		number("maxClientCnxns", int64(max(l.c.Limits.ClientCnxns, 0)))
	}
	number("tickTime", l.c.TickTime.Milliseconds())
	number("minSessionTimeout", l.c.MinSessionTimeout.Milliseconds())
	number("maxSessionTimeout", l.c.MaxSessionTimeout.Milliseconds())
	if !l.c.Standalone() {
		number("initLimit", int64(l.c.Ensemble.InitLimit))
		number("syncLimit", int64(l.c.Ensemble.SyncLimit))
		all = append(all, l.sameMembers(m)...)
	}
	return all
}

// sameDir reports whether two paths name one directory, through symbolic links too. Paths that do not exist here, or
// cannot be examined, are compared as texts: the server may be on another machine.
func sameDir(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	switch {
	case errA == nil && errB == nil:
		return os.SameFile(infoA, infoB)
	case errors.Is(errA, fs.ErrNotExist) != errors.Is(errB, fs.ErrNotExist):
		return false
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// Serves reports whether a member is known to serve. If as many servers without a known id serve as there are
// members left, each of these members serves.
func (l *Live) Serves(id ensemble.ServerID) bool {
	if m := l.byID[id]; m != nil {
		return serving(m)
	}
	return l.nameless > 0 && l.nameless >= l.left()
}

// left returns the number of members whose ids no server has.
func (l *Live) left() int { return len(l.c.Ensemble.Members.Servers()) - len(l.byID) }

// absent returns what is known of a member that does not serve; nil: it is not known whether it serves. If no server
// without a known id serves, and as many do not serve as there are members left, these are the members.
func (l *Live) absent(id ensemble.ServerID) *Member {
	if m := l.byID[id]; m != nil {
		return m
	}
	if l.nameless == 0 && len(l.silent) > 0 && len(l.silent) >= l.left() {
		return l.silent[0]
	}
	return nil
}

// serving reports whether a server serves as a member of an ensemble.
func serving(m *Member) bool {
	return slices.Contains([]string{"leader", "follower", "observer"}, m.Srvr.Mode)
}

// Leads reports whether a member is known to be the only leader.
func (l *Live) Leads(id ensemble.ServerID) bool {
	return len(l.leaders) == 1 && l.byID[id] == l.leaders[0]
}

// myid compares the id of this server with what the running server at its client address says.
func (l *Live) myid() []Finding {
	self, _ := l.c.Ensemble.Members.Server(l.c.Ensemble.ID)
	own := self.Client
	if own.IsZero() {
		own = l.c.Client
	}
	for i := range l.members {
		m := &l.members[i]
		id, said := m.Conf["serverId"]
		if !said || id == strconv.FormatInt(int64(self.ID), 10) || !slices.Contains(reachable(own, self.Addresses[0].Host), m.Server) {
			continue
		}
		return []Finding{{Prevents, filepath.Join(l.c.DataDir, "myid"), fmt.Sprintf("contains %d, and the running server at %s has the id %s", self.ID, m.Server, id),
			"the new server would vote as another member", "write " + id + " into the file, or give the zoo.cfg and data directory of this server"}}
	}
	return nil
}

// quorum judges whether this server can be stopped.
func (l *Live) quorum() []Finding {
	members, own := l.c.Ensemble.Members, l.c.Ensemble.ID
	var all []Finding
	whole := true // all voters serve
	for _, s := range members.Servers() {
		if l.Serves(s.ID) {
			continue
		}
		whole = whole && s.Role == ensemble.Observer
		m := l.absent(s.ID)
		if m == nil {
			all = append(all, Finding{Unseen, s.Line(), "it is not known whether this member serves", "", "name the client addresses of all members with --live"})
			continue
		}
		f := Finding{Warns, s.Line(), "the server does not serve", "while it is away, one failure less is tolerated", "bring it up before you replace another one"}
		if m.Err != nil {
			f.What += ": " + m.Err.Error()
		}
		switch {
		case s.Role == ensemble.Observer:
			f.Why = "it has no vote, so the quorum does not need it, but its clients do"
		case !members.HasQuorum(func(id ensemble.ServerID) bool { return id != own && l.Serves(id) }):
			f.Severity, f.Why = Prevents, "the ensemble has no quorum when this server is stopped"
		}
		all = append(all, f)
	}
	if whole && !members.HasQuorum(func(id ensemble.ServerID) bool { return id != own }) {
		all = append(all, Finding{Warns, l.c.File, "the other members are no quorum without this one", "the ensemble does not serve while this server is stopped", "expect a gap, or add members first"})
	}
	return all
}

// zxidsLeft is the number of transactions left in an epoch below which a finding says so: a day of
// 3,000 a second.
const zxidsLeft = 1 << 28

// unseen reports whether it is unknown of a member whether it serves.
func (l *Live) unseen() bool {
	return slices.ContainsFunc(l.c.Ensemble.Members.Servers(), func(s ensemble.Server) bool { return l.absent(s.ID) == nil && !l.Serves(s.ID) })
}

// leader judges the leader and what it says of the others.
func (l *Live) leader() []Finding {
	if l.unseen() && len(l.leaders) == 0 {
		return nil // quorum says which members were not asked
	}
	if len(l.leaders) != 1 {
		return []Finding{{Prevents, "ensemble", fmt.Sprintf("%s, want one", count(len(l.leaders), "leader")), "there is no quorum, or an election is going on", "wait until bellwether status names one leader; if this stays, name all members with --live"}}
	}
	var all []Finding
	lead := l.leaders[0]
	want := -1 // the leader itself
	for _, id := range l.c.Ensemble.Members.Voters() {
		if l.Serves(id) {
			want++
		}
	}
	if followers, said := lead.Mntr["synced_followers"]; said && int(followers) < want {
		all = append(all, Finding{Prevents, lead.Server, fmt.Sprintf("the leader has %.0f followers that are caught up, want %d", followers, want),
			"a server that is not caught up does not count in the quorum that remains", "wait until all followers are caught up"})
	}
	if pending := lead.Mntr["pending_syncs"]; pending > pendingMax {
		all = append(all, Finding{Warns, lead.Server, fmt.Sprintf("%.0f requests sync wait", pending), "the followers are behind", "wait, or replace servers when there is less load"})
	}
	for i := range l.members {
		m := &l.members[i]
		if behind := int64(zxidOf(lead)) - int64(zxidOf(m)); serving(m) && zxidOf(lead).Epoch() == zxidOf(m).Epoch() && behind > aheadMax {
			all = append(all, Finding{Warns, m.Server, fmt.Sprintf("is %d transactions behind the leader", behind), "it must catch up before it counts", "wait until it has caught up"})
		}
	}
	if zxid := zxidOf(lead); zxid >= 0 && 1<<32-zxid&(1<<32-1) < zxidsLeft {
		all = append(all, Finding{Warns, lead.Server, fmt.Sprintf("its zxid %s is close to the end of its epoch", lead.Srvr.Zxid), "the servers elect a leader when the counter ends", "restart the leader before the takeover"})
	}
	return all
}

// pendingMax is the number of waiting sync requests above which a finding says so.
const pendingMax = 10

// observers notes members without a vote, and sessions that only one server knows.
func (l *Live) observers() []Finding {
	var all []Finding
	if members := l.c.Ensemble.Members; len(members.Voters()) < len(members.Servers()) {
		all = append(all, Finding{Warns, l.c.File, count(len(members.Servers())-len(members.Voters()), "member") + " without a vote (observer)",
			"their clients lose their connections while they are replaced, not their sessions", "replace observers like followers, before the leader"})
	}
	for i := range l.members {
		if n := l.members[i].Mntr["local_sessions"]; n > 0 {
			all = append(all, Finding{Warns, l.members[i].Server, fmt.Sprintf("%.0f local sessions", n), "a local session ends when its client changes to another server, as with every restart", ""})
		}
	}
	return all
}

// Next says what the runbook does after a verdict of yes.
func (l *Live) Next() string {
	start := "stop ZooKeeper here, start bellwether serve --config " + l.c.File + " as the same user"
	if l.stopped() {
		start = "ZooKeeper does not answer here: see that it is stopped, start bellwether serve --config " + l.c.File + " as the same user"
	}
	if l.c.Standalone() {
		return start + ", and compare bellwether status (docs/migrate.md, a standalone server)"
	}
	if l.Leads(l.c.Ensemble.ID) {
		var zookeepers []string
		for i := range l.members {
			if m := &l.members[i]; m != l.leaders[0] && m.Err == nil && !strings.Contains(strings.ToLower(m.Srvr.Version), "bellwether") {
				zookeepers = append(zookeepers, m.Server)
			}
		}
		if len(zookeepers) > 0 {
			return "this server leads: replace it last, after " + strings.Join(zookeepers, ", ")
		}
	}
	var all []string
	for i := range l.members {
		all = append(all, l.members[i].Server)
	}
	role := "a follower"
	if self, _ := l.c.Ensemble.Members.Server(l.c.Ensemble.ID); self.Role == ensemble.Observer {
		role = "an observer"
	}
	return start + ", and wait until bellwether status --server " + strings.Join(all, ",") + " shows it as " + role + " that is not behind (docs/migrate.md, an ensemble)"
}

// stopped reports whether this member does not answer.
func (l *Live) stopped() bool {
	if l.c.Standalone() {
		return false // without its answer there is no verdict of yes
	}
	if m := l.byID[l.c.Ensemble.ID]; m != nil {
		return m.Err != nil
	}
	return l.absent(l.c.Ensemble.ID) != nil && !slices.ContainsFunc(l.silent, func(m *Member) bool { return m.Err == nil })
}
