package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bellwether/internal/guard"
	"bellwether/wire"
)

// TestMain: the test binary is the program too, when it is started under its name.
func TestMain(m *testing.M) {
	if guard.IsGuardian() {
		os.Exit(guard.Main())
	}
	testscript.Main(m, map[string]func(){"bellwether": main})
}

// TestScripts runs testdata/*.txtar. Besides testscript's own commands they use:
//
//	status N CMD…        run CMD, which must end with exit status N
//	start NAME CMD…      run CMD beside the script; its output goes to NAME.out and NAME.err
//	serve NAME FLAG…     start bellwether serve and wait until it serves; its address is
//	                     then $NAME and, for the client's commands, $BELLWETHER_SERVER
//	ensemble NAME FLAG…  start bellwether serve --ensemble 3 and wait until all three serve; the
//	                     addresses are then $NAME, one by one $NAME1, $NAME2, $NAME3
//	leader NAME [ID]     wait until one of them leads, not ID; then $leader is its number and
//	                     $pid its process's id
//	handover NAME [ID] FLAG…
//	                     have the leader hand over, again while time runs out; then $leader and
//	                     $pid are those of the next one, $was is the number of the one before
//	call NAME METHOD PATH
//	                     ask what serve --faults takes calls for; the answer is the standard output
//	refused NAME METHOD PATH STATUS REGEX
//	                     the same, which must be refused in these words
//	servers NAME         set $NAME, $NAME1, … to the addresses that serve --ensemble has printed
//	signal NAME SIG      send a signal to what start or serve started
//	ends NAME N          wait for its end, with exit status N
//	await FILE REGEX     wait until FILE has a match
//	gone FILE            wait for the end of the process whose id stands in FILE
//	jsonlines [FILE]     the last standard output, or FILE, is JSON, one value a line
//	word SERVER WORD [REGEX]
//	                     send a four-letter word, with REGEX until the answer has a match;
//	                     the answer is the standard output
//	copydata SAMPLE DIR  copy a sample data directory
//	hold SERVER ID PATH… a client that makes ephemeral znodes with ID as data, sequential unless a
//	                     dot ends PATH, and their parents, and stays
//	garbage SERVER N     send what no client sends on N connections, one after the other
//	clog SERVER PATH     a client that asks for a znode again and again and never reads
//	damage FILE OFFSET   flip one byte; cut FILE SIZE: cut the file off
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status, "start": start, "serve": serve, "ensemble": serveEnsemble, "leader": awaitLeader, "handover": handOver, "call": callFaults, "refused": refusedFaults, "servers": nameServers, "signal": sendSignal, "ends": ends,
			"await": await, "gone": gone, "jsonlines": jsonLines, "word": word,
			"copydata": copyData, "damage": damage, "cut": cut, "clog": clog, "hold": hold, "garbage": garbage,
		},
		Condition: condition,
	})
}

// condition knows [ipv6]: the machine has an IPv6 loopback, and [root]: file
// permissions do not hold for us.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "ipv6":
		ln, err := net.Listen("tcp", "[::1]:0")
		if err == nil {
			ln.Close()
		}
		return err == nil, nil
	}
	return false, fmt.Errorf("condition %q is not known", name)
}

// patience is how long a script waits for a condition.
const patience = 3 * time.Minute

