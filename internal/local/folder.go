package local

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bellwether/internal/portblock"
)

// Options describe an ensemble.
type Options struct {
	// Dir contains a folder for each server, named by its number.
	Dir string
	// Servers is the number of servers. If Dir already contains an ensemble, it must be
	// the number there.
	Servers int
	// Observers is how many of the servers, the last ones, are observers in a new ensemble.
	Observers int
	// Host is the address on which all servers listen. Port is the client port of the
	// first server; the others use the following ports. 0: any free ports.
	Host string
	Port int
	// Secure makes the client ports ports with TLS; Settings must name the key store.
	Secure bool
	// Admin gives each server an admin port: a free one on 127.0.0.1.
	Admin bool
	// Settings are additional lines for each zoo.cfg.
	Settings []string
}

// Ensemble is a set of server processes on this machine.
type Ensemble struct {
	opt     Options
	servers []*server

	mu      sync.Mutex // guards which processes run, and how they ended
	stopped bool
}

// Make creates the missing folders of an ensemble and finds ports for it. In existing
// folders, the data and the ports between servers stay as they are.
func Make(o Options) (*Ensemble, error) {
	if o.Servers < 1 || o.Servers > 99 {
		return nil, fmt.Errorf("an ensemble of %d servers: give a number from 1 to 99", o.Servers)
	}
	if o.Observers < 0 || o.Observers >= o.Servers {
		return nil, fmt.Errorf("%d observers among %d servers: at least one server must vote", o.Observers, o.Servers)
	}
	e := &Ensemble{opt: o}
	for i := 1; i <= o.Servers; i++ {
		dir, err := filepath.Abs(filepath.Join(o.Dir, strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		e.servers = append(e.servers, &server{id: i, dir: dir})
	}
	extra := filepath.Join(o.Dir, strconv.Itoa(o.Servers+1))
	if _, err := os.Stat(extra); err == nil {
		return nil, fmt.Errorf("%s contains more than %d servers: give the number of servers in it, or another folder", o.Dir, o.Servers)
	}
	lines, err := e.members()
	if err != nil {
		return nil, err
	}
	clients, err := e.clientPorts(lines)
	if err != nil {
		return nil, err
	}
	if o.Admin {
		if err := e.adminPorts(lines, clients); err != nil {
			return nil, err
		}
	}
	lines = e.withClients(lines, clients)
	for i, s := range e.servers {
		if err := e.configure(s, clients[i], lines); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// membersFile is the name of the file that contains the server lines of all servers.
const membersFile = "members"

// members returns the server lines: those in Dir, or new ones.
func (e *Ensemble) members() ([]string, error) {
	file := filepath.Join(e.opt.Dir, membersFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return e.newMembers(file)
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != len(e.servers) {
		return nil, fmt.Errorf("%s contains %d servers, not %d: give that number, or another folder", file, len(lines), len(e.servers))
	}
	return lines, nil
}

// newMembers chooses ports for a new ensemble and writes its members file.
func (e *Ensemble) newMembers(file string) ([]string, error) {
	free, err := portblock.Free(e.opt.Host, 2*len(e.servers))
	if err != nil {
		return nil, err
	}
	var lines []string
	for i, s := range e.servers {
		line := fmt.Sprintf("server.%d=%s:%d:%d", s.id, bracketed(e.opt.Host), free[2*i], free[2*i+1])
		if i >= len(e.servers)-e.opt.Observers {
			line += ":observer"
		}
		lines = append(lines, line)
	}
	if err := os.MkdirAll(e.opt.Dir, 0o755); err != nil {
		return nil, err
	}
	return lines, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// clientPorts returns the client ports of the servers: those of Options, or free ones
// that no server uses as its quorum or election port.
func (e *Ensemble) clientPorts(members []string) ([]int, error) {
	n := len(e.servers)
	if e.opt.Port > 0 {
		var ports []int
		for i := range n {
			ports = append(ports, e.opt.Port+i)
		}
		return ports, nil
	}
	free, err := portblock.Free(e.opt.Host, 3*n) // the servers use at most 2*n of them
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(free, func(port int) bool { return isMemberPort(members, port) })[:n], nil
}

// isMemberPort reports whether a server has a port as its quorum or election port.
func isMemberPort(members []string, port int) bool {
	taken := strings.Join(members, "\n") + "\n"
	return strings.Contains(taken, fmt.Sprintf(":%d:", port)) || strings.Contains(taken, fmt.Sprintf(":%d\n", port))
}

// adminHost is where the admin ports are: only this machine reaches them.
const adminHost = "127.0.0.1"

// adminPorts gives each server a free port that no server uses for something else.
func (e *Ensemble) adminPorts(members []string, clients []int) error {
	free, err := portblock.Free(adminHost, 4*len(e.servers)) // the servers use at most three ports each
	if err != nil {
		return err
	}
	free = slices.DeleteFunc(free, func(port int) bool { return isMemberPort(members, port) || slices.Contains(clients, port) })
	for i, s := range e.servers {
		s.admin = free[i]
	}
	return nil
}

// withClients adds to each server line where clients connect, so that each server can ask the
// others. A server line cannot name a port with TLS.
func (e *Ensemble) withClients(members []string, ports []int) []string {
	if e.opt.Secure {
		return members
	}
	lines := make([]string, len(members))
	for i, line := range members {
		lines[i] = fmt.Sprintf("%s;%s:%d", line, bracketed(e.opt.Host), ports[i])
	}
	return lines
}

// configure writes a server's zoo.cfg and myid.
func (e *Ensemble) configure(s *server, port int, members []string) error {
	s.client = net.JoinHostPort(e.opt.Host, strconv.Itoa(port))
	s.config = filepath.Join(s.dir, "zoo.cfg")
	key := "clientPort"
	if e.opt.Secure {
		key = "secureClientPort"
	}
	lines := append([]string{
		"tickTime=2000", "initLimit=10", "syncLimit=5",
		"dataDir=" + s.dir,
		key + "Address=" + e.opt.Host,
		key + "=" + strconv.Itoa(port),
		"4lw.commands.whitelist=*",
		"maxClientCnxns=0", // all clients are on this machine too
		"admin.enableServer=" + strconv.FormatBool(e.opt.Admin),
	}, e.opt.Settings...)
	if e.opt.Admin {
		lines = append(lines, "admin.serverAddress="+adminHost, "admin.serverPort="+strconv.Itoa(s.admin))
	}
	lines = append(lines, members...)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(s.config, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "myid"), []byte(strconv.Itoa(s.id)+"\n"), 0o644)
}

// bracketed returns a host in the form of a server line, with IPv6 addresses in brackets.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// Admin returns the address of a server's admin port; empty if there is none.
func (e *Ensemble) Admin(id int) string {
	if e.servers[id-1].admin == 0 {
		return ""
	}
	return net.JoinHostPort(adminHost, strconv.Itoa(e.servers[id-1].admin))
}

// Clients returns the connect string with all servers.
func (e *Ensemble) Clients() string {
	var all []string
	for _, s := range e.servers {
		all = append(all, s.client)
	}
	return strings.Join(all, ",")
}

// Servers returns the number of servers. Server ids begin at 1.
func (e *Ensemble) Servers() int { return len(e.servers) }

// Folder returns the folder of a server, with its zoo.cfg and its data.
func (e *Ensemble) Folder(id int) string { return e.servers[id-1].dir }

// Client returns the client address of a server.
func (e *Ensemble) Client(id int) string { return e.servers[id-1].client }
