package blackbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestTakeoverAndBack carries out the steps of docs/migrate.md. Bellwether replaces three ZooKeeper servers on their
// directories, one at a time, the followers first and the leader last, and ZooKeeper replaces them again in the same way.
// Meanwhile clients write, candidates stand for an election, and clients of kazoo hold a lock in turn. No acknowledged
// write and no session is lost, there are never two holders, and the digests are equal.
func TestTakeoverAndBack(t *testing.T) {
	s := begin(t, setting{kinds: []target.Kind{target.Apache, target.Apache, target.Apache}})
	locks := s.startLocks()
	clients := map[string]*zk.Client{}
	for i, server := range s.e.Servers {
		clients[nameAt(i)] = s.client(server.Addr, longSession)
	}
	c := s.stand(clients)
	c.unproven = true
	held := c.holder()
	sessions := func() []zk.SessionID {
		var all []zk.SessionID
		for _, w := range s.load.clients {
			all = append(all, w.c.Session().ID)
		}
		for _, who := range slices.Sorted(maps.Keys(clients)) {
			all = append(all, clients[who].Session().ID)
		}
		return all
	}
	before := sessions()
	s.replaceAll(target.Bellwether)
	s.sameDigests()
	s.replaceAll(target.Apache)
	if after := sessions(); !slices.Equal(before, after) {
		t.Errorf("sessions were lost: %v, then %v", before, after)
	}
	if now := c.holder(); now != held {
		t.Errorf("the claim changed from %v to %v, although no session ended", held, now)
	}
	c.end()
	locks.end()
	s.finish()
	t.Logf("errors that the clients of the load saw: %v", s.load.errors)
}

// replaceAll replaces every server by one of another kind: the followers first, the leader last.
func (s *scene) replaceAll(kind target.Kind) {
	s.t.Helper()
	for range s.e.Servers {
		leader := s.awaitWhole()
		next := leader
		for i, server := range s.e.Servers {
			if server.Kind != kind && i != leader {
				next = i
				break
			}
		}
		if s.e.Servers[next].Kind == kind {
			s.t.Fatalf("server %d leads and is replaced already", next+1)
		}
		s.replace(next, kind, next == leader)
	}
}

// replace replaces one server. Before Bellwether takes over, preflight must say yes.
func (s *scene) replace(i int, kind target.Kind, leads bool) {
	s.t.Helper()
	server := s.e.Servers[i]
	if kind == target.Bellwether {
		s.preflight(i)
	}
	gap := s.watchGap(s.any)
	began := time.Now()
	s.must(server.Stop())
	server.Kind = kind
	s.load.awaitWrites(5, s.any)
	s.restart(i)
	s.awaitWhole()
	s.load.awaitWrites(10)
	s.t.Logf("server %d (leader: %v) became %s in %v; the longest time without an acknowledged write of a client that may use any server was %v",
		i+1, leads, kind, time.Since(began).Round(time.Millisecond), gap().Round(time.Millisecond))
}

// preflight runs preflight on the host of a server.
func (s *scene) preflight(i int) {
	s.t.Helper()
	binary, err := target.Binary()
	s.must(err)
	server := s.e.Servers[i]
	args := append(slices.Clone(s.hosts[i].place().Enter), binary, "preflight", "--config", server.ConfigPath(), "--live", s.e.Addrs())
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		s.t.Errorf("preflight of server %d: %v: %s", i+1, err, out)
	}
}

// watchGap measures the longest time in which no write of a client is acknowledged, until the result is called.
func (s *scene) watchGap(w *worker) func() time.Duration {
	stop, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		last, since, most := s.load.acknowledged()[w.id], time.Now(), time.Duration(0)
		for {
			now := s.load.acknowledged()[w.id]
			most = max(most, time.Since(since))
			if now != last {
				last, since = now, time.Now()
			}
			select {
			case <-stop:
				longest <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return sync.OnceValue(func() time.Duration {
		close(stop)
		return <-longest
	})
}

// locks is a program of kazoo whose clients hold a lock in turn.
type locks struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
	log bytes.Buffer
}

// startLocks starts the program on the clients' host.
func (s *scene) startLocks() *locks {
	s.t.Helper()
	target.File(s.t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	args := append(slices.Clone(s.hosts[s.clientHost()].place().Enter), "/usr/bin/python3", "../python/takeover.py", s.e.Addrs())
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	l := &locks{t: s.t, cmd: cmd}
	cmd.Stderr = &l.log
	in, err := cmd.StdinPipe()
	s.must(err)
	out, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())
	l.in, l.out = in, bufio.NewReader(out)
	if line, err := l.out.ReadString('\n'); err != nil || line != "ready\n" {
		_ = cmd.Wait() // the log is complete then
		s.t.Fatalf("kazoo: %q, %v: %s", line, err, &l.log)
	}
	return l
}

// end ends the program and judges what its clients saw.
func (l *locks) end() {
	l.t.Helper()
	l.in.Close()
	line, err := l.out.ReadString('\n')
	if failed := l.cmd.Wait(); failed != nil || err != nil {
		l.t.Fatalf("kazoo: %q, %v, %v: %s", line, err, failed, &l.log)
	}
	seen := map[string]int{}
	if err := json.Unmarshal([]byte(line), &seen); err != nil {
		l.t.Fatalf("kazoo: %v: %s", err, line)
	}
	if seen["increments"] == 0 || seen["overlaps"] > 0 || seen["lost"] > 0 || seen["counter"] < seen["increments"] || seen["counter"] > seen["increments"]+seen["unsure"] {
		l.t.Errorf("kazoo: %s", strings.TrimSpace(line))
	}
	l.t.Log(fmt.Sprint("kazoo: ", strings.TrimSpace(line)))
}
