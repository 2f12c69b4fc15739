package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/sasl/jaas"
	"bellwether/interop/target"
	"bellwether/zk"
)

// The keys of the three steps in which ZooKeeper documents the change to logins between servers.
var saslSteps = []string{"quorum.auth.enableSasl", "quorum.auth.learnerRequireSasl", "quorum.auth.serverRequireSasl"}

// quorumFiles are the Java properties and lines of zoo.cfg with which all servers of an ensemble log
// in to each other.
type quorumFiles struct {
	properties []string
	lines      map[string]string
}

// passwordLogins returns logins by DIGEST-MD5.
func passwordLogins(t *testing.T) quorumFiles {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jaas.conf")
	text := "QuorumServer { " + jaas.DigestModule + " required user_test=\"mypassword\"; };\n" +
		"QuorumLearner { " + jaas.DigestModule + " required username=\"test\" password=\"mypassword\"; };\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return quorumFiles{[]string{"java.security.auth.login.config=" + file}, map[string]string{"fips-mode": "false"}}
}

// kerberosLogins returns logins by Kerberos. The principal of each server has its host; options are
// those of kadmin's addprinc.
func kerberosLogins(t *testing.T, k *kdc, options string) quorumFiles {
	t.Helper()
	const principal = "zkquorum/127.0.0.1"
	keytab := k.keytab(t, principal, "", options)
	var text []byte
	for _, section := range []string{"QuorumServer", "QuorumLearner"} {
		b, err := os.ReadFile(k.jaas(t, section, principal, keytab))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b...)
	}
	file := k.file("quorum.jaas")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return quorumFiles{[]string{"java.security.auth.login.config=" + file, "java.security.krb5.conf=" + k.conf, "zookeeper.server.realm=" + kdcRealm},
		map[string]string{"quorum.auth.kerberos.servicePrincipal": "zkquorum/_HOST"}}
}

// required returns the lines of a zoo.cfg with all three steps.
func (q quorumFiles) required() map[string]string {
	lines := map[string]string{"initLimit": "20", "syncLimit": "10"}
	maps.Copy(lines, q.lines)
	for _, key := range saslSteps {
		lines[key] = "true"
	}
	return lines
}

// TestQuorumSASLMixed shows that servers of both kinds form one ensemble with logins by password,
// also inside TLS, and by Kerberos, with each kind as leader, and that a leader is replaced and joins again.
func TestQuorumSASLMixed(t *testing.T) {
	for name, files := range map[string]func() quorumFiles{
		"password": func() quorumFiles { return passwordLogins(t) },
		"kerberos": func() quorumFiles { return kerberosLogins(t, startKDC(t), "") },
		"password in TLS": func() quorumFiles {
			q := passwordLogins(t)
			maps.Copy(q.lines, target.SecureKeys("ssl.quorum.", certificates(t), map[string]string{"sslQuorum": "true"}))
			return q
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, led := files(), map[target.Kind]bool{}
			for _, kinds := range [][]target.Kind{
				{target.Apache, target.Bellwether, target.Bellwether},
				{target.Bellwether, target.Apache, target.Apache},
			} {
				e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds, Extra: q.required(), Properties: q.properties})
				leader, err := e.AwaitWhole(electionWait)
				if err != nil {
					t.Fatal(err)
				}
				led[kinds[leader]] = true
				writeAtEach(t, e, "/before")
				e.Servers[leader].Kill()
				next, err := e.AwaitLeader(time.Minute, leader)
				if err != nil {
					t.Fatal(err)
				}
				led[kinds[next]] = true
				if err := e.Begin(); err != nil {
					t.Fatal(err)
				}
				if _, err := e.AwaitWhole(electionWait); err != nil {
					t.Fatal(err)
				}
				writeAtEach(t, e, "/after")
				e.Kill()
			}
			if len(led) != 2 {
				t.Errorf("only %v led", slices.Collect(maps.Keys(led)))
			}
		})
	}
}

// writeAtEach writes a znode at each server.
func writeAtEach(t *testing.T, e *target.Ensemble, prefix string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), electionWait)
	defer cancel()
	for i, s := range e.Servers {
		c, err := zk.Connect(ctx, s.Addr, &zk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Create(ctx, fmt.Sprint(prefix, i), nil); err != nil {
			t.Errorf("write at server %d: %v", i+1, err)
		}
		c.Close(ctx)
	}
}

