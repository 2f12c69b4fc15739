package interop

import (
	"bytes"
	"debug/elf"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/sasl/kerberos"
	"bellwether/interop/target"
	"bellwether/wire"
)

// saslLines are the lines of a zoo.cfg that make clients log in.
var saslLines = map[string]string{
	"authProvider.1":               saslProvider,
	"sessionRequireClientSASLAuth": "true",
}

// loginWay is one way to log in, with the settings of a server, of Java and of kazoo.
type loginWay struct {
	id     string   // the id that the client has after the login
	server []string // Java properties of the server
	java   []string // flags of a Java client that logs in
	wrong  []string // flags of a Java client whose login is refused
	kazoo  []string // arguments of the kazoo script, after the id
	env    []string // environment of the kazoo script
}

// jaasFile writes a JAAS file with one section and returns its name.
func jaasFile(t *testing.T, section, module string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jaas.conf")
	if err := os.WriteFile(path, fmt.Appendf(nil, "%s {\n  %s;\n};\n", section, module), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const digestModule = "org.apache.zookeeper.server.auth.DigestLoginModule required\n  "

// digestWay logs in as bob with a password.
func digestWay(t *testing.T) loginWay {
	client := func(password string) string {
		return "-D" + jaasProperty + jaasFile(t, "Client", digestModule+`username="bob" password="`+password+`"`)
	}
	return loginWay{id: "bob", server: []string{jaasProperty + jaasFile(t, "Server", digestModule+`user_bob="bobsecret"`)},
		java: []string{client("bobsecret")}, wrong: []string{client("guessed")}, kazoo: []string{"DIGEST-MD5", "bob", "bobsecret"}}
}

// kerberosWay logs in as bob with a ticket of a new KDC.
func kerberosWay(t *testing.T) loginWay {
	k := startKDC(t)
	server := k.jaas(t, "Server", zookeeperPrincipal, k.keytab(t, zookeeperPrincipal, "", ""))
	k.keytab(t, "other/localhost", "", "")
	bob := k.keytab(t, "bob", "", "")
	flags := []string{"-D" + jaasProperty + k.jaas(t, "Client", "bob", bob), "-D" + krb5Property + k.conf}
	return loginWay{id: "bob@" + kdcRealm, server: []string{jaasProperty + server, krb5Property + k.conf},
		java:  append(slices.Clone(flags), "-Dzookeeper.server.principal="+zookeeperPrincipal),
		wrong: append(slices.Clone(flags), "-Dzookeeper.server.principal=other/localhost"),
		kazoo: []string{"GSSAPI"}, env: []string{"KRB5_CONFIG=" + k.conf, "KRB5CCNAME=FILE:" + k.cache(t, "bob", bob)}}
}

// TestSASLClients shows that Java's client, Curator, zkCli and kazoo log in by DIGEST-MD5 and by
// Kerberos to a server that requires it, and get the same answers from both kinds of servers. The same
// holds for a login that is refused, and for a client that does not log in.
func TestSASLClients(t *testing.T) {
	t.Parallel()
	javac, java := target.Tool(t, "javac", "default-jdk-headless"), target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-recipes.jar", "libcurator-recipes-java")
	target.File(t, "/usr/lib/python3/dist-packages/puresasl/client.py", "python3-pure-sasl")
	target.Script{Args: []string{debianPython, "-c", "import kerberos"}}.Pass(t) // python3-kerberos
	classes := t.TempDir()
	target.Script{Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", curatorPath, "-d", classes, "sasl/Login.java"}}.Pass(t)
	jvm := func(flags []string, args ...string) []string {
		return slices.Concat([]string{java}, target.JVM, flags, args)
	}
	for name, way := range map[string]loginWay{"DIGEST-MD5": digestWay(t), "GSSAPI": kerberosWay(t)} {
		t.Run(name, func(t *testing.T) {
			answers := map[target.Kind]string{}
			for _, kind := range target.Kinds() {
				s := target.StartFor(t, kind, target.Options{Extra: saslLines, Properties: way.server})
				addr := strings.Replace(s.Addr, "127.0.0.1", "localhost", 1) // the name in the principal
				var all strings.Builder
				run := func(what string, env []string, args ...string) {
					r := target.Script{Args: args, Env: env}.Run(t)
					fmt.Fprintf(&all, "%s: exit %d\n%s", what, r.Exit, strings.ReplaceAll(anyEvent.ReplaceAllString(r.Stdout, ""), addr, "SERVER"))
					if r.Exit != 0 {
						t.Log(r.Output())
					}
				}
				login := []string{"-cp", classes + ":" + curatorPath, "Login", addr}
				run("Java", nil, jvm(way.java, append(slices.Clone(login), way.id)...)...)
				run("kazoo", way.env, slices.Concat([]string{debianPython, "-B", "sasl/kazoo_login.py", addr, way.id}, way.kazoo)...)
				run("zkCli", nil, jvm(way.java, "-cp", zkCLIPath, zkCLI, "-server", addr, "create", "/cli", "x", "sasl:"+way.id+":cdrwa")...)
				run("zkCli", nil, jvm(way.java, "-cp", zkCLIPath, zkCLI, "-server", addr, "getAcl", "/cli")...)
				run("refused", nil, jvm(way.wrong, login...)...)
				run("without a login", nil, jvm([]string{"-Dzookeeper.sasl.client=false"}, login...)...)
				answers[kind] = all.String()
				s.Kill()
			}
			wantSASL(t, way.id, answers)
		})
	}
}

// wantSASL compares the answers of the two kinds of servers, and shows that logins worked.
func wantSASL(t *testing.T, id string, answers map[target.Kind]string) {
	t.Helper()
	for kind, got := range answers {
		if first := answers[target.Kinds()[0]]; got != first {
			t.Errorf("%s answers:\n%s\n%s answers:\n%s", target.Kinds()[0], first, kind, got)
		}
		for _, want := range []string{"Java: exit 0\nstate: SaslAuthenticated\ncreate: /java\ngetData: " + id, "getData of another: NOAUTH", "invalid ACL: INVALIDACL",
			"sasl:" + id + "]\n", "Curator reads: " + id, "Curator reads another: NOAUTH", "login: connected\ncreate: /kazoo\nget: b'x'\n", "get of another: NoAuthError",
			"'sasl,'" + id, "state: AuthFailed\n", "exists: SESSIONCLOSEDREQUIRESASLAUTH"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in the answers:\n%s", kind, want, got)
			}
		}
	}
}

// sendTokens opens a session, sends tokens, and returns the answers until the connection ends or
// each token is answered.
func sendTokens(t *testing.T, addr string, tokens ...[]byte) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(electionWait))
	if _, err := c.Write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 30_000, Password: make([]byte, 16), HasReadOnly: true})); err != nil {
		t.Fatal(err)
	}
	if _, err := wire.ReadFrame(c, nil, 1<<20); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for i, token := range tokens {
		c.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: int32(i), Op: wire.OpSASL}, &wire.SASLRequest{Token: token}))
		b, err := wire.ReadFrame(c, nil, 1<<20)
		if err != nil {
			return all.String() + "the end"
		}
		in := wire.Decoder(b)
		var h wire.ReplyHeader
		h.Code(&in)
		r := wire.SASLResponse{}
		r.Code(&in)
		fmt.Fprintf(&all, "xid %d zxid %d %v, a token %v, %v; ", h.Xid, h.Zxid, h.Err, r.Token != nil, in.Err())
	}
	return all.String()
}

