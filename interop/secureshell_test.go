package interop

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
	login "bellwether/zk/kerberos"
)

const (
	saslProvider = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	jaasProperty = "java.security.auth.login.config="
	krb5Property = "java.security.krb5.conf="
)

// startSecured starts a server with SASL, and a port with TLS whose clients must show a certificate. It
// returns the addresses without and with TLS. Properties are those of Java.
func startSecured(t *testing.T, kind target.Kind, certs string, properties ...string) (plain, secured string) {
	t.Helper()
	port := target.FreePort(t)
	s := target.StartFor(t, kind, target.Options{
		Properties: properties,
		Extra: target.SecureKeys("ssl.", certs, map[string]string{
			"secureClientPort": port, "secureClientPortAddress": "127.0.0.1", "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
			"authProvider.1": saslProvider, "4lw.commands.whitelist": "*",
			"ssl.enabledProtocols": target.OldAndNewTLS,
		}),
	})
	return s.Addr, "127.0.0.1:" + port
}

// cli is a client program with its first arguments.
type cli struct {
	args []string
	dir  string
	env  []string
}

// shellOf returns the shell of this repository.
func shellOf(t *testing.T, dir string, env ...string) cli {
	t.Helper()
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return cli{[]string{binary}, dir, env}
}

// zkCLIOf returns ZooKeeper's command line, with options for Java.
func zkCLIOf(t *testing.T, dir string, java ...string) cli {
	t.Helper()
	args := append([]string{target.Tool(t, "java", "default-jdk-headless")}, target.JVM...)
	args = append(append(args, java...), "-cp", target.ClassPath("slf4j-nop.jar"), zkCLI)
	return cli{args, dir, nil}
}

func (p cli) run(t *testing.T, args ...string) target.Result {
	t.Helper()
	return target.Script{Args: append(p.args[:len(p.args):len(p.args)], args...), Dir: p.dir, Env: p.env}.Run(t)
}

// wants runs the program, and fails the test unless it succeeds and its output contains part.
func (p cli) wants(t *testing.T, part string, args ...string) {
	t.Helper()
	if r := p.run(t, args...); r.Exit != 0 || !strings.Contains(r.Stdout, part) {
		t.Errorf("%s: want %q\n%s", strings.Join(args, " "), part, r.Output())
	}
}

