package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

const (
	manySessions = 1_000 // number of sessions, and of caches, whose memory is measured
	cachedZnodes = 100   // znodes in each cache
	changed      = 5     // znodes that change after the leader was killed
	cachedRoot   = "/cached"
)

// contenders are the numbers of contenders that are measured.
var contenders = []int{2, 8}

// rivals are the libraries, each with its names for an election and for a lock.
var rivals = []struct {
	name, election, lock, session, cache string
	java                                 bool
}{
	{"ours", "Election", "Lock", "zk.Client", "Cache", false},
	{"Java", "LeaderLatch", "InterProcessMutex", "ZooKeeper", "CuratorCache", true},
}

// javaPath is the class path of the Java client.
const javaPath = "/usr/share/java/curator-recipes.jar:/usr/share/java/slf4j-nop.jar"

// recipes measures Bellwether's recipes and Curator's on one kind of server.
func recipes(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &contest{ensemble: &ensemble{meter: &meter{ctx: ctx, kind: kind, plan: p, dir: dir}}}
	defer r.end()
	for _, step := range []func() error{r.compile, r.handovers, r.sessions, r.caches} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.figures, nil
}

// contest measures clients; each library runs in its own process.
type contest struct{ *ensemble }

func (r *contest) compile() error {
	out, err := exec.CommandContext(r.ctx, "javac", "-proc:none", "-cp", javaPath, "-d", r.dir, "compare/Client.java").CombinedOutput()
	if err != nil {
		return fmt.Errorf("javac: %w\n%s", err, out)
	}
	return nil
}

// process returns a command that uses one of the libraries.
func (r *contest) process(java bool, args ...string) *exec.Cmd {
	if java {
		args = append([]string{"-Xmx" + r.plan.heap, "-XX:+UseSerialGC", "-Xss256k", "-cp", r.dir + ":" + javaPath, "Client"}, args...)
		return exec.CommandContext(r.ctx, "java", args...)
	}
	return exec.CommandContext(r.ctx, os.Args[0], append([]string{clientWord}, args...)...)
}

// ask runs such a process to its end and parses the JSON that it prints.
func (r *contest) ask(into any, java bool, args ...string) error {
	cmd := r.process(java, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", args, err, &stderr)
	}
	return json.Unmarshal(out, into)
}

// handoverResult is the result of a process that passes a claim between contenders.
type handoverResult struct {
	All       int     `json:"all"` // number of handovers, including those of the warm-up
	Handovers int     `json:"handovers"`
	Seconds   float64 `json:"seconds"`
	Min       int64   `json:"min_us"`
	P50       int64   `json:"p50_us"`
	P99       int64   `json:"p99_us"`
}

