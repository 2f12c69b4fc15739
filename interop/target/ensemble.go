package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rolePoll is the time between two requests for the servers' roles.
const rolePoll = 20 * time.Millisecond

// Ensemble is a set of server processes that elect a leader. Server i has the id i+1
// unless the options give other ids. Its methods are not safe for concurrent use.
type Ensemble struct {
	Servers []*Server
}

// Place is where a server of an ensemble runs. The zero value is the loopback address with
// free ports.
type Place struct {
	Host  string            // address of the host; the ports are then ZooKeeper's usual ones
	Enter []string          // a command prefix that runs the server there
	Dial  DialFunc          // opens connections from there; nil: from this process
	Data  string            // data directory of the server; empty: a new one
	Calls map[int][2]string // quorum and election addresses under which it reaches other servers, by number
}

// DialFunc opens a connection.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (p Place) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.Dial == nil {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return p.Dial(ctx, network, address)
}

// EnsembleOptions describe an ensemble.
type EnsembleOptions struct {
	Kinds  []Kind            // one for each server
	Places []Place           // one for each server, or nil for loopback
	Extra  map[string]string // additional lines of every zoo.cfg
	JVM    []string          // options of Apache's Java process, as in Options
	IDs    []int64           // the servers' ids; nil: 1, 2 and so on

	// Properties are Java properties that cannot be set in zoo.cfg, as name=value.
	Properties []string
	// Observers is the number of servers, at the end of the list, without a vote.
	Observers int
	// Unlisted leaves the observers out of the other servers' configuration.
	Unlisted bool
	// Forged says that the test changes what is on the disks, so that ZooKeeper may report a difference.
	Forged bool
	// Loopback is the loopback address that all servers use; empty: 127.0.0.1.
	Loopback string
	// Dead is an additional address of each server, listed before its own, where nobody
	// answers; empty: none. It needs the property zookeeper.multiAddress.enabled=true.
	Dead string
}

// NewEnsemble writes the configuration of an ensemble into folders below dir. It starts no
// process.
func NewEnsemble(dir string, opt EnsembleOptions) (*Ensemble, error) {
	e := &Ensemble{}
	var links [][2]string // the quorum and election address of each server
	for i, kind := range opt.Kinds {
		var place Place
		if opt.Places != nil {
			place = opt.Places[i]
		}
		client, link, err := addresses(place, cmp.Or(opt.Loopback, "127.0.0.1"))
		if err != nil {
			return nil, err
		}
		links = append(links, link)
		s := &Server{Kind: kind, Addr: client, Data: place.Data, dir: filepath.Join(dir, strconv.Itoa(i+1)),
			jvm: opt.JVM, reapMS: 60_000, properties: opt.Properties, place: place}
		if s.jvm == nil {
			s.jvm = JVM
		}
		if s.Data == "" {
			s.Data = filepath.Join(s.dir, "data")
		}
		e.Servers = append(e.Servers, s)
	}
	for i, s := range e.Servers {
		if err := s.join(opt.id(i), links, opt); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// addresses returns the addresses of a server, for clients and for other servers.
func addresses(p Place, loopback string) (client string, link [2]string, err error) {
	if p.Host != "" {
		return p.Host + ":2181", [2]string{p.Host + ":2888", p.Host + ":3888"}, nil
	}
	var errs [3]error
	client, errs[0] = freeAddrOf(loopback)
	link[0], errs[1] = freeAddrOf(loopback)
	link[1], errs[2] = freeAddrOf(loopback)
	return client, link, errors.Join(errs[:]...)
}

// id returns the id of server i.
func (o *EnsembleOptions) id(i int) int64 {
	if o.IDs == nil {
		return int64(i + 1)
	}
	return o.IDs[i]
}

// join writes zoo.cfg and myid of one server.
func (s *Server) join(id int64, links [][2]string, opt EnsembleOptions) error {
	voters := len(links) - opt.Observers
	for i, link := range links {
		if opt.Unlisted && i >= voters && opt.id(i) != id {
			continue
		}
		if other, ok := s.place.Calls[i+1]; ok {
			link = other
		}
		_, port, err := net.SplitHostPort(link[1])
		if err != nil {
			return err
		}
		both := link[0] + ":" + port
		if opt.Dead != "" {
			_, quorum, err := net.SplitHostPort(link[0])
			if err != nil {
				return err
			}
			both = opt.Dead + ":" + quorum + ":" + port + "|" + both
		}
		role := "participant"
		if i >= voters {
			role = "observer"
		}
		s.lines = append(s.lines, fmt.Sprintf("server.%d=%s:%s", opt.id(i), both, role))
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := s.writeConfig(opt.Extra); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Data, "myid"), []byte(strconv.FormatInt(id, 10)+"\n"), 0o644)
}

// EnsembleFor is NewEnsemble for one test. It starts every server and ends the processes
// with the test. If the test fails, it prints the ends of the logs. It also fails the test if
// an Apache server has reported a tree that differs from its leader's.
func EnsembleFor(t testing.TB, opt EnsembleOptions) *Ensemble {
	t.Helper()
	e, err := NewEnsemble(t.TempDir(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(Report(e.Servers...))
		}
		e.Kill()
		if !opt.Forged {
			e.agree(t)
		}
	})
	if err := e.Begin(); err != nil {
		t.Fatal(err)
	}
	return e
}

