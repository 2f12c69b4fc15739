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

// TestMain lets the test binary also act as the program, when it is started under the program's name.
func TestMain(m *testing.M) {
	if guard.IsGuardian() {
		os.Exit(guard.Main())
	}
	testscript.Main(m, map[string]func(){"bellwether": main})
}

// TestScripts runs testdata/*.txtar. Besides testscript's own commands they use:
//
//	status N CMD…        run CMD, which must end with exit status N
//	until N REGEX CMD…   run CMD until it ends with exit status N and its output has a match
//	start NAME CMD…      run CMD beside the script; its output goes to NAME.out and NAME.err
//	admin NAME           wait until a server has an admin port; its address is then in $admin
//	serve NAME FLAG…     start bellwether serve and wait until it serves; its address is
//	                     then $NAME and, for the client's commands, $BELLWETHER_SERVER
//	ensemble NAME FLAG…  start bellwether serve --ensemble 3 and wait until all three serve; the
//	                     addresses are then $NAME, one by one $NAME1, $NAME2, $NAME3
//	leader NAME [ID]     wait until a server other than ID leads; then $leader is its number and
//	                     $pid the id of its process
//	handover NAME [ID] FLAG…
//	                     make the leader transfer leadership, with retries if it takes too long; then $leader and
//	                     $pid belong to the new leader, and $was is the number of the old one
//	call NAME METHOD PATH
//	                     call the HTTP interface of serve --faults; the answer is the standard output
//	refused NAME METHOD PATH STATUS REGEX
//	                     a call that must be refused with STATUS and a text that matches REGEX
//	servers NAME         set $NAME, $NAME1, … to the addresses that serve --ensemble has printed
//	shadow NAME OLD OBSERVER FLAG…
//	                     start bellwether shadow and wait until it forwards; its address is then $NAME
//	signal NAME SIG      send a signal to a process that start or serve started
//	ends NAME N          wait until that process ends, which must be with exit status N
//	await FILE REGEX     wait until FILE has a match
//	gone FILE            wait for the end of the process whose id FILE contains
//	jsonlines [FILE]     the last standard output, or FILE, is JSON, one value a line
//	word SERVER WORD [REGEX]
//	                     send a four-letter word, with REGEX until the answer has a match;
//	                     the answer is the standard output
//	copydata SAMPLE DIR  copy a sample data directory
//	hold SERVER ID PATH… a client that makes ephemeral znodes with ID as data, sequential unless a
//	                     dot ends PATH, and their parents, and stays
//	garbage SERVER N     send bytes that no client sends on N connections, one after the other
//	clog SERVER PATH     a client that asks for a znode again and again and never reads
//	issued DAYS DIR ID=HOST CLIENT…
//	                     what tls init would have made that many days ago
//	seats N              find places for N servers on this machine: $line1, … are their lines, and $at1, … their
//	                     addresses for clients
//	member NAME ID LINE… start server ID with these lines, which allows changes of the members; super's password is secret
//	answers NAME VERSION MODE ZXID
//	                     answer srvr like such a server, at the address $NAME
//	damage FILE OFFSET   flip one byte; cut FILE SIZE: cut the file off
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status, "until": until, "start": start, "serve": serve, "ensemble": serveEnsemble, "leader": awaitLeader, "handover": transferLeadership, "call": callFaults, "refused": refusedFaults, "servers": nameServers, "shadow": startShadow, "seats": nameSeats, "member": startMember, "answers": answerSrvr, "signal": sendSignal, "ends": ends,
			"admin": awaitAdmin, "await": await, "gone": gone, "jsonlines": jsonLines, "word": word,
			"copydata": copyData, "damage": damage, "cut": cut, "clog": clog, "hold": hold, "garbage": garbage, "issued": issued,
		},
		Condition: condition,
	})
}

// condition implements the conditions of scripts. [ipv6]: the machine has an IPv6 loopback address. [root]: the
// user is root, so file permissions do not restrict the program.
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

// waitMax is the longest time that a script waits for a condition.
const waitMax = 3 * time.Minute