// handovers lets contenders pass a claim on as fast as they can: the holder gives it up at
// once and waits in line again.
func (r *contest) handovers() error {
	s, _, err := r.start("")
	if err != nil {
		return err
	}
	defer s.Kill()
	for _, what := range []string{"election", "lock"} {
		for _, n := range contenders {
			for _, x := range rivals {
				name := x.election
				if what == "lock" {
					name = x.lock
				}
				if err := r.handover(s, what, name, n, x.java); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *contest) handover(s *target.Server, what, name string, n int, java bool) error {
	before, err := received(s)
	if err != nil {
		return err
	}
	var h handoverResult
	err = r.ask(&h, java, what, s.Addr, fmt.Sprintf("/%s-%s-%d", what, name, n), strconv.Itoa(n),
		strconv.FormatInt(r.plan.warmup.Milliseconds(), 10), strconv.FormatInt(r.plan.duration.Milliseconds(), 10))
	if err != nil {
		return err
	}
	after, err := received(s)
	if err != nil {
		return err
	}
	if h.Handovers == 0 {
		return fmt.Errorf("%s: there was no handover", name)
	}
	r.say(fmt.Sprintf("%.0f/s, min %d, median %d, p99 %d µs, %.1f requests",
		float64(h.Handovers)/h.Seconds, h.Min, h.P50, h.P99, float64(after-before)/float64(h.All)), "%s, %d contenders, %s", what, n, name)
	return nil
}

var receivedLine = regexp.MustCompile(`(?m)^Received: (\d+)$`)

// received returns how many packets a server has received from clients.
func received(s *target.Server) (int64, error) {
	text, err := s.Word("srvr")
	if err != nil {
		return 0, err
	}
	m := receivedLine.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("the answer to srvr has no line Received")
	}
	return strconv.ParseInt(m[1], 10, 64)
}

// footprint is the memory that one open session costs its process.
type footprint struct {
	Heap     int64   `json:"heap"` // bytes per session, including stacks if the program counts them
	Resident int64   `json:"resident"`
	Threads  float64 `json:"threads"` // threads per session, or goroutines
}

// sessions opens many sessions in one process.
func (r *contest) sessions() error {
	s, _, err := r.start("")
	if err != nil {
		return err
	}
	defer s.Kill()
	for _, x := range rivals {
		var f footprint
		if err := r.ask(&f, x.java, "sessions", s.Addr, "/", strconv.Itoa(manySessions)); err != nil {
			return err
		}
		kind := "goroutines"
		if x.java {
			kind = "threads"
		}
		r.say(fmt.Sprintf("%.1f KiB of heap, %.1f KiB resident, %.1f %s", float64(f.Heap)/1024, float64(f.Resident)/1024, f.Threads, kind),
			"memory of one of %d open sessions, %s", manySessions, x.session)
	}
	return nil
}

// caches measures how long many caches are stale after a leader was killed.
func (r *contest) caches() error {
	for _, x := range rivals {
		if _, err := r.begin(); err != nil {
			return err
		}
		if _, err := r.e.AwaitWhole(waitMax); err != nil {
			return err
		}
		if err := r.cachesOf(x.cache, x.java); err != nil {
			return fmt.Errorf("%s: %w", x.cache, err)
		}
	}
	return nil
}

func (r *contest) cachesOf(name string, java bool) error {
	c, err := r.client(r.e.Addrs())
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(r.ctx))
	if _, _, err := c.Create(r.ctx, cachedRoot, nil); err != nil {
		return err
	}
	for i := range cachedZnodes {
		if _, _, err := c.Create(r.ctx, cachedPath(i), []byte("first")); err != nil {
			return err
		}
	}
	cmd := r.process(java, "caches", r.e.Addrs(), cachedRoot, strconv.Itoa(manySessions), strconv.Itoa(changed))
	k, err := beginCaches(cmd)
	if err != nil {
		return err
	}
	defer k.end()
	if err := k.await("@ready"); err != nil {
		return err
	}
	var written, right []time.Duration
	wrong := "" // not empty: the caches are stale, and no further round is run
	for i := 0; i < r.plan.rounds && wrong == ""; i++ {
		w, all, err := r.changeAfterKill(c, k, fmt.Sprint("round", i))
		written = append(written, w)
		switch {
		case errors.Is(err, errSilent):
			wrong = fmt.Sprintf("; in round %d not all within %v", i+1, 2*waitMax)
		case err != nil:
			return err
		default:
			right = append(right, all)
		}
	}
	text := "never"
	if len(right) > 0 {
		text = spread(right)
	}
	r.say(spread(written), "time from kill -9 of the leader until %d writes were acknowledged, with %d caches, %s", changed, manySessions, name)
	r.say(text+wrong, "time from kill -9 of the leader until all of %d caches show these writes, %s", manySessions, name)
	return nil
}

// errSilent means that a client did not print the expected line in time.
var errSilent = errors.New("the client did not print the line in time")

func cachedPath(i int) string { return fmt.Sprintf("%s/n%03d", cachedRoot, i) }

// changeAfterKill kills the leader and changes some znodes as soon as possible. It returns how
// long after the kill they were changed, and how long after it all caches showed the changes.
func (r *contest) changeAfterKill(c *zk.Client, k *cacheProcess, value string) (written, right time.Duration, err error) {
	leader, err := r.e.AwaitWhole(waitMax)
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Fprintln(k.in, value); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	r.e.Servers[leader].Kill()
	ctx, cancel := context.WithTimeout(r.ctx, waitMax)
	defer cancel()
	for i := range changed {
		for {
			if _, err := c.Set(ctx, cachedPath(i), []byte(value), zk.AnyVersion); err == nil {
				break
			} else if ctx.Err() != nil {
				return 0, 0, err
			}
		}
	}
	written = time.Since(began)
	if err := k.await("@right " + value); err != nil {
		return written, 0, err
	}
	right = time.Since(began)
	return written, right, r.e.Servers[leader].Begin()
}

// cacheProcess is a client with caches.
type cacheProcess struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	stderr bytes.Buffer
}

func beginCaches(cmd *exec.Cmd) (*cacheProcess, error) {
	k := &cacheProcess{cmd: cmd, lines: make(chan string, 16)}
	cmd.Stderr = &k.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if k.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(k.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			k.lines <- scan.Text()
		}
	}()
	return k, nil
}

// await waits for a line of output.
func (k *cacheProcess) await(want string) error {
	timeout := time.After(2 * waitMax)
	for {
		select {
		case line, ok := <-k.lines:
			if !ok {
				return fmt.Errorf("the client ended: %s", strings.TrimSpace(k.stderr.String()))
			}
			if line == want {
				return nil
			}
		case <-timeout:
			return fmt.Errorf("%s: %w", want, errSilent)
		}
	}
}

func (k *cacheProcess) end() {
	k.in.Close()
	_ = k.cmd.Process.Kill() // the process may have ended already
	for range k.lines {
	}
	_ = k.cmd.Wait()
}
