package blackbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// quick holds the time limits of the ensembles of this package. They are small, so that scenes
// are short.
var quick = map[string]string{
	"tickTime":          "200",
	"initLimit":         "50",
	"syncLimit":         "6",
	"maxSessionTimeout": "60000",
	"preAllocSize":      "64",
}

// longSession is a session timeout that is longer than any scene.
const longSession = 50 * time.Second

// scene is an ensemble under a load.
type scene struct {
	*network
	t    testing.TB
	e    *target.Ensemble
	load *load
	at   []*worker // client i uses only server i
	any  *worker   // this client may use any server

	access access
	lease  time.Duration // how old the knowledge of a server that answers a ping may be: syncLimit+2 ticks
	lost   int           // acknowledged creates that nothingLost has missed
}

// access is how the clients reach the servers; the zero value means without TLS and without a login.
type access struct {
	port    string     // the servers' port for these clients; empty: clientPort
	options zk.Options // of Bellwether's clients
	acl     zk.ACLs    // of the znodes of the load and of the election; empty: open to all
}

// at returns the addresses of servers with the port for these clients.
func (a access) at(servers string) string {
	if a.port == "" {
		return servers
	}
	return strings.ReplaceAll(servers, ":2181", ":"+a.port)
}

// setting describes a scene; the zero value means three Bellwether servers.
type setting struct {
	kinds []target.Kind
	// observers is the number of servers, at the end of kinds, without a vote.
	observers int
	extra     map[string]string
	delay     time.Duration // delay between servers, in each direction
	before    func(*network, []target.Place)
	idle      bool // no load and no writes
	// alone: no other scene runs meanwhile, because a busy machine could itself be the reason for an election or
	// a long time without a write.
	alone bool

	properties []string // Java properties of the servers
	access     access
}

// begin creates the hosts, servers and clients, and waits until all of them work. The hosts of
// the servers come first, followed by one host for the clients.
func begin(t *testing.T, s setting) *scene {
	t.Parallel()
	enter(t, s.alone)
	if s.kinds == nil {
		s.kinds = ours(3)
	}
	n := len(s.kinds)
	w := newNetwork(t, n+2)
	var places []target.Place
	for _, h := range w.hosts[:n] {
		places = append(places, h.place())
	}
	if s.delay > 0 {
		w.relayBetween(places, w.hosts[n+1], s.delay)
	}
	if s.before != nil {
		s.before(w, places)
	}
	extra := maps.Clone(quick)
	maps.Copy(extra, s.extra)
	sc := &scene{network: w, t: t, access: s.access, lease: leaseDelay(t, extra)}
	sc.e = target.EnsembleFor(t, target.EnsembleOptions{Kinds: s.kinds, Places: places, Extra: extra, Observers: s.observers, Properties: s.properties})
	sc.awaitWhole()
	if !s.idle {
		sc.startLoad()
		sc.load.awaitWrites(5)
	}
	return sc
}

// ours returns the kinds of n Bellwether servers.
func ours(n int) []target.Kind {
	kinds := make([]target.Kind, n)
	for i := range kinds {
		kinds[i] = target.Bellwether
	}
	return kinds
}

// clientHost returns the index of the clients' host.
func (s *scene) clientHost() int { return len(s.e.Servers) }

// startLoad starts a client at each server and one that may use any server.
func (s *scene) startLoad() {
	s.t.Helper()
	first := s.client(s.e.Addrs(), longSession)
	s.load = newLoad(s.t, first, s.access.acl)
	for _, server := range s.e.Servers {
		s.at = append(s.at, s.load.add(s.client(server.Addr, longSession)))
	}
	s.any = s.load.add(first)
}

// client opens a session from the clients' host. It is closed at the end of the test.
func (s *scene) client(servers string, timeout time.Duration) *zk.Client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitMax)
	defer cancel()
	options := s.access.options
	options.SessionTimeout, options.Dial = timeout, s.hosts[s.clientHost()].dial
	c, err := zk.Connect(ctx, s.access.at(servers), &options)
	if err != nil {
		s.t.Fatalf("connect to %s: %v", servers, err)
	}
	s.t.Cleanup(func() { c.Detach() })
	return c
}