// waitFor polls a condition; processes and files have no other way to tell.
func waitFor(ts *testscript.TestScript, what string, cond func() bool) {
	for deadline := time.Now().Add(patience); !cond(); {
		if time.Now().After(deadline) {
			ts.Fatalf("waited in vain for %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// process is what start started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed after Wait
}

// raceOptions keep a program that was built with the race detector from
// waiting for a second before it ends, a hundred times.
const raceOptions = "GORACE=atexit_sleep_ms=10 exitcode=66"

// stage is what one script's commands share.
type stage struct {
	names     []string // of the environment
	processes map[string]*process
}

type stageKey struct{}

func stageOf(ts *testscript.TestScript) *stage { return ts.Value(stageKey{}).(*stage) }

// setUp also names the variables that a started program gets, empty until a
// script sets them.
func setUp(env *testscript.Env) error {
	env.Vars = append(env.Vars, "BELLWETHER_SERVER=", "BELLWETHER_AUTH=", "flags=", "ns=", "runner=", "JVMFLAGS=", "SERVER_JVMFLAGS=", raceOptions)
	s := &stage{processes: map[string]*process{}}
	for _, v := range env.Vars {
		name, _, _ := strings.Cut(v, "=")
		s.names = append(s.names, name)
	}
	env.Values[stageKey{}] = s
	env.Defer(func() {
		for _, p := range s.processes {
			p.cmd.Process.Signal(syscall.SIGCONT)
			p.cmd.Process.Kill()
			<-p.ended
		}
	})
	return nil
}

// refuse ends a script that uses a command in a way it has not.
func refuse(ts *testscript.TestScript, neg bool, args []string, least int, usage string) {
	if neg || len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "status N CMD…")
	err := ts.Exec(args[1], args[2:]...)
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		ts.Fatalf("%v", err)
	}
	got := 0
	if ended != nil {
		got = ended.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

func start(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "start NAME CMD…")
	s := stageOf(ts)
	name := args[0]
	if s.processes[name] != nil {
		ts.Fatalf("%s was started before", name)
	}
	path := args[1]
	if !strings.Contains(path, "/") {
		for dir := range strings.SplitSeq(ts.Getenv("PATH"), ":") {
			if _, err := os.Stat(filepath.Join(dir, args[1])); err == nil {
				path = filepath.Join(dir, args[1])
				break
			}
		}
	}
	p := &process{cmd: exec.Command(path, args[2:]...), ended: make(chan struct{})}
	p.cmd.Dir = ts.MkAbs(".")
	for _, n := range s.names {
		p.cmd.Env = append(p.cmd.Env, n+"="+ts.Getenv(n))
	}
	out, err := os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs(name + ".err"))
	ts.Check(err)
	defer errs.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, errs
	ts.Check(p.cmd.Start())
	s.processes[name] = p
	go func() {
		p.cmd.Wait() // its status is read from ProcessState
		close(p.ended)
	}()
}

// serving finds the address in either form of the log.
var serving = regexp.MustCompile(`msg"?[=:]"?serving"?,? "?address"?[=:]"?([^ ",]+)`)

func serve(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "serve NAME FLAG…")
	start(ts, false, append([]string{args[0], "bellwether", "serve"}, args[1:]...))
	p := stageOf(ts).processes[args[0]]
	var found []string
	waitFor(ts, args[0]+" to serve", func() bool {
		log, err := os.ReadFile(ts.MkAbs(args[0] + ".err"))
		ts.Check(err)
		found = serving.FindStringSubmatch(strings.ReplaceAll(string(log), `","address`, `", "address`))
		if found == nil && p.hasEnded() {
			ts.Fatalf("it ended: %s", log)
		}
		return found != nil
	})
	ts.Setenv(args[0], found[1])
	ts.Setenv("BELLWETHER_SERVER", found[1])
}

// ensembleAt finds the addresses of an ensemble's servers.
var ensembleAt = regexp.MustCompile(`servers for clients at ([^ ]+), data in`)

func serveEnsemble(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "ensemble NAME FLAG…")
	name := args[0]
	start(ts, false, append([]string{name, "bellwether", "serve", "--ensemble", "3", "--listen", "127.0.0.1:0"}, args[1:]...))
	p := stageOf(ts).processes[name]
	var found []string
	waitFor(ts, name+" to serve", func() bool {
		if p.hasEnded() {
			ts.Fatalf("it ended: %s", ts.ReadFile(name+".err"))
		}
		found = ensembleAt.FindStringSubmatch(ts.ReadFile(name + ".out"))
		log := ts.ReadFile(name + ".err")
		for id := 1; id <= 3; id++ {
			if ok, _ := regexp.MatchString(fmt.Sprintf(`(?m)^%d \| .*\bserving\b.*\baddress\b`, id), log); !ok {
				return false
			}
		}
		return found != nil
	})
	ts.Setenv(name, found[1])
	for i, address := range strings.Split(found[1], ",") {
		ts.Setenv(name+strconv.Itoa(i+1), address)
	}
}

