package interop

import (
	"time"

	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"bellwether/interop/target"
)

// verdict is what preflight prints for programs.
type verdict struct {
	Verdict  string
	Findings []struct{ Severity, Where, What, Why, Do string }
	Next     string

	status int
}

// preflightOf runs preflight with a zoo.cfg.
func preflightOf(t *testing.T, config string, args ...string) verdict {
	t.Helper()
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, append([]string{"preflight", "--config", config, "-o", "json"}, args...)...)
	out, err := cmd.Output()
	v := verdict{status: cmd.ProcessState.ExitCode()}
	if failed := json.Unmarshal(out, &v); failed != nil {
		t.Fatalf("%v: %v: %s", failed, err, out)
	}
	return v
}

// finding reports whether there is a finding of a severity whose text contains a word.
func (v verdict) finding(severity, word string) bool {
	for _, f := range v.Findings {
		if f.Severity == severity && strings.Contains(f.Where+" "+f.What+" "+f.Why+" "+f.Do, word) {
			return true
		}
	}
	return false
}

// listing returns the path, size, times and content of every file below a directory.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		if !d.IsDir() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		all[path] = fmt.Sprintf("%v %d %v %x", info.Mode(), info.Size(), info.ModTime(), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// preflighted starts an ensemble of three ZooKeeper servers and returns the index of its leader.
func preflighted(t *testing.T, extra map[string]string) (*target.Ensemble, int) {
	t.Helper()
	all := map[string]string{"initLimit": "50", "syncLimit": "20"}
	maps.Copy(all, extra)
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{target.Apache, target.Apache, target.Apache}, Extra: all})
	leader, err := e.AwaitWhole(electionWait)
	if err != nil {
		t.Fatal(err)
	}
	return e, leader
}