func (s *scene) awaitWhole() int {
	s.t.Helper()
	leader, err := s.e.AwaitWhole(waitMax)
	if err != nil {
		s.t.Fatal(err)
	}
	s.awaitApplied()
	return leader
}

// awaitApplied waits until the ZooKeeper servers have applied what is committed now. They serve before that. One that
// loses its leader meanwhile reads its log into the tree while another thread still changes that tree, and
// then counts digest mismatches.
func (s *scene) awaitApplied() {
	s.t.Helper()
	newest := int64(0)
	for _, server := range s.e.Servers {
		if zxid := server.Zxid(); zxid&(1<<32-1) > 0 { // otherwise it is that of an epoch without a transaction
			newest = max(newest, zxid)
		}
	}
	end := time.Now().Add(waitMax)
	for i, server := range s.e.Servers {
		for server.Kind == target.Apache && server.Zxid() < newest {
			if time.Now().After(end) {
				s.t.Fatalf("server %d has not applied %#x, only %#x", i+1, newest, server.Zxid())
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// awaitLeader waits for a leader among the servers that are not in except.
func (s *scene) awaitLeader(except ...int) int {
	s.t.Helper()
	leader, err := s.e.AwaitLeader(waitMax, except...)
	if err != nil {
		s.t.Fatal(err)
	}
	return leader
}

// awaitNoLeader waits until no server reports that it leads.
func (s *scene) awaitNoLeader() {
	s.t.Helper()
	for end := time.Now().Add(waitMax); slices.Contains(s.e.Roles(), "leader"); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("still a leader: %q", s.e.Roles())
		}
	}
}

// awaitIdle waits until none of these servers serves, because they have no quorum.
func (s *scene) awaitIdle(servers ...int) {
	s.t.Helper()
	s.awaitRoles("serve", servers, func(role string) bool { return role == "" })
}

func (s *scene) awaitRoles(what string, servers []int, fits func(role string) bool) {
	s.t.Helper()
	for end := time.Now().Add(waitMax); ; <-time.After(20 * time.Millisecond) {
		var not []int
		for _, i := range servers {
			if !fits(s.e.Servers[i].Role()) {
				not = append(not, i+1)
			}
		}
		if len(not) == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("servers %v still %s: %q", not, what, s.e.Roles())
		}
	}
}

// others returns the servers that are not in the list.
func (s *scene) others(except ...int) []int {
	var all []int
	for i := range s.e.Servers {
		if !slices.Contains(except, i) {
			all = append(all, i)
		}
	}
	return all
}

// workers returns the clients of these servers.
func (s *scene) workers(servers ...int) []*worker {
	var all []*worker
	for _, i := range servers {
		all = append(all, s.at[i])
	}
	return all
}

func (s *scene) restart(i int) {
	s.t.Helper()
	s.must(s.e.Servers[i].Begin())
}

func (s *scene) signal(i int, sig syscall.Signal) {
	s.t.Helper()
	s.must(s.e.Servers[i].Signal(sig))
}

// finish restores the network and checks the final state: one leader, every client working, equal
// trees, nothing lost, and a valid history.
func (s *scene) finish() {
	s.t.Helper()
	s.Heal()
	s.must(s.e.Begin())
	s.awaitWhole()
	s.load.awaitWrites(5)
	s.load.end()
	s.nothingLost(s.sameTrees())
	s.checkHistory()
	s.awaitSameZxid()
}

// checkHistory checks the replies that the clients got.
func (s *scene) checkHistory() {
	s.t.Helper()
	l := s.load
	if err := linearizable(l.history); err != nil {
		s.t.Error(err)
	}
	l.facts.sort()
	reads := 0
	for _, w := range l.clients {
		reads += w.reads
		if err := l.facts.backwards(w.seen); err != nil {
			s.t.Errorf("client %d: %v", w.id, err)
		}
	}
	s.t.Logf("%d writes acknowledged, %d creates unsure, %d reads", l.writes, len(l.unsure), reads)
}

// nothingLost compares the kept znodes with the replies to the clients.
func (s *scene) nothingLost(tree map[string]string) {
	s.t.Helper()
	for path, want := range s.load.kept {
		if got, ok := tree[path]; !ok || !strings.HasPrefix(got, want+" ") {
			s.lost++
			s.t.Errorf("%s was acknowledged but is lost: %q", path, got)
		}
	}
	for path := range tree {
		if !strings.HasPrefix(path, kept+"/") {
			continue
		}
		_, said := s.load.kept[path]
		if _, unsure := s.load.unsure[path]; !said && !unsure {
			s.t.Errorf("%s exists although its create was refused", path)
		}
	}
}

// readTrees reads all znodes through each server.
func (s *scene) readTrees() []map[string]string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitMax)
	defer cancel()
	var trees []map[string]string
	for i, server := range s.e.Servers {
		c := s.client(server.Addr, longSession)
		tree := map[string]string{}
		err := c.Sync(ctx, "/")
		if err == nil {
			err = readTree(ctx, c, "/", tree)
		}
		if err != nil {
			s.t.Fatalf("tree of server %d: %v", i+1, err)
		}
		s.must(c.Close(ctx))
		trees = append(trees, tree)
	}
	return trees
}

