package interop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// contending is a process that obtains the same claim again and again.
type contending struct {
	kind contenderKind
	cmd  *exec.Cmd
	errs bytes.Buffer
	done chan struct{}

	mu     sync.Mutex
	holds  bool
	turns  int
	killed bool
	why    string // the error with which the process failed, or ""
}

// Environment variables that make a test process a contender.
const (
	contenderAddr   = "CONTENDER_ADDR"
	contenderParent = "CONTENDER_PARENT"
	contenderMode   = "CONTENDER_MODE"
	contenderNaming = "CONTENDER_NAMING"
)

func init() {
	if addr := os.Getenv(contenderAddr); addr != "" {
		var naming recipe.Naming
		for _, n := range []recipe.Naming{recipe.CuratorLockNames, recipe.CuratorLatchNames, recipe.KazooNames, recipe.PlainNames} {
			if fmt.Sprint(n) == os.Getenv(contenderNaming) {
				naming = n
			}
		}
		fmt.Println("failed:", contenderMain(addr, os.Getenv(contenderParent), os.Getenv(contenderMode), naming))
		os.Exit(1)
	}
}

func startContender(t *testing.T, k contenderKind, addr, parent string) *contending {
	t.Helper()
	args := []string{os.Args[0]}
	if len(k.args) > 0 {
		args = append(append(slices.Clone(k.args), k.mode, addr, parent), k.more...)
	}
	c := &contending{kind: k, cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	if len(k.args) == 0 {
		c.cmd.Env = append(os.Environ(), contenderAddr+"="+addr, contenderParent+"="+parent,
			contenderMode+"="+k.mode, contenderNaming+"="+fmt.Sprint(k.naming))
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

func (c *contending) hear(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case line == "@holds":
		c.holds = true
	case line == "@free":
		c.holds = false
		c.turns++
	case strings.HasPrefix(line, "@two"):
		c.why = "found others inside: " + line
	case strings.HasPrefix(line, "failed:"):
		c.why = line
	}
}

func (c *contending) state() (holds bool, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds, c.why
}

func (c *contending) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turns
}

// kill kills the process with SIGKILL. It reports whether the process held according to its
// last line.
func (c *contending) kill() bool {
	c.mu.Lock()
	c.killed = true
	c.mu.Unlock()
	_ = c.cmd.Process.Kill() // the process may have ended already
	<-c.done
	holds, _ := c.state()
	return holds
}

// claimed is a handle or a hold.
type claimed interface {
	Token() wire.Zxid
	Guard() zk.Op
}

// leases is the number of leases of a semaphore in these tests.
const leases = 2

// contenderMain is the main function of a Bellwether contender.
func contenderMain(addr, parent, mode string, naming recipe.Naming) error {
	ctx := context.Background()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: briefTimeout, LeaseDelay: electionTick})
	if err != nil {
		return err
	}
	turn, err := turns(ctx, c, parent, mode, naming)
	if err != nil {
		return err
	}
	for last := wire.Zxid(0); ; {
		h, release, err := turn()
		if err != nil {
			return err
		}
		if h.Token() <= last {
			return fmt.Errorf("token %v after %v", h.Token(), last)
		}
		last = h.Token()
		if err := inside(ctx, c, parent, mode, h, naming != recipe.PlainNames); err != nil {
			return err
		}
		if err := release(ctx); err != nil {
			return err
		}
		if mode == "seldom write" {
			<-time.After(time.Duration(mrand.IntN(300)) * time.Millisecond)
		}
	}
}

// turns returns a function that obtains the claim of a mode and returns how to give it up.
func turns(ctx context.Context, c *zk.Client, parent, mode string, naming recipe.Naming) (func() (claimed, func(context.Context) error, error), error) {
	if mode == "election" {
		e, err := recipe.NewElection(c, parent, "ours", &recipe.ElectionOptions{Naming: naming})
		return func() (claimed, func(context.Context) error, error) {
			h, err := e.Campaign(ctx)
			return h, e.Resign, err
		}, err
	}
	take, err := taking(c, parent, mode, &recipe.LockOptions{Naming: naming})
	return func() (claimed, func(context.Context) error, error) {
		h, err := take(ctx)
		if err != nil {
			return nil, nil, err
		}
		return h, h.Release, nil
	}, err
}

func taking(c *zk.Client, parent, mode string, o *recipe.LockOptions) (func(context.Context) (*recipe.Hold, error), error) {
	switch mode {
	case "lock":
		l, err := recipe.NewLock(c, parent, o)
		return l.Lock, err
	case "write", "seldom write":
		l, err := recipe.NewReadWriteLock(c, parent, o)
		return l.Lock, err
	case "read":
		l, err := recipe.NewReadWriteLock(c, parent, o)
		return l.RLock, err
	case "semaphore":
		l, err := recipe.NewSemaphore(c, parent, leases, o)
		return l.Acquire, err
	}
	return nil, fmt.Errorf("mode %q", mode)
}

// inside creates a znode that shows the holder, and checks that no other holder is there.
func inside(ctx context.Context, c *zk.Client, parent, mode string, h claimed, guarded bool) error {
	fmt.Println("@holds")
	letter, most := "x", 0
	switch mode {
	case "read":
		letter = "r"
	case "semaphore":
		letter, most = "l", leases-1
	}
	me := letter + "-" + rand.Text()
	path := parent + "-inside/" + me
	ops := []zk.Op{zk.CreateOp(path, nil, zk.Ephemeral)}
	if guarded {
		ops = append(ops, h.Guard())
	}
	if _, err := c.Multi(ctx, ops...); err != nil {
		return err
	}
	names, _, err := c.Children(ctx, parent+"-inside")
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return n == me || letter == "r" && strings.HasPrefix(n, "r")
	})
	if len(others) > most {
		fmt.Println("@two", names)
	}
	<-time.After(time.Duration(5+mrand.IntN(25)) * time.Millisecond)
	if err := c.Delete(ctx, path, zk.AnyVersion); err != nil {
		return err
	}
	fmt.Println("@free")
	return nil
}
