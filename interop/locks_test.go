package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

const (
	lockTurns = 12 // holds of each kind of contender that the test wants to see
	lockKills = 4  // of holders
)

// TestLocksWithStrangers lets our Lock, Curator's and kazoo's contend in one
// parent, two processes of each, while holders are killed at random. Who
// holds makes an ephemeral znode, which goes with its session just as the bid
// does: finding it there means that two hold at once.
func TestLocksWithStrangers(t *testing.T) {
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-recipes.jar", "libcurator-recipes-java")
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", curatorPath, "-d", classes, "locks/Contender.java"},
	}.Pass(t)
	curator := append(append([]string{java}, target.JVM...), "-cp", classes+":"+curatorPath, "Contender")
	kazoo := []string{debianPython, "-B", "locks/contender.py"}
	lines := map[string][]lockerKind{
		"curator": {
			{name: "ours", naming: recipe.CuratorLockNames},
			{name: "curator", args: curator},
			{name: "kazoo", args: kazoo, more: []string{"-lock-"}},
		},
		"kazoo": {
			{name: "ours", naming: recipe.KazooNames},
			{name: "kazoo", args: kazoo},
		},
	}
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		for name, kinds := range lines {
			t.Run(name, func(t *testing.T) { contend(t, s.Addr, fresh("locks-"+name), kinds) })
		}
	})
}

// lockerKind is a kind of contender: another library's, or this one again.
type lockerKind struct {
	name   string
	args   []string // empty for ours
	more   []string // after address and parent
	naming recipe.Naming
}

func contend(t *testing.T, addr, parent string, kinds []lockerKind) {
	turns := map[string]int{}
	var all []*locker
	for _, k := range kinds {
		all = append(all, startLocker(t, k, addr, parent), startLocker(t, k, addr, parent))
	}
	kills := 0
	done := func() bool {
		for _, k := range kinds {
			n := turns[k.name]
			for _, c := range all {
				if c.kind.name == k.name {
					n += c.count()
				}
			}
			if n < lockTurns {
				return false
			}
		}
		return kills >= lockKills
	}
	for end := time.Now().Add(2 * electionWait); !done(); <-time.After(time.Duration(rand.IntN(10)) * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d kills of holders, %v and what still runs: the test shows little", kills, turns)
		}
		for i, c := range all {
			switch holds, why := c.state(); {
			case why != "":
				t.Fatalf("%s: %s", c.kind.name, why)
			case holds && kills < lockKills && rand.IntN(20) == 0:
				if c.kill() { // it held to the last
					kills++
				}
				turns[c.kind.name] += c.count()
				all[i] = startLocker(t, c.kind, addr, parent)
			}
		}
	}
	for _, c := range all {
		turns[c.kind.name] += c.count()
	}
	t.Log(turns, "turns,", kills, "kills of holders")
}

// locker is a process that takes the lock again and again.
type locker struct {
	kind lockerKind
	cmd  *exec.Cmd
	errs bytes.Buffer
	done chan struct{}

	mu     sync.Mutex
	holds  bool
	turns  int
	killed bool
	why    string // what went wrong
}

// The environment by which a test process knows that it is a contender.
const (
	lockerAddr   = "LOCKER_ADDR"
	lockerParent = "LOCKER_PARENT"
	lockerNaming = "LOCKER_NAMING"
)

func init() {
	if addr := os.Getenv(lockerAddr); addr != "" {
		naming := recipe.CuratorLockNames
		if os.Getenv(lockerNaming) == fmt.Sprint(recipe.KazooNames) {
			naming = recipe.KazooNames
		}
		fmt.Println("failed:", lockerMain(addr, os.Getenv(lockerParent), naming))
		os.Exit(1)
	}
}

func startLocker(t *testing.T, k lockerKind, addr, parent string) *locker {
	t.Helper()
	args := []string{os.Args[0]}
	if len(k.args) > 0 {
		args = append(append(slices.Clone(k.args), addr, parent), k.more...)
	}
	c := &locker{kind: k, cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	if len(k.args) == 0 {
		c.cmd.Env = append(os.Environ(), lockerAddr+"="+addr, lockerParent+"="+parent, lockerNaming+"="+fmt.Sprint(k.naming))
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.Stderr = &c.errs
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			c.hear(scan.Text())
		}
		err := c.cmd.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.killed && c.why == "" {
			c.why = fmt.Sprintf("ended by itself: %v\n%s", err, c.errs.String())
		}
	}()
	t.Cleanup(func() { c.kill() })
	return c
}

func (c *locker) hear(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case line == "@holds":
		c.holds = true
	case line == "@free":
		c.holds = false
		c.turns++
	case line == "@two":
		c.why = "found another holder inside"
	case strings.HasPrefix(line, "failed:"):
		c.why = line
	}
}

func (c *locker) state() (holds bool, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds, c.why
}

func (c *locker) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns
}

// kill is kill -9. It reports whether the process held the lock by its last word.
func (c *locker) kill() bool {
	c.mu.Lock()
	c.killed = true
	c.mu.Unlock()
	_ = c.cmd.Process.Kill() // it may have ended already
	<-c.done
	holds, _ := c.state()
	return holds
}

// lockerMain is the process of one of ours.
func lockerMain(addr, parent string, naming recipe.Naming) error {
	ctx := context.Background()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: briefTimeout, LeaseDelay: electionTick})
	if err != nil {
		return err
	}
	l, err := recipe.NewLock(c, parent, &recipe.LockOptions{Naming: naming})
	if err != nil {
		return err
	}
	for last := int64(0); ; {
		h, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		if token := int64(h.Token()); token <= last {
			return fmt.Errorf("token %x after %x", token, last)
		} else {
			last = token
		}
		fmt.Println("@holds")
		if _, err := h.Do(ctx, zk.CreateOp(parent+"-inside", nil, zk.Ephemeral)); errors.Is(err, zk.ErrNodeExists) {
			fmt.Println("@two")
		} else if err != nil {
			return err
		}
		<-time.After(time.Duration(5+rand.IntN(25)) * time.Millisecond)
		if err := c.Delete(ctx, parent+"-inside", zk.AnyVersion); err != nil {
			return err
		}
		fmt.Println("@free")
		if err := h.Release(ctx); err != nil {
			return err
		}
	}
}
