package preflight

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// processOf writes what Linux shows of a process with the id 7 and returns the folder that stands for /proc.
func processOf(t *testing.T, words ...string) string {
	t.Helper()
	proc := t.TempDir()
	writeProc(t, proc, "cmdline", words...)
	writeProc(t, proc, "environ", "HOME=/")
	return proc
}

// writeProc writes words as Linux shows a command line or an environment.
func writeProc(t *testing.T, proc, name string, words ...string) {
	t.Helper()
	dir := filepath.Join(proc, "7")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(words, "\x00")+"\x00"), 0o666); err != nil {
		t.Fatal(err)
	}
}

const mainClass = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// TestFlagsOfAProcessKeepTheirBlanks shows that a flag of a running process is one flag, whatever its value contains.
func TestFlagsOfAProcessKeepTheirBlanks(t *testing.T) {
	const super = "-Dzookeeper.superUser=CN=admin, O=Example"
	p, err := ReadProcess(processOf(t, "java", "-Xmx1g", super, "-cp", "a b", mainClass, "/etc/zoo.cfg"), 7)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{super}; !slices.Equal(p.Flags, want) {
		t.Errorf("got %q, want %q", p.Flags, want)
	}
	c, err := examined(t, "", p.Flags...)
	if err != nil {
		t.Fatal(err)
	}
	got := Moved(c, nil, p.Flags, nil)
	if !slices.ContainsFunc(got, func(f Finding) bool { return f.Do == "add the line superUser=CN=admin, O=Example to zoo.cfg" }) {
		t.Errorf("findings: %+v", got)
	}
}

// TestFlagsInTheEnvironmentOfAProcess shows that the flags in the variables of Java are read with the precedence that Java
// gives them, and split as Java splits them.
func TestFlagsInTheEnvironmentOfAProcess(t *testing.T) {
	proc := processOf(t, "java", "-Da=command", mainClass, "/etc/zoo.cfg")
	writeProc(t, proc, "environ", "OTHER=-Dz=1", "JDK_JAVA_OPTIONS=-Db='p q'r\t-Xmx1g", `JAVA_TOOL_OPTIONS=-Dc="1'2" -Dd=x\ `, "_JAVA_OPTIONS=-Da=last")
	p, err := ReadProcess(proc, 7)
	if err != nil || p.Hidden != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	if want := []string{"-Dc=1'2", `-Dd=x\`, "-Db=p qr", "-Da=command", "-Da=last"}; !slices.Equal(p.Flags, want) {
		t.Errorf("got %q, want %q", p.Flags, want)
	}
}

// TestHiddenFlagsOfAProcess shows that files with arguments, and an environment that cannot be read, leave the verdict
// unknown.
func TestHiddenFlagsOfAProcess(t *testing.T) {
	read := func(proc string) []Finding {
		t.Helper()
		p, err := ReadProcess(proc, 7)
		if err != nil {
			t.Fatal(err)
		}
		return p.Hidden
	}
	proc := processOf(t, "java", "@flags", "-XX:VMOptionsFile=/more", mainClass, "/etc/zoo.cfg", "@not")
	writeProc(t, proc, "environ", "JDK_JAVA_OPTIONS=@further")
	got := read(proc)
	for _, word := range []string{"@flags", "-XX:VMOptionsFile=/more", "@further"} {
		if !finds(got, Unseen, word, "process 7 has arguments in this file, which was not examined") {
			t.Errorf("%s: %+v", word, got)
		}
	}
	if len(got) != 3 {
		t.Errorf("findings: %+v", got)
	}
	if err := os.Remove(filepath.Join(proc, "7", "environ")); err != nil {
		t.Fatal(err)
	}
	writeProc(t, proc, "cmdline", "java", mainClass, "/etc/zoo.cfg")
	if got := read(proc); !finds(got, Unseen, "--pid", "the environment of process 7 cannot be read") {
		t.Errorf("findings: %+v", got)
	}
	if _, err := ReadProcess(processOf(t, "java", "@all"), 7); err == nil || !strings.Contains(err.Error(), "has arguments in a file (@all)") {
		t.Errorf("the class is in a file: %v", err)
	}
}

// TestProcessOfZooKeeper reads the command line of a process as Linux shows it.
func TestProcessOfZooKeeper(t *testing.T) {
	proc := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	zoo := filepath.Join(proc, "zoo.cfg")
	write("zoo.cfg", "")
	write("7/cmdline", strings.Join([]string{"java", "-Dzookeeper.log.dir=/a b", "-Djute.maxbuffer=4", "-cp", "x.jar", "-Xmx1g", "org.apache.zookeeper.server.quorum.QuorumPeerMain", zoo, ""}, "\x00"))
	write("7/environ", "")
	write("8/cmdline", "sleep\x001000\x00")
	p, err := ReadProcess(proc, 7)
	if err != nil || p.Hidden != nil || strings.Join(p.Flags, "|") != "-Dzookeeper.log.dir=/a b|-Djute.maxbuffer=4" || p.Config != zoo {
		t.Fatalf("%+v, %v", p, err)
	}
	if got := p.SameConfig(zoo); got != nil {
		t.Errorf("the same file: %+v", got)
	}
	if got := p.SameConfig(filepath.Join(proc, "8/cmdline")); !finds(got, Prevents, "", "the running process has read "+zoo) {
		t.Errorf("another file: %+v", got)
	}
	if _, err := ReadProcess(proc, 8); err == nil || !strings.Contains(err.Error(), "process 8 is no ZooKeeper server") {
		t.Errorf("no server: %v", err)
	}
	if _, err := ReadProcess(proc, 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no process: %v", err)
	}
}
