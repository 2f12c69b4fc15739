package blackbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"bellwether/interop/target"
)

// program is a program of another client library. Its clients hold a lock in turn; each holder increments a
// counter. At the end of its input it prints what it counted.
type program struct {
	name    string
	counter string // path of the counter
	cmd     *exec.Cmd
	in      io.Closer
	out     *bufio.Reader
	log     bytes.Buffer
}

// seen is what a program counted.
type seen struct {
	Sessions, Lost int // sessions, and those that are not the first of their client
	Increments     int // acknowledged
	Unsure         int // not acknowledged
	Overlaps       int // other holders that a holder found
	Errors         map[string]int
}

// startPrograms starts the clients of Curator, kazoo and the C library on the clients' host.
func (s *takeover) startPrograms() []*program {
	s.t.Helper()
	return []*program{
		s.start("Curator", "/curator/counter", s.curator()...),
		s.start("kazoo", "/kazoo/counter", s.kazooClients()...),
		s.start("C", "/c/counter", s.cClients()...),
	}
}

// curator compiles the program for Curator and returns its command.
func (s *takeover) curator() []string {
	s.t.Helper()
	path := target.File(s.t, "/usr/share/java/curator-recipes.jar", "libcurator-recipes-java") + ":" + target.ClassPath("slf4j-nop.jar")
	classes := s.t.TempDir()
	target.Script{Args: []string{target.Tool(s.t, "javac", "default-jdk-headless"), "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none",
		"-cp", path, "-d", classes, "../takeover/Takeover.java"}}.Pass(s.t)
	noDNS := []string{"-Dzookeeper.sasl.client.canonicalize.hostname=false"} // a lookup takes 5 s on a host without a DNS server
	return slices.Concat([]string{"java"}, target.JVM, noDNS, s.variant.java, []string{"-cp", classes + ":" + path, "Takeover", s.access.at(s.e.Addrs())})
}

func (s *takeover) kazooClients() []string {
	s.t.Helper()
	target.File(s.t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	options, err := json.Marshal(s.variant.kazoo)
	s.must(err)
	if s.variant.kazoo == nil {
		options = []byte("{}")
	}
	return []string{"/usr/bin/python3", "-B", "../takeover/takeover.py", s.access.at(s.e.Addrs()), string(options)}
}

// cClients compiles the program for the C library and returns its command.
func (s *takeover) cClients() []string {
	s.t.Helper()
	target.File(s.t, "/usr/include/zookeeper/zookeeper.h", "libzookeeper-mt-dev")
	binary := filepath.Join(s.t.TempDir(), "takeover")
	target.Script{Args: []string{target.Tool(s.t, "gcc", "gcc"), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-DTHREADED",
		"-o", binary, "../takeover/takeover.c", "-lzookeeper_mt", "-lpthread"}}.Pass(s.t)
	return []string{binary, s.e.Addrs()}
}

// start starts a program and waits until its clients are connected.
func (s *takeover) start(name, counter string, command ...string) *program {
	s.t.Helper()
	args := append(slices.Clone(s.hosts[s.clientHost()].place().Enter), command...)
	p := &program{name: name, counter: counter, cmd: exec.Command(args[0], args[1:]...)}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = &p.log
	in, err := p.cmd.StdinPipe()
	s.must(err)
	out, err := p.cmd.StdoutPipe()
	s.must(err)
	s.must(p.cmd.Start())
	p.in, p.out = in, bufio.NewReader(out)
	if line, err := p.out.ReadString('\n'); err != nil || line != "ready\n" {
		_ = p.cmd.Wait() // the log is complete then
		s.t.Fatalf("%s: %q, %v: %s", name, line, err, &p.log)
	}
	return p
}

// value reads the counter of a program.
func (s *takeover) value(p *program) int {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitMax)
	defer cancel()
	for {
		err := s.counters.Sync(ctx, p.counter)
		var data []byte
		if err == nil {
			data, _, err = s.counters.Get(ctx, p.counter)
		}
		if err == nil {
			n, err := strconv.Atoi(string(data))
			s.must(err)
			return n
		}
		if ctx.Err() != nil {
			s.t.Fatalf("%s: %v", p.counter, err)
		}
	}
}

// awaitTurns waits until a holder of each lock has incremented its counter.
func (s *takeover) awaitTurns() {
	s.t.Helper()
	for _, p := range s.programs {
		before := s.value(p)
		for end := time.Now().Add(waitMax); s.value(p) == before; <-time.After(10 * time.Millisecond) {
			if time.Now().After(end) {
				s.t.Fatalf("%s: no client got the lock within %v", p.name, waitMax)
			}
		}
	}
}

// end ends a program and returns what it counted.
func (s *takeover) end(p *program) (x seen) {
	s.t.Helper()
	p.in.Close()
	line, err := p.out.ReadString('\n')
	if failed := p.cmd.Wait(); failed != nil || err != nil {
		s.t.Fatalf("%s: %q, %v, %v: %s", p.name, line, err, failed, &p.log)
	}
	if err := json.Unmarshal([]byte(line), &x); err != nil {
		s.t.Fatalf("%s: %v: %s", p.name, err, line)
	}
	return x
}

// countProgram ends a program and counts what its clients saw.
func (s *takeover) countProgram(p *program) {
	s.t.Helper()
	x := s.end(p)
	s.count.add(p.name, x, s.value(p))
	s.t.Logf("%s: %+v", p.name, x)
}

// add adds what a program counted, with the value of its counter. If the value is larger than the increments can make
// it, then the counter was incremented without the lock.
func (c *tally) add(name string, x seen, value int) {
	c.sessions += x.Sessions
	c.ended += x.Lost
	c.writes += x.Increments
	c.turns += x.Increments
	c.lost += max(0, x.Increments-value)
	c.faults += x.Overlaps + max(0, value-x.Increments-x.Unsure)
	for kind, n := range x.Errors {
		c.errors[name+": "+kind] += n
	}
}
