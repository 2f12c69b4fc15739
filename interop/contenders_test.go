package interop

import (
	"math/rand/v2"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
)

const (
	turnsMin = 12 // required turns of each kind of contender
	killsMin = 4  // required kills of holders in each line
)

// contenderKind is a kind of contender: of another library, or of this one.
type contenderKind struct {
	name   string
	args   []string // the program and arguments before the mode; empty for this library
	mode   string
	more   []string // arguments after address and parent
	naming recipe.Naming
}

// rivals are processes of several libraries that wait in one line.
type rivals struct {
	name  string
	each  int // number of processes per kind
	kinds []contenderKind
}

// linesOfAllLibraries returns all lines that other libraries can share with Bellwether.
func linesOfAllLibraries(java, python []string) []rivals {
	ours := func(mode string, n recipe.Naming) contenderKind {
		return contenderKind{name: "our " + mode, mode: mode, naming: n}
	}
	curator := func(mode string) contenderKind {
		return contenderKind{name: "Curator's " + mode, args: java, mode: mode}
	}
	kazoo := func(mode string, pattern ...string) contenderKind {
		return contenderKind{name: "kazoo's " + mode, args: python, mode: mode, more: pattern}
	}
	const c, k = recipe.CuratorLockNames, recipe.KazooNames
	return []rivals{
		{"curator-lock", 2, []contenderKind{ours("lock", c), curator("lock"), kazoo("lock", "-lock-")}},
		{"curator-read-write", 1, []contenderKind{ours("write", c), ours("read", c), curator("write"), curator("read")}},
		{"curator-semaphore", 2, []contenderKind{ours("semaphore", c), curator("semaphore")}},
		{"curator-selector", 2, []contenderKind{ours("election", c), curator("selector"), kazoo("lock", "-lock-")}},
		{"curator-latch", 2, []contenderKind{ours("election", recipe.CuratorLatchNames), curator("latch")}},
		{"apache-election", 2, []contenderKind{ours("election", recipe.PlainNames), curator("apache")}},
		{"kazoo-lock", 2, []contenderKind{ours("lock", k), kazoo("lock")}},
		{"kazoo-write", 1, []contenderKind{ours("write", k), ours("read", k), kazoo("write")}},
		// kazoo's readers let every writer pass, so at times there must be no writer.
		{"kazoo-read", 1, []contenderKind{ours("seldom write", k), ours("read", k), kazoo("read")}},
		{"kazoo-semaphore", 2, []contenderKind{ours("semaphore", k), kazoo("semaphore")}},
		{"kazoo-election", 2, []contenderKind{ours("election", k), kazoo("election")}},
	}
}

// TestContendersOfAllLibraries lets Bellwether's locks, read-write locks, semaphores and
// elections contend with Curator's, kazoo's and Apache's in one parent, in separate
// processes, while holders are killed at random. A holder creates an ephemeral znode, which
// ends with its session just as its bid does, and then looks for other holders' znodes. So
// the test notices when more clients hold than allowed.
func TestContendersOfAllLibraries(t *testing.T) {
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-recipes.jar", "libcurator-recipes-java")
	target.File(t, "/usr/share/java/zookeeper-recipes-election.jar", "libzookeeper-java")
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", electionPath, "-d", classes, "locks/Contender.java"},
	}.Pass(t)
	lines := linesOfAllLibraries(append(append([]string{java}, target.JVM...), "-cp", classes+":"+electionPath, "Contender"),
		[]string{debianPython, "-B", "locks/contender.py"})
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		for _, l := range lines {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				contend(t, s.Addr, fresh(l.name), l)
			})
		}
	})
}

// contend runs the contenders of a line until each kind has had enough turns and enough
// holders were killed.
func contend(t *testing.T, addr, parent string, l rivals) {
	client := attach(t, addr, electionTimeout)
	mustCreate(t, client, parent+"-inside")
	turns := map[string]int{} // number of turns of contenders that were killed
	var all []*contending
	for _, k := range l.kinds {
		for range l.each {
			all = append(all, startContender(t, k, addr, parent))
		}
	}
	kills := 0
	for end := time.Now().Add(2 * electionWait); !enough(l, turns, all) || kills < killsMin; <-time.After(time.Duration(rand.IntN(10)) * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout after %d kills of holders; turns of killed contenders: %v", kills, turns)
		}
		for i, c := range all {
			switch holds, why := c.state(); {
			case why != "":
				t.Fatalf("%s: %s", c.kind.name, why)
			case holds && kills < killsMin && rand.IntN(20) == 0:
				if c.kill() { // kill reports that the contender was still holding
					kills++
				}
				turns[c.kind.name] += c.count()
				all[i] = startContender(t, c.kind, addr, parent)
			}
		}
	}
	for _, c := range all {
		turns[c.kind.name] += c.count()
	}
	t.Log(turns, "turns,", kills, "kills of holders")
}

// enough reports whether each kind has had its turns.
func enough(l rivals, turns map[string]int, all []*contending) bool {
	for _, k := range l.kinds {
		n := turns[k.name]
		for _, c := range all {
			if c.kind.name == k.name {
				n += c.count()
			}
		}
		if n < turnsMin {
			return false
		}
	}
	return true
}
