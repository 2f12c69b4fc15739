package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFlagsWithAnEffect shows which flags have an effect, and which key of zoo.cfg has the same one.
func TestFlagsWithAnEffect(t *testing.T) {
	text := "-Xmx1g -Djute.maxbuffer=1 -Djute.maxbuffer=4194304 -Dzookeeper.skipACL=yes -Dzookeeper.bogus=1 -Dfile.encoding=UTF-8 " +
		"-Dzookeeper.ssl.keyStore.password=secret -Dzookeeper.ssl.future=1 -Dzookeeper.watchManagerName=x -Dzookeeper.tickTime=1"
	want := []Flag{
		{"jute.maxbuffer", "4194304", ""},
		{"zookeeper.skipACL", "yes", "skipACL"},
		{"zookeeper.ssl.keyStore.password", "", "ssl.keyStore.password"},
		{"zookeeper.ssl.future", "", "ssl.future"},
	}
	if got := Flags(strings.Fields(text)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestExamineGoesOn shows that a configuration with faults is returned with all of them if its data directory and
// members are known, and not if they are not.
func TestExamineGoesOn(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		t.Helper()
		file := filepath.Join(dir, "zoo.cfg")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	c, err := Examine(write("dataDir="+dir+"\nclientPort=2181\nauthProvider.1=com.example.Own\ntickTime=x\n"), nil)
	if c == nil || c.DataDir != dir || c.Client.Port != 2181 || err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{"clientPort=2181\ntickTime=x\n", "dataDir=" + dir + "\ntickTime=x\nserver.1=a:2888:3888;2181\nserver.2=b:2888:3888;2181\n"} {
		if c, err := Examine(write(text), nil); c != nil || err == nil {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	if c, err := Examine(write("dataDir="+dir+"\nclientPort=2181\n"), nil); c == nil || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestFlagsWithBlanks shows that a flag of a running process keeps the blanks of its value.
func TestFlagsWithBlanks(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte("dataDir="+dir+"\nclientPort=2181\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	words := []string{"-Dzookeeper.superUser=CN=admin, O=Example"}
	if got, want := Flags(words), []Flag{{"zookeeper.superUser", "CN=admin, O=Example", "superUser"}}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c, err := Examine(file, words); err != nil || c.Access.SASLSuper != "CN=admin, O=Example" {
		t.Errorf("%+v, %v", c, err)
	}
}