// TestSASLBadTickets shows that both kinds of servers answer tokens of Kerberos that prove nothing in
// the same way: tokens of another mechanism, truncated, too long, for another service, and a token that
// another connection has used before.
func TestSASLBadTickets(t *testing.T) {
	t.Parallel()
	k := startKDC(t)
	server := k.jaas(t, "Server", zookeeperPrincipal, k.keytab(t, zookeeperPrincipal, "", ""))
	k.keytab(t, "other/localhost", "", "")
	l := k.login(t, kerberos.Config{Principal: "bob", KeyTab: k.keytab(t, "bob", "", "")})
	first := func(service string) []byte {
		token, _, err := beginLogin(t, l, service).Step(nil)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	answers := map[string]string{}
	for _, kind := range target.Kinds() {
		s := target.StartFor(t, kind, target.Options{Extra: map[string]string{"authProvider.1": saslLines["authProvider.1"]},
			Properties: []string{jaasProperty + server, krb5Property + k.conf}})
		good := first(zookeeperPrincipal)
		if got := sendTokens(t, s.Addr, good); !strings.Contains(got, "a token true") {
			t.Errorf("%s: a good token: %s", kind, got)
		}
		for name, tokens := range map[string][][]byte{
			"replayed":           {good, {}},
			"truncated":          {first(zookeeperPrincipal)[:200], {}},
			"empty":              {{}, {}},
			"another service":    {first("other/localhost"), {}},
			"of DIGEST-MD5":      {[]byte(`charset=utf-8,username="bob",realm="zk-sasl-md5",nonce="x",response=00`), {}},
			"too long":           {bytes.Repeat([]byte("x"), 70<<10), {}},
			"wrong second token": {first(zookeeperPrincipal), []byte("x"), {}},
		} {
			got := sendTokens(t, s.Addr, tokens...)
			if answers[name] == "" {
				answers[name] = got
			}
			if got != answers[name] || !strings.HasSuffix(got, "the end") {
				t.Errorf("%s: %s answers %s, %s answers %s", name, target.Kinds()[0], answers[name], kind, got)
			}
		}
	}
}

// TestCClientHasNoSASL shows that Debian's C client is built without SASL, so that it cannot log in to
// any server. If this fails, C programs can log in, and TestSASLClients should try one.
func TestCClientHasNoSASL(t *testing.T) {
	for _, path := range glob(t, "/usr/lib/*/libzookeeper_mt.so.2") {
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		symbols, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		has := func(name string) bool {
			return slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })
		}
		if !has("zookeeper_init") || has("zookeeper_init_sasl") {
			t.Errorf("%s: zookeeper_init %v, zookeeper_init_sasl %v", path, has("zookeeper_init"), has("zookeeper_init_sasl"))
		}
	}
}
