package interop

import (
	"context"
	"errors"
	"testing"

	"bellwether/interop/target"
	"bellwether/zk"
)

// zookeeperPath is the class path of Apache's own client.
const zookeeperPath = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"

// TestReadOnlyKazoo uses kazoo's client with read_only=True.
func TestReadOnlyKazoo(t *testing.T) {
	target.File(t, debianPython, "python3-kazoo")
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		e := readOnlyPair(t, kind)
		target.Script{Args: []string{debianPython, "-B", "readonly/reader.py", e.Addrs()}, Commands: quorumCommands(e)}.Pass(t)
	})
}

// TestReadOnlyJava uses Apache's own client with and without canBeReadOnly.
func TestReadOnlyJava(t *testing.T) {
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/zookeeper.jar", "libzookeeper-java")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", zookeeperPath, "-d", classes, "readonly/Reader.java"},
	}.Pass(t)
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		e := readOnlyPair(t, kind)
		args := append([]string{java}, target.JVM...)
		args = append(args, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classes+":"+zookeeperPath, "Reader", e.Addrs())
		target.Script{Args: args, Commands: quorumCommands(e)}.Pass(t)
	})
}

// TestReadOnlyZK uses package zk with Options.ReadOnly.
func TestReadOnlyZK(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		e := readOnlyPair(t, kind)
		commands := quorumCommands(e)
		ctx, cancel := context.WithTimeout(t.Context(), 2*readOnlyTimeout)
		defer cancel()
		writer, err := zk.Connect(ctx, e.Addrs(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := writer.Create(ctx, "/zk-reads", []byte("v")); err != nil {
			t.Fatal(err)
		}
		writer.Close(ctx)
		if err := commands["@alone"](); err != nil {
			t.Fatal(err)
		}
		c, err := zk.Connect(ctx, e.Addrs(), &zk.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		if s := c.State(); s.State != zk.ReadOnly {
			t.Fatalf("the state is %v", s.State)
		}
		if data, _, err := c.Get(ctx, "/zk-reads"); err != nil || string(data) != "v" {
			t.Errorf("%q, %v", data, err)
		}
		if _, err := c.Set(ctx, "/zk-reads", nil, -1); !errors.Is(err, zk.ErrNotReadOnly) {
			t.Errorf("a write: %v", err)
		}
		if l := c.Lease(); l.Session != 0 {
			t.Errorf("a read-only client has a lease: %+v", l)
		}
		if err := commands["@whole"](); err != nil {
			t.Fatal(err)
		}
		for s := range c.States(ctx) {
			if s.State == zk.Expired {
				t.Error("the client reports an expired session, but it had none")
			}
			if s.State == zk.Connected {
				break
			}
		}
		if _, err := c.Set(ctx, "/zk-reads", []byte("w"), -1); err != nil {
			t.Errorf("a write with a quorum: %v", err)
		}
	})
}

// quorumCommands returns commands that stop and restart the second server of a pair, so that
// the first loses and regains its quorum.
func quorumCommands(e *target.Ensemble) map[string]func() error {
	return map[string]func() error{
		"@alone": func() error {
			e.Servers[1].Kill()
			return whenWord(e.Servers[0], "isro", "ro")
		},
		"@whole": e.Servers[1].Begin,
	}
}
