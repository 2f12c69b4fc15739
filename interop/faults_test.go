package interop

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestFaultsFromPython shows the effect of each fault on demand on kazoo's client.
func TestFaultsFromPython(t *testing.T) {
	t.Parallel()
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	servers, url := faulty(t)
	target.Script{Args: []string{debianPython, "-B", "faults/faults.py", servers, url}}.Pass(t)
}

// TestFaultsFromJava shows the effect of each fault on demand on Apache's client.
func TestFaultsFromJava(t *testing.T) {
	t.Parallel()
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/zookeeper.jar", "libzookeeper-java")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", javaPath, "-d", classes, "faults/Faults.java"},
	}.Pass(t)
	servers, url := faulty(t)
	target.Script{Args: append(append([]string{java}, target.JVM...), "-cp", classes+":"+javaPath, "Faults", servers, url)}.Pass(t)
}

// TestFaultsPagePython runs the Python program of docs/faults.md unchanged.
func TestFaultsPagePython(t *testing.T) {
	t.Parallel()
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	script := filepath.Join(t.TempDir(), "page.py")
	onPage(t, "python", script)
	target.Script{Args: []string{debianPython, "-B", script}, Env: inPath(t)}.Pass(t)
}

// TestFaultsPageJava runs the Java program of docs/faults.md unchanged.
func TestFaultsPageJava(t *testing.T) {
	t.Parallel()
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/zookeeper.jar", "libzookeeper-java")
	source := filepath.Join(t.TempDir(), "Ensemble.java")
	onPage(t, "java", source)
	target.Script{Args: append(append([]string{java}, target.JVM...), "-cp", javaPath, source), Env: inPath(t)}.Pass(t)
}

// javaPath is the class path of Apache's client with a silent logger.
const javaPath = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar"

// onPage writes the program of docs/faults.md in this language to a file.
func onPage(t *testing.T, language, file string) {
	t.Helper()
	page, err := os.ReadFile("../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(page), "```"+language+"\n")
	program, _, ended := strings.Cut(program, "```\n")
	if !found || !ended {
		t.Fatalf("there is no program in %s", language)
	}
	if err := os.WriteFile(file, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
}

// inPath returns an environment whose PATH contains the program bellwether.
func inPath(t *testing.T) []string {
	t.Helper()
	return []string{"PATH=" + filepath.Dir(binaryOf(t)) + string(os.PathListSeparator) + os.Getenv("PATH")}
}

// TestFaultsByCurl runs the curl commands of docs/faults.md, with another address and the
// session of an existing client.
func TestFaultsByCurl(t *testing.T) {
	t.Parallel()
	target.Tool(t, "curl", "curl")
	page, err := os.ReadFile("../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	servers, url := faulty(t)
	ctx, cancel := context.WithTimeout(t.Context(), registryWait)
	defer cancel()
	c, err := zk.Connect(ctx, servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Detach()
	var script strings.Builder
	for line := range strings.Lines(string(page)) {
		if command, ok := strings.CutPrefix(line, "$ "); ok && !strings.HasPrefix(command, "bellwether") {
			script.WriteString(strings.NewReplacer("http://127.0.0.1:7000", url, "0x300000000000001", c.Session().ID.String()).Replace(command))
		}
	}
	if n := strings.Count(script.String(), "post /") + strings.Count(script.String(), "post '/"); n < 20 {
		t.Fatalf("only %d calls were found", n)
	}
	cmd := exec.CommandContext(ctx, "sh", "-ec", script.String())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), `{"servers":[{"id":1,`) || strings.Contains(string(out), "error") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The lines that serve --faults prints at its start.
var (
	faultyServers = regexp.MustCompile(`^3 servers for clients at (\S+),`)
	faultyCalls   = regexp.MustCompile(`^faults at (http://\S+)/$`)
)

// faulty runs an ensemble with faults until the end of the test. It returns the addresses of
// its servers and the URL for faults.
func faulty(t *testing.T) (servers, url string) {
	t.Helper()
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--ensemble", "3", "--faults", "--memory", "--listen", "127.0.0.1:0", "--log-level", "warn")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve --faults: %v", err)
		}
	})
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		if found := faultyServers.FindStringSubmatch(lines.Text()); found != nil {
			servers = found[1]
		}
		if found := faultyCalls.FindStringSubmatch(lines.Text()); found != nil {
			url = found[1]
		}
	}
	if servers == "" || url == "" {
		t.Fatalf("servers %q, calls at %q", servers, url)
	}
	return servers, url
}