// TestQuorumSASLSteps shows that a running ensemble with servers of both kinds changes to logins
// in the three steps, and that no acknowledged write is lost meanwhile.
func TestQuorumSASLSteps(t *testing.T) {
	q := passwordLogins(t)
	lines := map[string]string{"initLimit": "20", "syncLimit": "10"}
	maps.Copy(lines, q.lines)
	changeInSteps(t, target.EnsembleOptions{Kinds: []target.Kind{target.Bellwether, target.Apache, target.Bellwether}, Extra: lines, Properties: q.properties},
		len(saslSteps), func(step int, file string) { appendLine(t, file, saslSteps[step]+"=true") })
}

// changeInSteps starts an ensemble. In each step it changes the zoo.cfg of each server in turn and restarts
// the server, while a client writes. No acknowledged write may be lost.
func changeInSteps(t *testing.T, opt target.EnsembleOptions, steps int, change func(step int, file string)) {
	t.Helper()
	dir := t.TempDir()
	e, err := target.NewEnsemble(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(target.Report(e.Servers...))
		}
		e.Kill()
	})
	if err := e.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AwaitWhole(electionWait); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	c, err := zk.Connect(ctx, e.Addrs(), &zk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	writing, endWriting := context.WithCancel(ctx)
	acknowledged := make(chan []string)
	go func() { acknowledged <- writeUntil(writing, c) }()
	for step := range steps {
		for i, s := range e.Servers {
			change(step, filepath.Join(dir, fmt.Sprint(i+1), "zoo.cfg"))
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := s.Begin(); err != nil {
				t.Fatal(err)
			}
			if _, err := e.AwaitWhole(electionWait); err != nil {
				t.Fatalf("step %d, server %d: %v", step+1, i+1, err)
			}
		}
	}
	endWriting()
	paths := <-acknowledged
	if len(paths) < 100 {
		t.Errorf("only %d writes", len(paths))
	}
	for i, s := range e.Servers {
		lost, err := missing(ctx, s, paths)
		switch {
		case err != nil:
			t.Errorf("server %d (%s): %v", i+1, s.Kind, err)
		case len(lost) > 0 && (forgotten(e, s) || logThreadDied(s)):
			t.Logf("server %d: ZooKeeper has lost %d of its own writes from %s to %s", i+1, len(lost), lost[0], lost[len(lost)-1])
		case len(lost) > 0:
			t.Errorf("server %d (%s) lacks %d of %d acknowledged writes, from %s to %s", i+1, s.Kind, len(lost), len(paths), lost[0], lost[len(lost)-1])
		}
	}
	t.Logf("%d writes", len(paths))
}

// missing returns those of the paths, which are children of the root, that a server does not have, once it is up to date.
func missing(ctx context.Context, s *target.Server, paths []string) (lost []string, err error) {
	c, err := zk.Connect(ctx, s.Addr, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close(ctx)
	if err := c.Sync(ctx, "/"); err != nil {
		return nil, err
	}
	names, _, err := c.Children(ctx, "/")
	if err != nil {
		return nil, err
	}
	have := make(map[string]bool, len(names))
	for _, name := range names {
		have["/"+name] = true
	}
	for _, path := range paths {
		if !have[path] {
			lost = append(lost, path)
		}
	}
	return lost, nil
}

// forgotten reports whether a ZooKeeper server was told to cut off its log, but not by a Bellwether leader. A ZooKeeper leader can tell
// that by mistake; see TestLeaderThatForgetsItsHistory.
func forgotten(e *target.Ensemble, s *target.Server) bool {
	sent := slices.ContainsFunc(e.Servers, func(o *target.Server) bool { return o.Kind == target.Bellwether && says(o, "by TRUNC(") })
	return s.Kind == target.Apache && !sent && says(s, "Truncating log to get in sync")
}

// says reports whether the log of a server contains a text.
func says(s *target.Server, text string) bool {
	log, err := os.ReadFile(s.LogPath())
	return err == nil && strings.Contains(string(log), text)
}

// logThreadDied reports whether the log thread of a ZooKeeper server has died because its leader went away. Its log then lacks
// what the thread had not written yet, and the server lacks it from its next start on (ZOOKEEPER-4409).
func logThreadDied(s *target.Server) bool {
	return s.Kind == target.Apache && says(s, "Severe unrecoverable error, from thread : SyncThread:")
}

// writeUntil creates znodes until ctx ends, and returns the acknowledged ones.
func writeUntil(ctx context.Context, c *zk.Client) (acknowledged []string) {
	for i := 0; ctx.Err() == nil; i++ {
		path := fmt.Sprint("/n", i)
		switch _, _, err := c.Create(ctx, path, nil); {
		case err == nil:
			acknowledged = append(acknowledged, path)
		case errors.Is(err, context.Canceled):
			return acknowledged
		}
	}
	return acknowledged
}

// appendLine adds a line to a file.
func appendLine(t *testing.T, path, line string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
