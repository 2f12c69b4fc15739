package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestQuickstart and TestShellPage run every line of a page that begins with a prompt, and compare the output with
// the page. On the page, … stands for any text. A line that is only … stands for any number of lines.
func TestQuickstart(t *testing.T) { typePage(t, "quickstart.md", 5) }

func TestShellPage(t *testing.T) { typePage(t, "shell.md", 4) }

func typePage(t *testing.T, name string, least int) {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + name)
	must(t, err)
	dir := t.TempDir()
	program, err := exec.LookPath("bellwether")
	must(t, err)
	must(t, os.Symlink(program, filepath.Join(dir, "bellwether")))
	// The page uses the default port, which another process may use on this machine.
	address := serveForTest(t, dir)

	typed := 0
	for _, step := range strings.Split(string(page), "\n    $ ")[1:] {
		line, shown, _ := strings.Cut(step, "\n")
		var want []string
		for text := range strings.SplitSeq(shown, "\n") {
			text, ok := strings.CutPrefix(text, "    ")
			if !ok {
				break
			}
			if text == "…" {
				want = append(want, "(?s:.*)")
				continue
			}
			want = append(want, strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*"))
		}
		out, err := enter(dir, line, "BELLWETHER_SERVER="+address)
		for try := 0; try < 5 && strings.Contains(string(out), " is lost: "); try++ {
			t.Logf("%s: %s: again", line, out) // on a machine that was stopped for a while, a lock can be lost
			out, err = enter(dir, line, "BELLWETHER_SERVER="+address)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		if ok, err := regexp.Match("^"+strings.Join(want, "\n")+"\n$", out); len(want) > 0 && (err != nil || !ok) {
			t.Errorf("%s: %v\n%swant %s", line, err, out, strings.Join(want, "\n"))
		}
		typed++
	}
	if typed < least {
		t.Errorf("only %d lines were found", typed)
	}
}

// enter runs a line in a shell and returns its output.
func enter(dir, line, server string) ([]byte, error) {
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), server, raceOptions)
	return cmd.CombinedOutput()
}

// serveForTest runs a server in a directory until the test ends.
func serveForTest(t *testing.T, dir string) (address string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	defer log.Close()
	cmd := exec.Command("bellwether", "serve", "--listen", "127.0.0.1:0")
	cmd.Dir, cmd.Stderr = dir, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for deadline := time.Now().Add(waitMax); time.Now().Before(deadline); <-time.After(2 * time.Millisecond) {
		text, err := os.ReadFile(log.Name())
		must(t, err)
		if m := serving.FindSubmatch(text); m != nil {
			return string(m[1])
		}
	}
	t.Fatal("the server does not serve")
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