// TestPreflightOfAnEnsemble runs preflight for each member of an ensemble of ZooKeeper while clients write and the
// servers take snapshots and begin logs. It says yes every time, and names the flag that would be lost.
func TestPreflightOfAnEnsemble(t *testing.T) {
	t.Parallel()
	e, leader := preflighted(t, map[string]string{"snapCount": "100"})
	c := dialSuper(t, e.Servers[0].Addr, longSession)
	stop := make(chan struct{})
	done := make(chan error)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := c.Create(fmt.Sprintf("/load-%d", i), []byte(strings.Repeat("x", i%2000)), 0, world); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 5 {
		for i, s := range e.Servers {
			v := preflightOf(t, s.ConfigPath(), "--live", e.Addrs(), "--pid", strconv.Itoa(s.PID()), "--jvm-flags", "-Djute.maxbuffer=4194304")
			if v.Verdict != "yes" || v.status != 0 {
				t.Fatalf("server %d: %+v", i+1, v)
			}
			if !v.finding("fine", s.Addr+" ") || !v.finding("fine", "the data can be loaded up to") {
				t.Errorf("server %d: something was not examined: %+v", i+1, v)
			}
			if !v.finding("warns", "-Dznode.container.checkIntervalMs=") {
				t.Errorf("server %d: the flag of the running process is not named: %+v", i+1, v)
			}
			if !v.finding("warns", "-Djute.maxbuffer=4194304 to SERVER_JVMFLAGS") {
				t.Errorf("server %d: the flag is not named: %+v", i+1, v)
			}
			if leads := strings.Contains(v.Next, "this server leads"); leads != (i == leader) {
				t.Errorf("server %d: the next step is %q, and server %d leads", i+1, v.Next, leader+1)
			}
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestPreflightChangesNothing compares everything that a takeover uses before and after preflight: the content, times
// and modes of all files, the last transaction, the connections and the sessions of the running servers.
func TestPreflightChangesNothing(t *testing.T) {
	t.Parallel()
	e, _ := preflighted(t, nil)
	c := dialSuper(t, e.Servers[0].Addr, longSession)
	if _, err := c.Create("/kept", []byte("x"), zk.FlagEphemeral, world); err != nil {
		t.Fatal(err)
	}
	// A follower may write a transaction that is already committed a little later.
	state := func() map[string]string {
		all := map[string]string{}
		for _, s := range e.Servers {
			dir := filepath.Dir(s.ConfigPath())
			maps.Copy(all, listing(t, dir))
			delete(all, filepath.Join(dir, "server.log")) // the servers log each connection
			for _, name := range []string{"zk_num_alive_connections", "zk_global_sessions", "zk_local_sessions", "zk_znode_count", "zk_ephemerals_count"} {
				all[s.Addr+" "+name] = mntrValue(t, s, name)
			}
			all[s.Addr+" zxid"] = zxidOf(t, s)
		}
		return all
	}
	before := settled(t, state)
	for _, s := range e.Servers {
		for _, args := range [][]string{{"--live", e.Addrs()}, {"--live", e.Addrs(), "--pid", strconv.Itoa(s.PID())}, {"--offline"}} {
			if v := preflightOf(t, s.ConfigPath(), args...); v.Verdict != "yes" {
				t.Fatalf("%+v", v)
			}
		}
	}
	after := settled(t, state)
	for name, value := range after {
		if before[name] != value {
			t.Errorf("%s changed from %.200s to %.200s", name, before[name], value)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			t.Errorf("%s is gone", name)
		}
	}
}

// settled returns a state when two readings after each other agree. It fails the test if they never do.
func settled(t *testing.T, state func() map[string]string) map[string]string {
	t.Helper()
	last := state()
	for end := time.Now().Add(electionWait); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		now := state()
		if maps.Equal(last, now) {
			return now
		}
		last = now
	}
	t.Fatal("the servers do not come to rest")
	return nil
}

// mntrValue returns a line of mntr.
func mntrValue(t *testing.T, s *target.Server, name string) string {
	t.Helper()
	text, err := s.Word("mntr")
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(text, "\n"+name+"\t")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

func zxidOf(t *testing.T, s *target.Server) string {
	t.Helper()
	text, err := s.Word("srvr")
	if err != nil {
		t.Fatal(err)
	}
	_, zxid, _ := strings.Cut(text, "\nZxid: ")
	zxid, _, _ = strings.Cut(zxid, "\n")
	return zxid
}

// changedConfig writes a copy of a server's zoo.cfg in which old is replaced, and returns its path.
func changedConfig(t *testing.T, s *target.Server, old, now string) string {
	t.Helper()
	text, err := os.ReadFile(s.ConfigPath())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("zoo.cfg does not contain %q: %s", old, text)
	}
	file := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, now, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// dataCopy copies a server's data directory.
func dataCopy(t *testing.T, s *target.Server) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(s.Data)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPreflightNamesWhatPrevents changes what a running ensemble of ZooKeeper is compared with, one thing at a time, and
// in the end stops a follower.
func TestPreflightNamesWhatPrevents(t *testing.T) {
	t.Parallel()
	e, leader := preflighted(t, nil)
	s := e.Servers[(leader+1)%3]
	prevented := func(what, config string, args ...string) {
		t.Helper()
		v := preflightOf(t, config, append([]string{"--live", e.Addrs()}, args...)...)
		if v.Verdict != "no" || v.status != 1 || !v.finding("prevents", what) {
			t.Errorf("want a finding that names %q, got %+v", what, v)
		}
	}
	prevented("authProvider.9=com.example.Own is not supported", changedConfig(t, s, "initLimit", "authProvider.9=com.example.Own\ninitLimit"))
	prevented("its members are server.1", changedConfig(t, s, "server.1=127.0.0.1", "server.1=127.0.0.9"))
	prevented("zoo.cfg has server.1", changedConfig(t, s, "initLimit", "group.1=1:2:3\ninitLimit"))
	other := dataCopy(t, s)
	prevented("the running server has dataDir="+s.Data, changedConfig(t, s, "dataDir="+s.Data, "dataDir="+other))

	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(other, file), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	moved := changedConfig(t, s, "dataDir="+s.Data, "dataDir="+other)
	write("version-2/currentEpoch", "77")
	write("version-2/acceptedEpoch", "77")
	prevented("currentEpoch is 77, and the epoch of", moved)
	write("myid", "8")
	prevented("contains 8, but there is no line server.8", moved)
	if err := os.Remove(filepath.Join(other, "myid")); err != nil {
		t.Fatal(err)
	}
	prevented("myid is missing, but an ensemble needs it", moved)
	prevented("the running process has read "+s.ConfigPath(), moved, "--pid", strconv.Itoa(s.PID()))

	if err := e.Servers[(leader+2)%3].Stop(); err != nil {
		t.Fatal(err)
	}
	prevented("the ensemble has no quorum when this server is stopped", s.ConfigPath())
	v := preflightOf(t, e.Servers[(leader+2)%3].ConfigPath(), "--live", e.Addrs())
	if v.finding("prevents", "no quorum") {
		t.Errorf("the stopped server itself may be replaced, got %+v", v)
	}
}

// TestPreflightComparesGroups runs preflight for ZooKeeper servers with groups and weights: with their own zoo.cfg, and
// with files whose quorums differ.
func TestPreflightComparesGroups(t *testing.T) {
	t.Parallel()
	e, _ := preflighted(t, map[string]string{"group.1": "1:2:3", "weight.1": "2"})
	s := e.Servers[0]
	if v := preflightOf(t, s.ConfigPath(), "--live", e.Addrs()); v.Verdict != "yes" {
		t.Errorf("its own zoo.cfg: %+v", v)
	}
	for name, change := range map[string][2]string{
		"another weight": {"weight.1=2", "weight.1=5"},
		"other groups":   {"group.1=1:2:3", "group.1=1\ngroup.2=2\ngroup.3=3"},
	} {
		if v := preflightOf(t, changedConfig(t, s, change[0], change[1]), "--live", e.Addrs()); v.Verdict != "no" || !v.finding("prevents", "its members are server.1") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestPreflightOfAStandaloneServer runs preflight for one ZooKeeper server that answers only srvr, and after it has
// stopped.
func TestPreflightOfAStandaloneServer(t *testing.T) {
	t.Parallel()
	s := target.StartFor(t, target.Apache, target.Options{Extra: map[string]string{"4lw.commands.whitelist": "srvr"}})
	c := dialSuper(t, s.Addr, longSession)
	if _, err := c.Create("/a", nil, 0, world); err != nil {
		t.Fatal(err)
	}
	v := preflightOf(t, s.ConfigPath(), "--live", s.Addr)
	if v.Verdict != "yes" || v.status != 0 || !v.finding("warns", "the server does not answer conf and mntr") || !strings.Contains(v.Next, "a standalone server") {
		t.Errorf("%+v", v)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if v := preflightOf(t, s.ConfigPath()); v.Verdict != "unknown" || v.status != 2 || !v.finding("unseen", "connection refused") {
		t.Errorf("a stopped server: %+v", v)
	}
}
