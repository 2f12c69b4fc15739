package interop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/authority"
	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// certificates makes an authority and certificates for servers on loopback, and returns their folder;
// see target.Certificates.
func certificates(t *testing.T, others ...string) string {
	t.Helper()
	return target.Certificates(t, []string{"127.0.0.1", "localhost"}, others...)
}

// TestTLSClients shows that zkCli with Java's client, Curator, kazoo and package zk work over TLS with a client
// certificate, at both kinds of server, and that the certificate opens what an ACL of the
// scheme x509 protects.
func TestTLSClients(t *testing.T) {
	dir := certificates(t)
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		port := target.FreePort(t)
		s := target.StartFor(t, kind, target.Options{Extra: target.SecureKeys("ssl.", dir, map[string]string{
			"secureClientPort": port, "secureClientPortAddress": "127.0.0.1", "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
			"ssl.enabledProtocols": target.OldAndNewTLS,
		})})
		at := "127.0.0.1:" + port
		ctx, cancel := context.WithTimeout(t.Context(), electionWait)
		defer cancel()
		pem := filepath.Join(dir, "client.pem")
		c, err := zk.Connect(ctx, at, &zk.Options{TLSFiles: &zk.TLSFiles{CA: filepath.Join(dir, authority.CertFile), Cert: pem, Key: pem}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		own := zk.ACLs{{Perms: wire.PermAll, ID: wire.ID{Scheme: "x509", ID: "CN=alice"}}}
		if _, _, err := c.Create(ctx, "/alices", []byte("secret"), own); err != nil {
			t.Fatal(err)
		}
		plain, err := zk.Connect(ctx, s.Addr, &zk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close(context.Background())
		if _, _, err := plain.Get(ctx, "/alices"); err == nil {
			t.Error("a client without a certificate reads alice's znode")
		}
		flags := target.JavaTLS(dir)
		t.Run("java", func(t *testing.T) {
			out := target.Script{Args: slices.Concat([]string{"java", "-cp", target.ClassPath("slf4j-nop.jar")}, flags,
				[]string{zkCLI, "-server", at, "get", "/alices"})}.Pass(t).Output()
			if !strings.Contains(out, "secret") {
				t.Error(out)
			}
		})
		t.Run("curator", func(t *testing.T) {
			classes := t.TempDir()
			target.Script{Args: []string{"javac", "-proc:none", "-cp", curatorPath, "-d", classes, "java/Check.java", "java/Locks.java"}}.Pass(t)
			target.Script{Args: slices.Concat([]string{"java"}, target.JVM, flags, []string{"-cp", classes + ":" + curatorPath + ":" + target.ClassPath("slf4j-nop.jar"), "Locks", at, at})}.Pass(t)
		})
		t.Run("kazoo", func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "tls.py")
			text := fmt.Sprintf("from kazoo.client import KazooClient\nc = KazooClient(hosts=%q, use_ssl=True, ca=%q, certfile=%q, keyfile=%q, verify_certs=True)\nc.start(timeout=30)\nprint(c.get('/alices')[0].decode())\nc.stop()\nc.close()\n",
				at, filepath.Join(dir, authority.CertFile), pem, pem)
			if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if out := (target.Script{Args: []string{debianPython, "-B", script}}).Pass(t).Output(); !strings.Contains(out, "secret") {
				t.Error(out)
			}
		})
	})
}

// TestTLSBetweenServers shows that servers of both kinds form one ensemble over TLS, with each
// kind as leader.
func TestTLSBetweenServers(t *testing.T) {
	dir := certificates(t)
	for _, kinds := range [][]target.Kind{
		{target.Apache, target.Bellwether, target.Bellwether},
		{target.Bellwether, target.Bellwether, target.Apache},
		{target.Bellwether, target.Apache, target.Apache},
	} {
		e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds, Extra: target.SecureKeys("ssl.quorum.", dir, map[string]string{
			"sslQuorum": "true", "tickTime": "500", "initLimit": "20", "syncLimit": "10"})})
		leader, err := e.AwaitWhole(electionWait)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), electionWait)
		defer cancel()
		for i, s := range e.Servers {
			c, err := zk.Connect(ctx, s.Addr, &zk.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Create(ctx, fmt.Sprint("/n", i), nil); err != nil {
				t.Errorf("%v, leader %d, write at server %d: %v", kinds, leader+1, i+1, err)
			}
			c.Close(ctx)
		}
		t.Logf("%v: server %d led", kinds, leader+1)
		e.Kill()
	}
}

// TestTLSSteps shows that a running ensemble with servers of both kinds changes to TLS between servers in the
// three steps, and that no acknowledged write is lost meanwhile.
func TestTLSSteps(t *testing.T) {
	dir := certificates(t)
	lines := map[string]string{"initLimit": "20", "syncLimit": "10", "portUnification": "false", "sslQuorum": "false"}
	steps := [][2]string{
		{"portUnification=false", "portUnification=true"}, // accept connections with and without TLS
		{"sslQuorum=false", "sslQuorum=true"},             // dial with TLS
		{"portUnification=true", "portUnification=false"}, // refuse connections without TLS
	}
	for _, kinds := range [][]target.Kind{
		{target.Bellwether, target.Apache, target.Bellwether},
		{target.Apache, target.Bellwether, target.Apache},
	} {
		changeInSteps(t, target.EnsembleOptions{Kinds: kinds, Extra: target.SecureKeys("ssl.quorum.", dir, lines)}, len(steps), func(step int, file string) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), steps[step][0], steps[step][1], 1)
			if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}
