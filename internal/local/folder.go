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

// Options say what an ensemble is made of.
type Options struct {
	// Dir holds a folder for each server, named by its number.
	Dir string
	// Servers is how many there are. Where Dir holds an ensemble already it
	// must be as many as there.
	Servers int
	// Host is where all of them listen; Port the client port of the first one,
	// the others take those behind it. 0: any free ones.
	Host string
	Port int
	// Settings are further lines for each zoo.cfg.
	Settings []string
}

// Ensemble is a set of servers of this machine.
type Ensemble struct {
	opt     Options
	servers []*server

	mu      sync.Mutex // guards which processes run, and how they ended
	stopped bool
}

// Make makes the folders of an ensemble that do not exist yet, and finds
// ports for it. What exists is taken up as it is: the ports between servers
// stay what they were.
func Make(o Options) (*Ensemble, error) {
	if o.Servers < 1 || o.Servers > 99 {
		return nil, fmt.Errorf("an ensemble of %d servers: from 1 to 99 are possible", o.Servers)
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
		return nil, fmt.Errorf("%s holds more servers than %d: ask for as many, or name another folder", o.Dir, o.Servers)
	}
	lines, err := e.members()
	if err != nil {
		return nil, err
	}
	clients, err := e.clientPorts(lines)
	if err != nil {
		return nil, err
	}
	for i, s := range e.servers {
		if err := e.configure(s, clients[i], lines); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// membersFile keeps the lines that all servers share.
const membersFile = "members"

// members are the server lines: those of the folder, or new ones.
func (e *Ensemble) members() ([]string, error) {
	file := filepath.Join(e.opt.Dir, membersFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return e.found(file)
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != len(e.servers) {
		return nil, fmt.Errorf("%s names another number of servers, %d and not %d: ask for as many, or name another folder", file, len(lines), len(e.servers))
	}
	return lines, nil
}

// found begins a new ensemble.
func (e *Ensemble) found(file string) ([]string, error) {
	free, err := portblock.Free(e.opt.Host, 2*len(e.servers))
	if err != nil {
		return nil, err
	}
	var lines []string
	for i, s := range e.servers {
		lines = append(lines, fmt.Sprintf("server.%d=%s:%d:%d", s.id, bracketed(e.opt.Host), free[2*i], free[2*i+1]))
	}
	if err := os.MkdirAll(e.opt.Dir, 0o755); err != nil {
		return nil, err
	}
	return lines, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// clientPorts are those of the servers for clients: as asked for, or any that
// are free and that the servers do not have for each other.
func (e *Ensemble) clientPorts(members []string) ([]int, error) {
	n := len(e.servers)
	if e.opt.Port > 0 {
		var behind []int
		for i := range n {
			behind = append(behind, e.opt.Port+i)
		}
		return behind, nil
	}
	free, err := portblock.Free(e.opt.Host, 3*n) // the servers have 2*n at most of them
	if err != nil {
		return nil, err
	}
	taken := strings.Join(members, "\n") + "\n"
	return slices.DeleteFunc(free, func(port int) bool {
		return strings.Contains(taken, fmt.Sprintf(":%d:", port)) || strings.Contains(taken, fmt.Sprintf(":%d\n", port))
	})[:n], nil
}

// configure writes a server's zoo.cfg and myid.
func (e *Ensemble) configure(s *server, port int, members []string) error {
	s.client = net.JoinHostPort(e.opt.Host, strconv.Itoa(port))
	s.config = filepath.Join(s.dir, "zoo.cfg")
	lines := append([]string{
		"tickTime=2000", "initLimit=10", "syncLimit=5",
		"dataDir=" + s.dir,
		"clientPortAddress=" + e.opt.Host,
		"clientPort=" + strconv.Itoa(port),
		"4lw.commands.whitelist=*",
		"maxClientCnxns=0", // clients are of this machine too
		"admin.enableServer=false",
	}, e.opt.Settings...)
	lines = append(lines, members...)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(s.config, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "myid"), []byte(strconv.Itoa(s.id)+"\n"), 0o644)
}

// bracketed is a host as a server line has it.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// Clients is the connect string of all servers.
func (e *Ensemble) Clients() string {
	var all []string
	for _, s := range e.servers {
		all = append(all, s.client)
	}
	return strings.Join(all, ",")
}

// Servers is how many there are; their numbers begin at 1.
func (e *Ensemble) Servers() int { return len(e.servers) }

// Client is the client address of a server.
func (e *Ensemble) Client(id int) string { return e.servers[id-1].client }
