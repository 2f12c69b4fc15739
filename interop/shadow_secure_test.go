package interop

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/secure"
	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// refusedWait is how long a client that must not be connected tries.
const refusedWait = 3 * time.Second

// shadowSuper is the super user of the servers.
var shadowSuper = &shadow.Credential{Scheme: "digest", Auth: []byte("super:" + target.Password)}

// shadowStore opens the store of a family in the folder of certificates; file is empty for a store without a certificate.
func shadowStore(t *testing.T, family secure.Family, dir, file string) *secure.Store {
	t.Helper()
	values := map[string]secure.Value{string(family) + "trustStore.location": {Text: filepath.Join(dir, authority.CertFile)}}
	if file != "" {
		values[string(family)+"keyStore.location"] = secure.Value{Text: filepath.Join(dir, file)}
	}
	if family == secure.Clients {
		values["ssl.clientAuth"] = secure.Value{Text: "want"}
	}
	settings, err := secure.Parse(family, values)
	if err != nil {
		t.Fatal(err)
	}
	store, err := secure.Open(settings)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// shadowTLSKeys are the lines of a zoo.cfg whose client port takes connections with and without TLS.
func shadowTLSKeys(dir string) map[string]string {
	return target.SecureKeys("ssl.", dir, map[string]string{"client.portUnification": "true", "ssl.clientAuth": "want",
		"authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider", // which a secureClientPort would bring
		"serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory"})
}

// TestShadowOverTLS has clients with and without a certificate. The servers and the observer see the same identity, so what an ACL
// of the scheme x509 protects is compared, and a wrong reply is found.
func TestShadowOverTLS(t *testing.T) {
	t.Parallel()
	dir := certificates(t, "mallory")
	s := shadowEnsembleWith(t, shadowTLSKeys(dir))
	liar := &lying{to: s.observer}
	with := []*secure.Store{shadowStore(t, secure.Programs, dir, "client.pem"), shadowStore(t, secure.Programs, dir, "")}
	opt := relay.Options{Observer: s.observer, ListenTLS: shadowStore(t, secure.Clients, dir, "server.pem"), OldTLS: with, ObserverTLS: with}
	run := s.runWith(t, opt, s.e.Servers[:3]...)
	lies := s.runWith(t, relay.Options{Observer: liar.listen(t), ListenTLS: opt.ListenTLS, OldTLS: with}, s.e.Servers[:3]...) // the liar cannot lie in TLS
	ctx, cancel := context.WithTimeout(t.Context(), shadowTimeout)
	defer cancel()
	client := func(addr, file string) *zk.Client {
		files := &zk.TLSFiles{CA: filepath.Join(dir, authority.CertFile)}
		if file != "" {
			files.Cert, files.Key = filepath.Join(dir, file), filepath.Join(dir, file)
		}
		c, err := zk.Open(addr, &zk.Options{TLSFiles: files})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(context.Background()) })
		return c
	}
	alice, nobody := client(run.addr, "client.pem"), client(run.addr, "")
	own := zk.ACLs{{Perms: wire.PermAll, ID: wire.ID{Scheme: "x509", ID: "CN=alice"}}}
	if _, _, err := alice.Create(ctx, "/alices", []byte("secret"), own); err != nil {
		t.Fatal(err)
	}
	if _, _, err := alice.Get(ctx, "/alices"); err != nil {
		t.Error(err)
	}
	if _, _, _, err := alice.GetW(ctx, "/alices"); err != nil {
		t.Error(err)
	}
	run.await(t, "comparison of the reads", func(r *shadow.Report) bool {
		return r.Operations["getData"] != nil && r.Operations["getData"].Replies >= 2
	})
	if _, err := alice.Set(ctx, "/alices", []byte("secret2"), -1); err != nil {
		t.Error(err)
	}
	for _, c := range []*zk.Client{alice, nobody} {
		if err := c.Sync(ctx, "/"); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := alice.Exists(ctx, "/alices"); err != nil { // after the event
		t.Error(err)
	}
	if _, _, err := nobody.Get(ctx, "/alices"); !errors.Is(err, wire.ErrNoAuth) {
		t.Errorf("a client without a certificate: %v", err)
	}
	short, stop := context.WithTimeout(ctx, refusedWait)
	defer stop()
	if _, _, err := client(run.addr, "mallory.pem").Get(short, "/"); err == nil {
		t.Error("a client whose certificate shadow does not have is connected")
	}
	java := slices.Concat([]string{"java", "-cp", target.ClassPath("slf4j-nop.jar"), "-Dzookeeper.client.secure=true", "-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
		"-Dzookeeper.ssl.keyStore.location=" + filepath.Join(dir, "client.pem"), "-Dzookeeper.ssl.trustStore.location=" + filepath.Join(dir, authority.CertFile)},
		[]string{zkCLI, "-server", run.addr, "get", "/alices"})
	if out := (target.Script{Args: java}).Pass(t).Output(); !strings.Contains(out, "secret2") {
		t.Error(out)
	}
	report := run.end()
	noDifference(t, report, "create2 getData setData notification")
	for _, op := range []string{"create2", "getData", "setData"} {
		if tally := report.Operations[op]; tally.Equal != tally.Replies {
			t.Errorf("%s: %+v", op, tally)
		}
	}
	liar.how.Store(int64(statOffsets["data"]))
	open := client(lies.addr, "client.pem")
	if _, _, err := open.Create(ctx, "/open", []byte("truth")); err != nil {
		t.Fatal(err)
	}
	open.Get(ctx, "/open")
	if n := lies.end().Differing(); n == 0 {
		t.Error("a wrong reply was not found")
	}
}

