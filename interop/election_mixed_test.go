package interop

import (
	"slices"
	"sync"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"

	gozk "github.com/go-zookeeper/zk"
)

// electionPath is the class path of the Java candidates.
const electionPath = curatorPath + ":/usr/share/java/zookeeper-recipes-election.jar"

// otherCandidate is a candidate of another library. Its bid exists when start returns. It calls
// leads when it leads, and resigns when the znode parent-release exists.
type otherCandidate struct {
	name   string
	naming recipe.Naming
	id     string // the candidate's id in its bid
	start  func(t *testing.T, s *target.Server, parent string, leads func()) (ended <-chan struct{})
}

// TestElectionWithOtherLibraries puts a candidate of another library between two Bellwether
// candidates in one line. Each must lead in its turn, while no other candidate leads.
func TestElectionWithOtherLibraries(t *testing.T) {
	t.Parallel()
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/zookeeper-recipes-election.jar", "libzookeeper-java")
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", electionPath, "-d", classes, "election/Candidate.java"},
	}.Pass(t)
	inJava := func(kind string) []string {
		return append(append([]string{java}, target.JVM...), "-cp", classes+":"+electionPath, "Candidate", kind)
	}
	for _, x := range []otherCandidate{
		{"kazoo", recipe.KazooNames, "foreign", program(debianPython, "-B", "election/candidate.py")},
		{"curator-latch", recipe.CuratorLatchNames, "foreign", program(inJava("latch")...)},
		{"curator-selector", recipe.CuratorLockNames, "foreign", program(inJava("selector")...)},
		{"apache", recipe.PlainNames, "foreign", program(inJava("apache")...)},
		{"go-zookeeper", recipe.GoZKNames, "", goLock},
	} {
		t.Run(x.name, func(t *testing.T) {
			eachShared(t, func(t *testing.T, s *target.Server) { shareLine(t, s, x) })
		})
	}
}

func shareLine(t *testing.T, s *target.Server, x otherCandidate) {
	root := fresh("libraries-" + x.name)
	parent := root + "/job"
	o := recipe.ElectionOptions{Naming: x.naming}
	a := stand(t, s.Addr, parent, "a", electionTimeout, o)
	ha := a.wins(t)
	leads := make(chan struct{})
	ended := x.start(t, s, parent, sync.OnceFunc(func() { close(leads) }))
	b := stand(t, s.Addr, parent, "b", electionTimeout, o)

	all, err := b.e.Candidates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
		if c.Naming != x.naming {
			t.Errorf("%s is named as %v", c.Bid, c.Naming)
		}
	}
	if !slices.Equal(ids, []string{"a", x.id, "b"}) {
		t.Fatalf("candidates are %q", ids)
	}
	select {
	case <-leads:
		t.Fatal("the other library's candidate leads beside ours")
	default:
	}

	if err := a.e.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	soon(t, leads, "the other library's candidate does not lead")
	if s := len(b.leads); s != 0 {
		t.Fatal("ours leads beside the other library's candidate")
	}
	mustCreate(t, a.c, parent+"-release")
	if hb := b.wins(t); hb.Token() <= ha.Token() {
		t.Errorf("token %v after %v", hb.Token(), ha.Token())
	}
	soon(t, ended, "the other library's candidate does not end")
}

func soon(t *testing.T, c <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(electionWait):
		t.Fatal(otherwise)
	}
}

// program returns a function that starts a candidate in another language.
func program(args ...string) func(*testing.T, *target.Server, string, func()) <-chan struct{} {
	return func(t *testing.T, s *target.Server, parent string, leads func()) <-chan struct{} {
		stands, ended := make(chan struct{}), make(chan struct{})
		script := target.Script{
			Args: append(slices.Clone(args), s.Addr, parent),
			Commands: map[string]func() error{
				"@stands": func() error { close(stands); return nil },
				"@leads":  func() error { leads(); return nil },
			},
		}
		go func() {
			defer close(ended)
			if r := script.Run(t); r.Exit != 0 {
				t.Errorf("the other library's candidate: %s", r.Output())
			}
		}()
		select {
		case <-stands:
		case <-ended:
			t.Fatal("the other library's candidate ended before its bid existed")
		case <-time.After(electionWait):
			t.Fatal("the other library's candidate makes no bid")
		}
		t.Cleanup(func() { <-ended })
		return ended
	}
}

// goLock uses go-zookeeper's lock as a candidate.
func goLock(t *testing.T, s *target.Server, parent string, leads func()) <-chan struct{} {
	c := dial(t, s.Addr)
	watcher := newCandidate(t, s.Addr, parent, "watcher", electionTimeout, recipe.ElectionOptions{Naming: recipe.GoZKNames})
	before, err := watcher.e.Candidates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock := gozk.NewLock(c.Conn, parent, world)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := lock.Lock(); err != nil {
			t.Errorf("lock: %v", err)
			return
		}
		leads()
		awaitZnode(t, watcher.c, parent+"-release")
		if err := lock.Unlock(); err != nil {
			t.Errorf("unlock: %v", err)
		}
	}()
	for end := time.Now().Add(electionWait); time.Now().Before(end); <-time.After(time.Millisecond) {
		if now, err := watcher.e.Candidates(t.Context()); err == nil && len(now) > len(before) {
			return ended
		}
	}
	t.Fatal("the lock's bid does not stand")
	return nil
}

func awaitZnode(t *testing.T, c *zk.Client, path string) {
	_, ok, w, err := c.ExistsW(t.Context(), path)
	if err == nil && !ok {
		_, err = w.Wait(t.Context())
	}
	if err != nil {
		t.Errorf("waiting for %s: %v", path, err)
	}
}