func writeIn(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// javaStores converts the files of certificates to a PKCS#12 key store and a JKS trust store in the same
// folder, and writes a client configuration that names them by relative paths.
func javaStores(t *testing.T, dir string) (configuration string) {
	t.Helper()
	for _, args := range [][]string{
		{target.Tool(t, "openssl", "openssl"), "pkcs12", "-export", "-in", "client.pem", "-name", "client", "-passout", "pass:hidden1", "-out", "client.p12"},
		{target.Tool(t, "keytool", "default-jdk-headless"), "-importcert", "-noprompt", "-file", authority.CertFile, "-alias", "ca", "-storetype", "JKS", "-storepass", "hidden2", "-keystore", "trust.jks"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	writeIn(t, dir, "password", "hidden2\n")
	writeIn(t, dir, "client.properties", `# for zkCli and for the shell
zookeeper.client.secure=true
zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty
zookeeper.ssl.keyStore.location=client.p12
zookeeper.ssl.keyStore.password=hidden1
zookeeper.ssl.trustStore.location=trust.jks
zookeeper.ssl.trustStore.passwordPath=password
zookeeper.ssl.enabledProtocols=TLSv1.2,TLSv1.3
no.such.property=1
`)
	return "client.properties"
}

// TestSecureShellPasswords: the shell connects to both kinds of server with TLS and a client certificate, logs in with
// DIGEST-MD5, does both at once, and uses the client configuration and the JAAS file of zkCli unchanged.
func TestSecureShellPasswords(t *testing.T) { eachTarget(t, shellPasswords) }

func shellPasswords(t *testing.T, kind target.Kind) {
	dir := certificates(t)
	configuration := javaStores(t, dir)
	const module = "  org.apache.zookeeper.server.auth.DigestLoginModule required\n"
	server := writeIn(t, dir, "server.jaas", "Server {\n"+module+"  user_bob=\"bobsecret\";\n};\n")
	client := writeIn(t, dir, "client.jaas", "Client {\n"+module+"  username=\"bob\"\n  password=\"bobsecret\";\n};\n")
	plain, secured := startSecured(t, kind, dir, jaasProperty+server)
	shell := shellOf(t, dir, "BELLWETHER_SASL_PASSWORD=bobsecret")

	tls := []string{"--server", secured, "--tls-ca", authority.CertFile, "--tls-cert", "client.pem"}
	bob := []string{"--sasl-user", "bob"}
	shell.wants(t, "x509: CN=alice", append([]string{"whoami"}, tls...)...)
	shell.wants(t, "standalone", append([]string{"status"}, tls...)...)
	shell.wants(t, "sasl: bob", append([]string{"whoami", "--server", plain}, bob...)...)
	shell.wants(t, "sasl: bob", "whoami", "--server", plain, "--jaas", client)
	shell.wants(t, "", append(append([]string{"create"}, append(tls, bob...)...), "/bobs", "his", "sasl:bob:cdrwa")...)
	r := shell.run(t, append([]string{"get", "/bobs"}, tls...)...)
	if r.Exit != 1 || !strings.Contains(r.Stderr, "Insufficient permission") {
		t.Errorf("without a login: %s", r.Output())
	}
	r = shellOf(t, dir, "BELLWETHER_SASL_PASSWORD=guessed").run(t, append([]string{"get", "/bobs"}, append(tls, bob...)...)...)
	if r.Exit != 1 || !strings.Contains(r.Stderr, "authentication failed") || strings.Contains(r.Output(), "guessed") {
		t.Errorf("with a wrong password: %s", r.Output())
	}

	java := "-D" + jaasProperty + client
	zkCLIOf(t, dir, java).wants(t, "his", "-server", secured, "-client-configuration", configuration, "get", "/bobs")
	jvm := shellOf(t, dir, "CLIENT_JVMFLAGS="+java)
	jvm.wants(t, "his", "get", "--server", secured, "--client-configuration", configuration, "/bobs")
	jvm.wants(t, "CN=alice", "whoami", "--server", secured, "--client-configuration", configuration)
	jvm.wants(t, "standalone", "status", "--server", secured, "--client-configuration", configuration)
	shell.wants(t, "his", append([]string{"lock", "/lock"}, append(append(tls, bob...), "--", shell.args[0], "get", "/bobs", "--server", plain, "--sasl-user", "bob")...)...)
}

// TestSecureShellKerberos: the shell logs in to both kinds of server by Kerberos, with a keytab, with the tickets of
// kinit and with a JAAS file, without and with TLS. zkCli takes the same client configuration.
func TestSecureShellKerberos(t *testing.T) { eachTarget(t, shellKerberos) }

func shellKerberos(t *testing.T, kind target.Kind) {
	k := startKDC(t)
	dir := certificates(t)
	configuration := javaStores(t, dir)
	server := k.jaas(t, "Server", zookeeperPrincipal, k.keytab(t, zookeeperPrincipal, "", ""))
	plain, secured := startSecured(t, kind, dir, jaasProperty+server, krb5Property+k.conf)
	keytab := k.keytab(t, "bob", "", "")
	client := k.jaas(t, "Client", "bob", keytab)
	shell := shellOf(t, dir, "KRB5_CONFIG="+k.conf)

	id := "sasl: bob@" + kdcRealm
	byKey := []string{"--kerberos-principal", "bob", "--kerberos-keytab", keytab}
	shell.wants(t, id, append([]string{"whoami", "--server", plain}, byKey...)...)
	shell.wants(t, id, append([]string{"whoami", "--server", plain, "--kerberos-service", "zookeeper/localhost@" + kdcRealm}, byKey...)...)
	shell.wants(t, id, append([]string{"whoami", "--server", secured, "--tls-ca", authority.CertFile, "--tls-cert", "client.pem"}, byKey...)...)
	shell.wants(t, id, "whoami", "--server", plain, "--jaas", client)
	cached := shellOf(t, dir, "KRB5_CONFIG="+k.conf, "KRB5CCNAME=FILE:"+k.cache(t, "bob", keytab))
	cached.wants(t, id, "whoami", "--server", plain, "--kerberos-principal", "bob")

	java := []string{"-D" + jaasProperty + client, "-D" + krb5Property + k.conf}
	zkCLIOf(t, dir, java...).wants(t, "bob@"+kdcRealm, "-server", secured, "-client-configuration", configuration, "whoami")
	shellOf(t, dir, "CLIENT_JVMFLAGS="+strings.Join(java, " ")).wants(t, id, "whoami", "--server", secured, "--client-configuration", configuration)

	r := shell.run(t, append([]string{"whoami", "--server", plain, "--connect-timeout", "2s", "--kerberos-service", "zookeeper/nobody"}, byKey...)...)
	if r.Exit != 4 || !strings.Contains(r.Stderr, "the login cannot begin") || !strings.Contains(r.Stderr, "no ticket of bob@EXAMPLE.COM for zookeeper/nobody") {
		t.Errorf("no such service: %s", r.Output())
	}
}

// TestKerberosInsideTLS: package zk logs in by Kerberos on a connection with TLS, and again on the next
// connection, which resumes the session.
func TestKerberosInsideTLS(t *testing.T) { eachTarget(t, kerberosInsideTLS) }

func kerberosInsideTLS(t *testing.T, kind target.Kind) {
	k := startKDC(t)
	dir := certificates(t)
	server := k.jaas(t, "Server", zookeeperPrincipal, k.keytab(t, zookeeperPrincipal, "", ""))
	_, secured := startSecured(t, kind, dir, jaasProperty+server, krb5Property+k.conf)
	l, err := login.New(login.Options{Conf: k.conf, Principal: "bob", KeyTab: k.keytab(t, "bob", "", "")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var last atomic.Pointer[net.Conn]
	pem := filepath.Join(dir, "client.pem")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := zk.Connect(ctx, secured, &zk.Options{
		SASL: l.Begin, TLSFiles: &zk.TLSFiles{CA: filepath.Join(dir, authority.CertFile), Cert: pem},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			last.Store(&conn)
			return conn, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	own := zk.ACLs{{Perms: wire.PermAll, ID: wire.ID{Scheme: "sasl", ID: "bob@" + kdcRealm}}}
	if _, _, err := c.Create(ctx, "/bobs", []byte("x"), own); err != nil {
		t.Fatal(err)
	}
	before, first := c.Session().ID, last.Load()
	(*first).Close()
	if data, _, err := c.Get(ctx, "/bobs"); err != nil || string(data) != "x" {
		t.Errorf("after a reconnect: %q, %v", data, err)
	}
	if c.Session().ID != before || last.Load() == first {
		t.Errorf("session %v, before %v", c.Session().ID, before)
	}
}
