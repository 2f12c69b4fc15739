package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bellwether/internal/portblock"
	"bellwether/zk"
)

// seat is the place of a server that is a member, or may become one.
type seat struct {
	id     int
	line   string // its line, as a participant
	client string // its address for clients
}

// seats returns places for servers on this machine, which keep their ports.
func seats(n int) ([]seat, error) {
	ports, err := portblock.Free("127.0.0.1", 3*n)
	if err != nil {
		return nil, err
	}
	var all []seat
	for i := range n {
		p := ports[3*i : 3*i+3]
		client := fmt.Sprintf("127.0.0.1:%d", p[2])
		all = append(all, seat{i + 1, fmt.Sprintf("server.%d=127.0.0.1:%d:%d:participant;%s", i+1, p[0], p[1], client), client})
	}
	return all, nil
}

// superSecret is the credential with which clients may change the members, and superDigest what the servers know of it.
const (
	superSecret = "digest:super:secret"
	superDigest = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="
)

// prepareMember writes the zoo.cfg of a server and its myid, and returns the name of the zoo.cfg. lines are the members
// with which it starts.
func prepareMember(dir string, id int, lines []string) (string, error) {
	text := fmt.Sprintf("tickTime=500\ninitLimit=60\nsyncLimit=30\ndataDir=%s\nreconfigEnabled=true\nstandaloneEnabled=false\nadmin.enableServer=false\n"+
		"DigestAuthenticationProvider.superDigest=%s\n%s\n", filepath.Join(dir, "data"), superDigest, strings.Join(lines, "\n"))
	file := filepath.Join(dir, "zoo.cfg")
	return file, errors.Join(os.MkdirAll(filepath.Join(dir, "data"), 0o777),
		os.WriteFile(filepath.Join(dir, "data", "myid"), []byte(strconv.Itoa(id)+"\n"), 0o666), os.WriteFile(file, []byte(text), 0o666))
}

// TestMembersUnderWrites grows an ensemble of processes from 1 to 3, 5 and 7 servers with bellwether member add, and
// shrinks it to 1 again with bellwether member remove; every second server that leaves leads. Meanwhile clients write. No
// acknowledged write is lost, and no session. The longest time between two acknowledged writes is printed for each step.
func TestMembersUnderWrites(t *testing.T) {
	const most = 7
	all, err := seats(most)
	must(t, err)
	g := &growth{t: t, seats: all, running: map[int]*exec.Cmd{}}
	g.start(all[0])
	g.load = startWrites(t, all[0].client)
	for _, s := range all[1:] {
		g.start(s)
		g.step(fmt.Sprintf("add %d", s.id), "add", s.line)
	}
	for n := most; n > 1; n-- {
		leader, follower := g.roles()
		leaves, what := follower, "follower"
		if n%2 == 0 {
			leaves, what = leader, "leader"
		}
		g.step(fmt.Sprintf("remove %d (%s)", leaves.id, what), "remove", strconv.Itoa(leaves.id))
		g.stop(leaves)
	}
	g.load.end(g.seats[0].client)
}

// growth is an ensemble of processes whose members change.
type growth struct {
	t       *testing.T
	seats   []seat // of the members, and of those that are to become members
	running map[int]*exec.Cmd
	load    *writes
}

// start starts a server with the lines of the running servers and its own.
func (g *growth) start(s seat) {
	g.t.Helper()
	dir := g.t.TempDir()
	var lines []string
	for _, other := range g.seats {
		if g.running[other.id] != nil || other == s {
			lines = append(lines, other.line)
		}
	}
	file, err := prepareMember(dir, s.id, lines)
	must(g.t, err)
	log, err := os.Create(filepath.Join(dir, "log"))
	must(g.t, err)
	defer log.Close()
	cmd := exec.Command("bellwether", "serve", "--config", file)
	cmd.Env = append(os.Environ(), raceOptions)
	cmd.Stdout, cmd.Stderr = log, log
	must(g.t, cmd.Start())
	g.running[s.id] = cmd
	g.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if text, err := os.ReadFile(log.Name()); g.t.Failed() && err == nil {
			g.t.Logf("server %d:\n%s", s.id, text[max(0, len(text)-3000):])
		}
	})
}

// stop ends a server that is no member any more.
func (g *growth) stop(s seat) {
	g.t.Helper()
	must(g.t, g.running[s.id].Process.Signal(syscall.SIGTERM))
	g.running[s.id].Wait()
	for i, other := range g.seats {
		if other == s {
			g.seats = append(g.seats[:i:i], g.seats[i+1:]...)
			break
		}
	}
}

// servers returns the addresses of all members.
func (g *growth) servers() string {
	var all []string
	for _, s := range g.seats {
		if g.running[s.id] != nil {
			all = append(all, s.client)
		}
	}
	return strings.Join(all, ",")
}

