package interop

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bellwether/interop/target"
)

var update = flag.Bool("update", false, "rewrite testdata from what Apache ZooKeeper answers")

const (
	zkCLI     = "org.apache.zookeeper.ZooKeeperMain"
	zkCLIPath = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar"
	barrier   = "Sync is OK" // the output of the command that ends each section
)

// TestZkCLI shows that Apache's command line prints the same with both servers. Each file of
// testdata/zkcli is a transcript recorded with the real server. Lines with > are typed into one
// interactive session, lines with $ are separate runs, and their output follows. normalise
// makes times, sessions and zxids comparable. Each file uses a new server: in 3.8.0 the removal
// of a persistent watch breaks the recursive watches that any session sets afterwards.
func TestZkCLI(t *testing.T) {
	target.File(t, "/usr/share/java/zookeeper.jar", "libzookeeper-java")
	target.File(t, "/usr/share/java/slf4j-nop.jar", "libslf4j-java")
	target.Tool(t, "java", "default-jdk-headless")
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		for _, file := range glob(t, "testdata/zkcli/*.txt") {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				compareTranscript(t, target.StartFor(t, kind, target.Options{}), file)
			})
		}
	})
}

// compareTranscript runs the commands of a transcript and compares the output.
func compareTranscript(t *testing.T, s *target.Server, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	got := normalise(replay(t, s, cliArgs(t, s), want), s)
	if *update && s.Kind == target.Apache {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s answers differently from %s:\n%s", s.Kind, file, firstDifference(got, want))
	}
}

// replay runs a transcript's commands with a command line program and returns the new transcript.
func replay(t *testing.T, s *target.Server, program []string, transcript string) string {
	var typed []string
	var out strings.Builder
	for line := range strings.Lines(transcript) {
		line = strings.TrimSpace(line)
		if command, ok := strings.CutPrefix(line, "> "); ok {
			typed = append(typed, command)
		}
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			out.WriteString(oneShot(t, program, command))
		}
	}
	if len(typed) > 0 {
		out.WriteString(session(t, s, program, typed))
	}
	return out.String()
}

// session types the commands into one run of the program. A sync after each command makes its
// output, and the events that it caused, one section, because the callback of sync runs after
// the watchers. After close no sync is possible; its output is part of the next section.
func session(t *testing.T, s *target.Server, program, commands []string) string {
	input := "sync /\n"
	for _, command := range commands {
		input += strings.ReplaceAll(command, "SERVER", s.Addr) + "\n"
		if command != "close" && !strings.HasPrefix(command, "sync ") {
			input += "sync /\n"
		}
	}
	shell := `exec "$@" 2>&1` // both output streams, so that their lines stay in order
	args := append([]string{"/bin/sh", "-c", shell, "cli"}, program...)
	r := target.Script{Args: args, Stdin: input + "quit\n"}.Run(t)
	sections := strings.Split(r.Stdout, barrier+"\n")[1:]
	var out strings.Builder
	for _, command := range commands {
		out.WriteString("> " + command + "\n")
		if command == "close" {
			continue
		}
		if len(sections) == 0 {
			t.Fatalf("no answer to %q: %s", command, r.Output())
		}
		out.WriteString(section(sections[0]))
		sections = sections[1:]
	}
	return out.String()
}

// section moves the events of a section to the end of the command's output, because a separate thread prints
// them.
func section(text string) string {
	var answer, events []string
	for line := range strings.Lines(text) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "" || line == "WATCHER::":
		case strings.HasPrefix(line, "WatchedEvent "):
			events = append(events, line)
		default:
			answer = append(answer, line)
		}
	}
	lines := append(answer, events...)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// oneShot runs the program with one command. It removes the session's events: whether they
// are printed depends on how soon the process ends.
func oneShot(t *testing.T, program []string, command string) string {
	r := target.Script{Args: slices.Concat(program, strings.Fields(command))}.Run(t)
	r.Stdout = anyEvent.ReplaceAllString(r.Stdout, "")
	return fmt.Sprintf("$ %s\nexit %d\n%s%s", command, r.Exit, section(r.Stdout), section(r.Stderr))
}

func cliArgs(t *testing.T, s *target.Server) []string {
	args := append([]string{target.Tool(t, "java", "default-jdk-headless")}, target.JVM...)
	return append(args, "-cp", zkCLIPath, zkCLI, "-server", s.Addr)
}

var (
	anyTime  = regexp.MustCompile(`(?m)^(ctime|mtime) = .* 20\d\d$`)
	anyBuild = regexp.MustCompile(`(?m)^ZooKeeper CLI version: .*$`)
	anyEvent = regexp.MustCompile(`(?m)^WatchedEvent .*\n`)
	anyOwner = regexp.MustCompile(`(?m)^ephemeralOwner = 0x[0-9a-f]{2,}$`)
	anyUsers = regexp.MustCompile(`(?m)^Auth scheme: User\n(\w+: .*\n)+`)
	anyPaths = regexp.MustCompile(`(?m)^\[/.*\]$`)
	anyZxid  = regexp.MustCompile(`(?m)^([cmp]Zxid) = 0x([0-9a-f]+)$`)
)

// sortLines sorts the lines after a heading, which servers send in random order.
func sortLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines[1 : len(lines)-1]) // all lines between the heading and the end
	return strings.Join(lines, "")
}

// sortList sorts a list of paths, whose order is random too.
func sortList(list string) string {
	paths := strings.Split(strings.Trim(list, "[]"), ", ")
	slices.Sort(paths)
	return "[" + strings.Join(paths, ", ") + "]"
}

// normalise replaces what differs from run to run. It replaces zxids by their distance from the
// first one in the transcript, so that a write that uses one zxid too many still shows.
func normalise(text string, s *target.Server) string {
	text = strings.ReplaceAll(text, s.Addr, "SERVER")
	text = anyTime.ReplaceAllString(text, "$1 = TIME")
	text = anyBuild.ReplaceAllString(text, "ZooKeeper CLI version: BUILD")
	text = anyOwner.ReplaceAllString(text, "ephemeralOwner = SESSION")
	text = anyUsers.ReplaceAllStringFunc(text, sortLines)
	text = anyPaths.ReplaceAllStringFunc(text, sortList)
	var first uint64
	return anyZxid.ReplaceAllStringFunc(text, func(line string) string {
		part := anyZxid.FindStringSubmatch(line)
		zxid, err := strconv.ParseUint(part[2], 16, 64)
		if err != nil || zxid == 0 {
			return line
		}
		if first == 0 {
			first = zxid
		}
		return fmt.Sprintf("%s = FIRST%+d", part[1], int64(zxid-first))
	})
}

// firstDifference returns the first command whose output differs.
func firstDifference(got, want string) string {
	gots, wants := answers(got), answers(want)
	var b strings.Builder
	for i := range min(len(gots), len(wants)) {
		if gots[i] != wants[i] {
			fmt.Fprintf(&b, "--- got\n%s--- want\n%s", gots[i], wants[i])
		}
	}
	if len(gots) != len(wants) {
		fmt.Fprintf(&b, "%d answers, want %d\n", len(gots), len(wants))
	}
	return b.String()
}

// answers splits a transcript into commands with their output.
func answers(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "$ ") || len(all) == 0 {
			all = append(all, "")
		}
		all[len(all)-1] += line
	}
	return slices.Clip(all)
}