func awaitLeader(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "leader NAME [ID]")
	name, id, not := args[0], "", strings.Join(args[1:], "")
	waitFor(ts, "a leader", func() bool {
		for i, address := range strings.Split(ts.Getenv(name), ",") {
			id = strconv.Itoa(i + 1)
			if answer, err := tryWord(address, "srvr"); err == nil && strings.Contains(answer, "Mode: leader\n") && id != not {
				return true
			}
		}
		return false
	})
	lines := regexp.MustCompile(`(?m)^`+id+` \| is process (\d+)$`).FindAllStringSubmatch(ts.ReadFile(name+".err"), -1)
	ts.Setenv("leader", id)
	ts.Setenv("pid", lines[len(lines)-1][1])
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// started is a process by its name.
func started(ts *testscript.TestScript, name string) *process {
	p := stageOf(ts).processes[name]
	if p == nil {
		ts.Fatalf("%s was not started", name)
	}
	return p
}

var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	"QUIT": syscall.SIGQUIT,
}

func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "signal NAME SIG")
	sig, ok := signals[args[1]]
	if !ok {
		ts.Fatalf("signal %s is not known here", args[1])
	}
	ts.Check(started(ts, args[0]).cmd.Process.Signal(sig))
}

func ends(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "ends NAME N")
	p := started(ts, args[0])
	waitFor(ts, "the end of "+args[0], p.hasEnded)
	got := p.cmd.ProcessState.ExitCode()
	if ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		got = 128 + int(ws.Signal())
	}
	if strconv.Itoa(got) != args[1] {
		ts.Fatalf("%s ended with status %d, want %s\n%s", args[0], got, args[1], ts.ReadFile(args[0]+".err"))
	}
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "await FILE REGEX")
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	waitFor(ts, args[0]+" to have "+args[1], func() bool {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && re.Match(b)
	})
}

func gone(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "gone FILE")
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	waitFor(ts, "the end of process "+strconv.Itoa(pid), func() bool { return !alive(pid) })
}

// alive reports whether a process runs; one that waits to be collected does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return !strings.Contains(string(stat), ") Z ")
}

func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	file := append(args, "stdout")[0]
	text := strings.TrimSuffix(ts.ReadFile(file), "\n")
	for i, line := range strings.Split(text, "\n") {
		if !json.Valid([]byte(line)) {
			ts.Fatalf("line %d is not JSON: %s", i+1, line)
		}
	}
}

func word(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "word SERVER WORD [REGEX]")
	answer := ask(ts, args[0], args[1])
	if len(args) > 2 {
		re, err := regexp.Compile(args[2])
		ts.Check(err)
		waitFor(ts, "the answer "+args[2], func() bool {
			answer = ask(ts, args[0], args[1])
			return re.MatchString(answer)
		})
	}
	fmt.Fprint(ts.Stdout(), answer)
}

// ask sends a four-letter word.
func ask(ts *testscript.TestScript, server, word string) string {
	answer, err := tryWord(server, word)
	ts.Check(err)
	return answer
}

// tryWord sends a four-letter word to a server that may not be there.
func tryWord(server, word string) (string, error) {
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

const (
	clogFrames  = 200 // requests whose answers no socket buffer holds
	clogAnswers = 100 // of srvr, without progress: the server runs and yet sends no more
)

func clog(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "clog SERVER PATH")
	conn, err := net.Dial("tcp", args[0])
	ts.Check(err)
	ts.Defer(func() { conn.Close() })
	frames := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 40_000, Password: make([]byte, wire.PasswordLen)})
	for i := range clogFrames {
		frames = wire.AppendFrame(frames, &wire.RequestHeader{Xid: int32(i + 1), Op: wire.OpGetData}, &wire.PathWatchRequest{Path: args[1]})
	}
	_, err = conn.Write(frames)
	ts.Check(err)
	last, same := 0, 0
	waitFor(ts, "the server to stop at it", func() bool {
		_, line, _ := strings.Cut(ask(ts, args[0], "srvr"), "Received: ")
		line, _, _ = strings.Cut(line, "\n")
		now, err := strconv.Atoi(line)
		ts.Check(err)
		if now != last+1 || now < 10 { // the word itself counts
			same = 0
		}
		last = now
		same++
		return same > clogAnswers
	})
}

// samples are data directories that Apache ZooKeeper wrote.
const samples = "../../internal/store/testdata"

func copyData(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "copydata SAMPLE DIR")
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(filepath.Join(samples, args[0]))))
}

func damage(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "damage FILE OFFSET")
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	b := []byte(ts.ReadFile(args[0]))
	b[at] ^= 0x55
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o644))
}

func cut(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "cut FILE SIZE")
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}