// roles returns the leader, and the follower with the highest id.
func (g *growth) roles() (leader, follower seat) {
	g.t.Helper()
	for deadline := time.Now().Add(waitMax); leader.id == 0 || follower.id == 0; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatal("no leader and follower")
		}
		leader, follower = seat{}, seat{}
		for _, s := range g.seats {
			switch text, _ := tryWord(s.client, "srvr"); {
			case strings.Contains(text, "Mode: leader\n"):
				leader = s
			case strings.Contains(text, "Mode: follower\n"):
				follower = s
			}
		}
	}
	return leader, follower
}

// step runs a command that changes the members, and prints the longest gap between writes.
func (g *growth) step(what string, args ...string) {
	g.t.Helper()
	g.load.awaitMore(20)
	g.load.measure()
	began := time.Now()
	args = append([]string{"member", args[0], "--server", g.servers(), "--auth", superSecret, "--connect-timeout", "2m"}, args[1:]...)
	cmd := exec.Command("bellwether", args...)
	cmd.Env = append(os.Environ(), raceOptions)
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("bellwether %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	took := time.Since(began)
	g.load.awaitMore(20)
	n, gap := g.load.measure()
	g.t.Logf("%-20s command %4d ms, %5d writes, longest gap %4d ms", what, took.Milliseconds(), n, gap.Milliseconds())
}

// writes is a load of clients that create znodes, one after the other.
type writes struct {
	t       *testing.T
	clients []*zk.Client
	owners  []zk.SessionID
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu      sync.Mutex
	acked   [][]string // by client
	lost    int        // writes without an answer
	n       int        // since the last measurement
	last    time.Time
	longest time.Duration
}

const writers = 4

func startWrites(t *testing.T, server string) *writes {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &writes{t: t, stop: stop, last: time.Now(), acked: make([][]string, writers)}
	t.Cleanup(func() {
		stop()
		w.ended.Wait()
		for _, c := range w.clients {
			c.Close(context.Background())
		}
	})
	for i := range writers {
		c, err := zk.Connect(ctx, server, &zk.Options{SessionTimeout: time.Minute, FollowMembers: true})
		must(t, err)
		w.clients = append(w.clients, c)
		_, _, err = c.Create(ctx, fmt.Sprintf("/w%d", i), nil)
		must(t, err)
		_, stat, err := c.Create(ctx, fmt.Sprintf("/session%d", i), nil, zk.Ephemeral)
		must(t, err)
		w.owners = append(w.owners, stat.EphemeralOwner)
	}
	for i := range writers {
		w.ended.Go(func() { w.write(ctx, i) })
	}
	return w
}

// write creates znodes until the context ends.
func (w *writes) write(ctx context.Context, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		path := fmt.Sprintf("/w%d/%d", i, n)
		_, _, err := w.clients[i].Create(ctx, path, nil)
		w.mu.Lock()
		now := time.Now()
		switch {
		case err == nil:
			w.acked[i] = append(w.acked[i], path)
			w.n++
			w.longest = max(w.longest, now.Sub(w.last))
			w.last = now
		case ctx.Err() == nil:
			w.lost++
			if !errors.Is(err, zk.ErrConnectionLoss) {
				w.t.Errorf("%s: %v", path, err)
			}
		}
		w.mu.Unlock()
	}
}

// measure returns the number of writes since the last call and the longest gap between two of them, and begins anew.
func (w *writes) measure() (n int, gap time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, gap = w.n, w.longest
	w.n, w.longest = 0, 0
	return n, gap
}

// awaitMore waits until more writes were acknowledged.
func (w *writes) awaitMore(more int) {
	w.t.Helper()
	count := func() (n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, all := range w.acked {
			n += len(all)
		}
		return n
	}
	for before, deadline := count(), time.Now().Add(waitMax); count() < before+more; <-time.After(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatal("no write is acknowledged")
		}
	}
}

// end ends the load. It fails the test if a write that was acknowledged is not there, or a session has ended.
func (w *writes) end(server string) {
	w.t.Helper()
	w.stop()
	w.ended.Wait()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitMax)
	defer cancel()
	c, err := zk.Connect(ctx, server, nil)
	must(w.t, err)
	defer c.Close(context.Background())
	must(w.t, c.Sync(ctx, "/"))
	total, missing, sessions := 0, 0, 0
	for i, all := range w.acked {
		names, _, err := c.Children(ctx, fmt.Sprintf("/w%d", i))
		must(w.t, err)
		there := map[string]bool{}
		for _, name := range names {
			there[fmt.Sprintf("/w%d/%s", i, name)] = true
		}
		for _, path := range all {
			total++
			if !there[path] {
				missing++
			}
		}
		if stat, _, err := c.Exists(ctx, fmt.Sprintf("/session%d", i)); err != nil || stat.EphemeralOwner != w.owners[i] {
			sessions++
		}
	}
	w.t.Logf("%d acknowledged writes, %d of them lost; %d writes without an answer; %d sessions, %d of them lost", total, missing, w.lost, writers, sessions)
	if missing > 0 || sessions > 0 {
		w.t.Error("something was lost")
	}
}