// waitFor polls a condition, because processes and files cannot notify the test.
func waitFor(ts *testscript.TestScript, what string, cond func() bool) {
	for deadline := time.Now().Add(waitMax); !cond(); {
		if time.Now().After(deadline) {
			describeProcesses(ts)
			ts.Fatalf("timed out waiting for %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// describeProcesses logs which of the started processes have ended, and the end of what each has written to
// its standard error.
func describeProcesses(ts *testscript.TestScript) {
	const shown = 2000 // bytes
	for name, p := range stateOf(ts).processes {
		state := "is running"
		select {
		case <-p.ended:
			state = p.cmd.ProcessState.String()
		default:
		}
		errs, _ := os.ReadFile(ts.MkAbs(name + ".err"))
		ts.Logf("process %s: %s; the end of %s.err:\n%s", name, state, name, errs[max(0, len(errs)-shown):])
	}
}

// process is a process that the command start or serve has started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when Wait has returned
}

// raceOptions shorten the end of a program with the race detector. By default such a program waits for a second
// before it ends, and the scripts run the program hundreds of times.
const raceOptions = "GORACE=atexit_sleep_ms=10 exitcode=66"

// scriptState holds the values that the commands of one script share.
type scriptState struct {
	names     []string // names of the environment variables that a started process gets
	processes map[string]*process
}

type stateKey struct{}

func stateOf(ts *testscript.TestScript) *scriptState { return ts.Value(stateKey{}).(*scriptState) }

// setUp prepares the environment of a script. It defines each variable that started programs get; a variable is
// empty until the script sets it.
func setUp(env *testscript.Env) error {
	env.Vars = append(env.Vars, "BELLWETHER_SERVER=", "BELLWETHER_AUTH=", "BELLWETHER_TLS_CA=", "BELLWETHER_TLS_CERT=", "BELLWETHER_SASL_USER=", "BELLWETHER_SASL_PASSWORD=", "CLIENT_JVMFLAGS=", "flags=", "ns=", "runner=", "JVMFLAGS=", "SERVER_JVMFLAGS=", raceOptions)
	s := &scriptState{processes: map[string]*process{}}
	for _, v := range env.Vars {
		name, _, _ := strings.Cut(v, "=")
		s.names = append(s.names, name)
	}
	env.Values[stateKey{}] = s
	env.Defer(func() {
		for _, p := range s.processes {
			p.cmd.Process.Signal(syscall.SIGCONT)
			p.cmd.Process.Kill()
			<-p.ended
		}
	})
	return nil
}

// refuse fails the script if a command has too few arguments or is negated with "!".
func refuse(ts *testscript.TestScript, neg bool, args []string, least int, usage string) {
	if neg || len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "status N CMD…")
	if got := exitStatus(ts, args[1:]); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// exitStatus runs a command and returns its exit status.
func exitStatus(ts *testscript.TestScript, command []string) string {
	err := ts.Exec(command[0], command[1:]...)
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		return strconv.Itoa(ended.ExitCode())
	case err != nil:
		ts.Fatalf("%v", err)
	}
	return "0"
}

// until repeats a command that may give up too early on a busy machine.
func until(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 3, "until N REGEX CMD…")
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	waitFor(ts, "exit status "+args[0]+" and "+args[1], func() bool {
		got := exitStatus(ts, args[2:])
		return got == args[0] && re.MatchString(ts.ReadFile("stdout")+ts.ReadFile("stderr"))
	})
}

func start(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 2, "start NAME CMD…")
	s := stateOf(ts)
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
		p.cmd.Wait() // the caller reads the status from ProcessState
		close(p.ended)
	}()
}

// serving matches the log line, as text or as JSON, that contains the server's address for clients. If the server
// accepts only TLS, this is the address with TLS.
var serving = regexp.MustCompile(`msg"?[=:]"?serving"?,? "?(?:address|secure)"?[=:]"?([^ ",]+)`)

func serve(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "serve NAME FLAG…")
	start(ts, false, append([]string{args[0], "bellwether", "serve"}, args[1:]...))
	p := stateOf(ts).processes[args[0]]
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

// adminAt matches the part of a line that contains the address of a server's admin port.
var adminAt = regexp.MustCompile(`admin=(http://[^ ]+)/`)

func awaitAdmin(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "admin NAME")
	var found []string
	waitFor(ts, args[0]+" to have an admin port", func() bool {
		log, err := os.ReadFile(ts.MkAbs(args[0] + ".err"))
		ts.Check(err)
		found = adminAt.FindStringSubmatch(string(log))
		return found != nil
	})
	ts.Setenv("admin", found[1])
}

// ensembleAt matches the line that contains the addresses of an ensemble's servers.
var ensembleAt = regexp.MustCompile(`servers for clients at ([^ ]+), data in`)

func serveEnsemble(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "ensemble NAME FLAG…")
	name := args[0]
	start(ts, false, append([]string{name, "bellwether", "serve", "--ensemble", "3", "--listen", "127.0.0.1:0"}, args[1:]...))
	p := stateOf(ts).processes[name]
	var found []string
	waitFor(ts, name+" to serve", func() bool {
		if p.hasEnded() {
			ts.Fatalf("it ended: %s", ts.ReadFile(name+".err"))
		}
		found = ensembleAt.FindStringSubmatch(ts.ReadFile(name + ".out"))
		log := ts.ReadFile(name + ".err")
		for id := 1; id <= 3; id++ {
			if ok, _ := regexp.MatchString(fmt.Sprintf(`(?m)^%d \| .*\bserving\b.*\b(address|secure)\b`, id), log); !ok {
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

// started returns the process that was started under a name.
func started(ts *testscript.TestScript, name string) *process {
	p := stateOf(ts).processes[name]
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

// alive reports whether a process runs. A process that has ended but was not waited for yet does not count.
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

// ask sends a four-letter word and returns the answer. It fails the script if there is none.
func ask(ts *testscript.TestScript, server, word string) string {
	answer, err := tryWord(server, word)
	ts.Check(err)
	return answer
}

// tryWord sends a four-letter word to a server that may have ended.
func tryWord(server, word string) (string, error) {
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(waitMax)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

const (
	clogFrames  = 200 // number of requests; their replies are larger than all socket buffers
	clogAnswers = 100 // number of srvr answers without progress after which the server has stopped reading the connection
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
		if now != last+1 || now < 10 { // the server counts the word srvr itself as received
			same = 0
		}
		last = now
		same++
		return same > clogAnswers
	})
}

// samples is the folder with data directories that Apache ZooKeeper has written.
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