// agree fails the test if an Apache server has logged that a transaction gave its tree another
// digest than its leader's.
func (e *Ensemble) agree(t testing.TB) {
	for i, s := range e.Servers {
		what, err := e.Mismatch(i)
		if err != nil {
			t.Error(err)
		}
		if what != "" {
			t.Errorf("server %d (%s) has a tree that differs from its leader's: %s", i+1, s.Kind, what[:min(len(what), 1000)])
		}
	}
}

// Begin starts every server that is not running.
func (e *Ensemble) Begin() error {
	for _, s := range e.Servers {
		if s.Running() {
			continue
		}
		if err := s.Begin(); err != nil {
			return err
		}
	}
	return nil
}

// Kill kills all processes, stopped ones included.
func (e *Ensemble) Kill() {
	for _, s := range e.Servers {
		s.Kill()
	}
}

// Ports returns the addresses on which a server listens for other servers: its quorum port and its election port.
func (e *Ensemble) Ports(server int) (quorum, election string) {
	var line string
	for _, l := range e.Servers[server].lines { // the first server may not list it
		if text, ok := strings.CutPrefix(l, fmt.Sprintf("server.%d=", server+1)); ok {
			line = text
		}
	}
	parts := strings.Split(line, ":") // host, quorum port, election port, role
	return net.JoinHostPort(parts[0], parts[1]), net.JoinHostPort(parts[0], parts[2])
}

// Addrs returns the connect string with all servers.
func (e *Ensemble) Addrs() string {
	var all []string
	for _, s := range e.Servers {
		all = append(all, s.Addr)
	}
	return strings.Join(all, ",")
}

// Roles returns the role that each server reports: leader, follower, or "" if it does not
// serve.
func (e *Ensemble) Roles() []string {
	var all []string
	for _, s := range e.Servers {
		all = append(all, s.Role())
	}
	return all
}

// AwaitLeader waits until exactly one of the servers leads, and returns its index. It
// ignores the servers in except.
func (e *Ensemble) AwaitLeader(timeout time.Duration, except ...int) (int, error) {
	end := time.Now().Add(timeout)
	for {
		var leaders []int
		for i, s := range e.Servers {
			if !slices.Contains(except, i) && s.Role() == "leader" {
				leaders = append(leaders, i)
			}
		}
		if len(leaders) == 1 {
			return leaders[0], nil
		}
		if time.Now().After(end) {
			return -1, fmt.Errorf("no server, or more than one, leads after %v: %q", timeout, e.Roles())
		}
		<-time.After(rolePoll)
	}
}

// AwaitWhole waits until one server leads and all others follow or observe it, and returns the leader's
// index.
func (e *Ensemble) AwaitWhole(timeout time.Duration) (int, error) {
	end := time.Now().Add(timeout)
	for {
		roles := e.Roles()
		leader, followers := slices.Index(roles, "leader"), 0
		for _, role := range roles {
			if role == "follower" || role == "observer" {
				followers++
			}
		}
		if leader >= 0 && followers == len(roles)-1 {
			return leader, nil
		}
		for i, s := range e.Servers {
			if s.leftByItself() {
				return -1, fmt.Errorf("server %d ended by itself: %v", i+1, s.cmd.ProcessState)
			}
		}
		if time.Now().After(end) {
			return -1, fmt.Errorf("not all servers serve within %v: %q", timeout, roles)
		}
		<-time.After(rolePoll)
	}
}

// Role returns the role that the server reports, such as leader or follower, or "" if it
// does not serve or does not answer.
func (s *Server) Role() string {
	if !s.Running() {
		return ""
	}
	text, err := s.word("srvr", pollTimeout)
	if err != nil {
		return ""
	}
	_, mode, _ := strings.Cut(text, "\nMode: ")
	mode, _, _ = strings.Cut(mode, "\n")
	return mode
}

// Zxid returns the newest transaction that the server reports, or -1 if it does not serve or does not answer.
func (s *Server) Zxid() int64 {
	text, err := s.word("srvr", pollTimeout)
	_, zxid, found := strings.Cut(text, "\nZxid: ")
	zxid, _, _ = strings.Cut(zxid, "\n")
	n, bad := strconv.ParseInt(zxid, 0, 64)
	if err != nil || !found || bad != nil {
		return -1
	}
	return n
}

// Running reports whether the process is running.
func (s *Server) Running() bool { return s.running() }

// Signal sends a signal to the process.
func (s *Server) Signal(sig syscall.Signal) error {
	if s.process == nil {
		return errors.New("the server is not running")
	}
	return s.signal(sig)
}