// readTree reads a znode and all below it, each as its data, its Stat and its access-control list.
func readTree(ctx context.Context, c *zk.Client, path string, tree map[string]string) error {
	data, stat, err := c.Get(ctx, path)
	if err != nil {
		return err
	}
	acl, _, err := c.GetACL(ctx, path)
	if err != nil {
		return err
	}
	if path != "/zookeeper/config" { // not written by a transaction: each server has its own file
		tree[path] = fmt.Sprintf("%s %+v %v", data, stat, acl)
	}
	names, _, err := c.Children(ctx, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := readTree(ctx, c, strings.TrimSuffix(path, "/")+"/"+name, tree); err != nil {
			return err
		}
	}
	return nil
}

// treeReads is how often the trees are read at most. A session of the scene may end while they are read, and
// take its ephemeral znodes along.
const treeReads = 5

// sameTrees checks that all servers show the same tree, and returns it.
func (s *scene) sameTrees() map[string]string {
	s.t.Helper()
	for n := 1; ; n++ {
		trees := s.readTrees()
		var wrong []string
		for i, tree := range trees {
			wrong = append(wrong, differences(i, trees[0], tree)...)
		}
		if len(wrong) > 0 && n < treeReads {
			continue
		}
		for _, difference := range wrong {
			s.t.Error(difference)
		}
		return trees[0]
	}
}

// differences says where the tree of a server differs from that of the first.
func differences(server int, want, got map[string]string) (all []string) {
	for path := range want {
		if got[path] != want[path] {
			all = append(all, fmt.Sprintf("%s is %q at server %d and %q at server 1", path, got[path], server+1, want[path]))
		}
	}
	if len(got) != len(want) {
		all = append(all, fmt.Sprintf("%d znodes at server %d, %d at server 1", len(got), server+1, len(want)))
	}
	return all
}

// awaitSameZxid waits until all servers report the same newest transaction.
func (s *scene) awaitSameZxid() {
	s.t.Helper()
	for end := time.Now().Add(waitMax); ; <-time.After(20 * time.Millisecond) {
		same := map[string]bool{}
		for _, server := range s.e.Servers {
			text, err := server.Word("srvr")
			_, zxid, _ := strings.Cut(text, "\nZxid: ")
			zxid, _, _ = strings.Cut(zxid, "\n")
			if err != nil || zxid == "" {
				zxid = fmt.Sprintf("none: %v", err)
			}
			same[zxid] = true
		}
		if len(same) == 1 {
			break
		}
		if time.Now().After(end) {
			s.t.Fatalf("the servers' newest transactions stay different: %v", same)
		}
	}
	s.sameDigests()
}

// sameDigests checks that no server has found a digest that differs from its leader's.
func (s *scene) sameDigests() {
	s.t.Helper()
	for i, server := range s.e.Servers {
		if server.Kind == target.Apache {
			what, err := s.e.Mismatch(i)
			s.must(err)
			if what != "" {
				s.t.Errorf("server %d: %s", i+1, what[:min(len(what), 1000)])
			}
			continue
		}
		text, err := server.Word("mntr")
		s.must(err)
		_, count, found := strings.Cut(text, "\nzk_digest_mismatches_count\t")
		count, _, _ = strings.Cut(count, "\n")
		if !found || count != "0" {
			s.t.Errorf("server %d counts %q digest mismatches", i+1, count)
		}
	}
}