// TestShadowOfLogins has clients that log in by DIGEST-MD5 and by Kerberos through shadow. What only they may read is compared as
// the super user, and a wrong reply is found.
func TestShadowOfLogins(t *testing.T) {
	t.Parallel()
	classes := t.TempDir()
	target.Script{Args: []string{"javac", "-proc:none", "-cp", curatorPath, "-d", classes, "sasl/Login.java"}}.Pass(t)
	for name, way := range map[string]loginWay{"DIGEST-MD5": digestWay(t), "GSSAPI": kerberosWay(t)} {
		t.Run(name, func(t *testing.T) {
			s := shadowEnsembleWith(t, map[string]string{"authProvider.1": saslProvider}, way.server...)
			liar := &lying{to: s.observer}
			right := s.runWith(t, relay.Options{Observer: s.observer, Super: shadowSuper}, s.e.Servers[0])
			without := s.runWith(t, relay.Options{Observer: s.observer}, s.e.Servers[0])
			lies := s.runWith(t, relay.Options{Observer: liar.listen(t), Super: shadowSuper}, s.e.Servers[0])
			kazoo := func(addr string) {
				args := slices.Concat([]string{debianPython, "-B", "sasl/kazoo_login.py", strings.Replace(addr, "127.0.0.1", "localhost", 1), way.id}, way.kazoo)
				out := target.Script{Args: args, Env: way.env}.Run(t).Output()
				if !strings.Contains(out, "get: b'x'") && !strings.Contains(out, "create: NodeExistsError") || !strings.Contains(out, "get of another: NoAuthError") {
					t.Errorf("kazoo: %s", out)
				}
			}
			java := slices.Concat([]string{"java"}, target.JVM, way.java, []string{"-cp", classes + ":" + curatorPath, "Login", strings.Replace(right.addr, "127.0.0.1", "localhost", 1), way.id})
			if out := (target.Script{Args: java}).Run(t).Output(); !strings.Contains(out, "getData: "+way.id) || !strings.Contains(out, "Curator reads: "+way.id) {
				t.Errorf("Java: %s", out)
			}
			kazoo(right.addr)
			report := right.end()
			noDifference(t, report, "create getACL getData")
			if tally := report.Operations["getACL"]; tally.Equal != tally.Replies {
				t.Errorf("getACL: %+v", tally)
			}
			if tally := report.Operations["getData"]; tally.NotCompared[shadow.UnsureRights] == 0 {
				t.Errorf("a refused read is compared: %+v", tally)
			}
			kazoo(without.addr)
			if tally := without.end().Operations["getACL"]; tally.Equal != 0 || tally.NotCompared[shadow.UnsureRights] == 0 {
				t.Errorf("without the super user: %+v", tally)
			}
			liar.how.Store(int64(statOffsets["czxid"]))
			kazoo(lies.addr)
			if tally := lies.end().Operations["getData"]; tally.Differing == 0 {
				t.Errorf("a wrong reply was not found: %+v", tally)
			}
		})
	}
}
