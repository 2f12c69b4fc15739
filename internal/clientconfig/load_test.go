package clientconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/zk"
)

// given returns the functions for Load: words with -- are flags, others are variables.
func given(words ...string) (func(string) (string, bool), func(string) string) {
	flags, env := map[string]string{}, map[string]string{}
	for _, w := range words {
		name, v, _ := strings.Cut(w, "=")
		if flag, ok := strings.CutPrefix(name, "--"); ok {
			flags[flag] = v
		} else {
			env[name] = v
		}
	}
	return func(f string) (string, bool) { v, ok := flags[f]; return v, ok }, func(name string) string { return env[name] }
}

// folder makes a folder with certificates and files, and makes it the working directory.
func folder(t *testing.T) {
	t.Helper()
	store, err := os.ReadFile("../secure/testdata/stores/rsa.p12")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if _, err := authority.Init(authority.Plan{Dir: dir, Now: time.Now(), Subjects: []authority.Subject{
		{File: "server.pem", Name: "server", Hosts: []string{"127.0.0.1"}}, {File: "client.pem", Name: "alice"},
	}}); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile("client.pem")
	if err != nil {
		t.Fatal(err)
	}
	key, cert := "", ""
	for part := range strings.SplitSeq(string(pem), "-----END ") {
		if begin := strings.Index(part, "-----BEGIN "); begin >= 0 {
			kind, _, _ := strings.Cut(part[begin+len("-----BEGIN "):], "-----")
			block := part[begin:] + "-----END " + kind + "-----\n"
			if strings.Contains(kind, "KEY") {
				key += block
			} else {
				cert += block
			}
		}
	}
	for name, text := range map[string]string{
		"cert": cert, "key": key, "store.p12": string(store), "password": "hidden\n", "empty": "\n",
		"jaas": "Client { org.apache.zookeeper.server.auth.DigestLoginModule required username=\"bob\" password=\"hidden\"; };\n" +
			"Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob=\"hidden\"; };\n",
		"jaas.server": "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob=\"hidden\"; };\n",
		"secure":      "zookeeper.client.secure=true\nzookeeper.ssl.trustStore.location=ca.pem\nzookeeper.ssl.keyStore.location=client.pem\nno.such.property=1\n",
		"off":         "zookeeper.ssl.trustStore.location=ca.pem\n",
		"yes":         "zookeeper.client.secure=yes\n",
		"server":      "client.secure=true\nssl.trustStore.location=ca.pem\n",
		"login":       "java.security.auth.login.config=jaas\n",
		"section":     "zookeeper.sasl.clientconfig=Other\njava.security.auth.login.config=jaas\n",
		"nologin":     "zookeeper.sasl.client=false\njava.security.auth.login.config=jaas\n",
		"supplier":    "zookeeper.client.secure=true\nzookeeper.ssl.context.supplier.class=my.Class\n",
		"bad":         "a=\\u00\n",
		"krb5.conf":   "[libdefaults]\n default_realm = EXAMPLE.COM\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("open", []byte("hidden\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod("open", 0o644); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

// TestLoad shows which settings mean TLS and which a login, what is refused, and what is reported because it
// has no effect.
func TestLoad(t *testing.T) {
	folder(t)
	for _, x := range []struct {
		given string
		want  string // parts of the connection, or parts of the error
	}{
		{"", ""},
		{"--tls=true", "tls"},
		{"BELLWETHER_TLS=true", "tls"},
		{"--tls-ca=ca.pem", "tls"},
		{"BELLWETHER_TLS_CA=ca.pem", "tls"},
		{"BELLWETHER_TLS_CA=ca.pem --tls=false", ""},
		{"--tls-cert=client.pem --tls-ca=ca.pem", "tls"},
		{"--tls-cert=cert --tls-key=key --tls-ca=ca.pem", "tls"},
		{"--tls-cert=client.pem", "tls notice: --tls-ca is not set: every authority that this system trusts is trusted"},
		{"--client-configuration=secure", "tls"},
		{"--client-configuration=secure --tls=false", ""},
		{"BELLWETHER_CLIENT_CONFIGURATION=secure", "tls"},
		{"CLIENT_JVMFLAGS=-Dzookeeper.client.secure=true", "tls"},
		{"--client-configuration=off", "notice: off line 1: zookeeper.ssl.trustStore.location has no effect, and the connection is not encrypted"},
		{"--client-configuration=yes", "notice: yes line 1: zookeeper.client.secure=yes means false"},
		{"--client-configuration=server", "notice: server line 1: client.secure has no effect: the property is zookeeper.client.secure"},
		{"--client-configuration=supplier", "error: zookeeper.ssl.context.supplier.class=my.Class (supplier line 2)"},
		{"--client-configuration=bad", "error: bad: line 1"},
		{"--client-configuration=none", "error: --client-configuration: stat none"},
		{"--tls=maybe", "error: --tls=maybe: want true or false"},
		{"--tls-ca=", "error: --tls-ca is empty"},
		{"--tls-ca=none", "error: --tls-ca: none: open none: no such file or directory: correct --tls-ca, or let this user read the file"},
		{"BELLWETHER_TLS_CERT=none", "error: $BELLWETHER_TLS_CERT: none"},
		{"--tls-key=key", "error: --tls-key has no effect without the certificate of the key: give --tls-cert"},
		{"--tls-cert=cert --tls-key=none", "error: --tls-cert: none: open none"},
		{"--tls-cert=cert", "error: --tls-cert: cert: there is no private key in the file: use a file with the private key and its certificate, or name the key with --tls-key"},
		{"--sasl-user=bob BELLWETHER_SASL_PASSWORD=hidden", "login"},
		{"BELLWETHER_SASL_USER=bob BELLWETHER_SASL_PASSWORD_FILE=password", "login"},
		{"--tls-cert=store.p12", "error: --tls-cert: store.p12: the password is wrong, or the file is damaged: set --tls-password-file"},
		{"--tls-cert=store.p12 --tls-password-file=password", "error: --tls-cert: store.p12: the password is wrong, or the file is damaged: correct --tls-password-file"},
		{"BELLWETHER_TLS_CERT=store.p12 BELLWETHER_TLS_PASSWORD=x", "error: $BELLWETHER_TLS_CERT: store.p12: the password is wrong, or the file is damaged: correct $BELLWETHER_TLS_PASSWORD"},
		{"--sasl-user=bob --sasl-password-file=password --tls=true", "tls login"},
		{"--sasl-user=bob", "error: --sasl-user needs a password: name a file with --sasl-password-file, or set $BELLWETHER_SASL_PASSWORD"},
		{"--sasl-user=bob --sasl-password-file=open", "login notice: open holds a password, and every user of this machine can read it: chmod 600 open"},
		{"--sasl-user=bob --sasl-password-file=empty", "error: --sasl-password-file: empty is empty"},
		{"--sasl-password-file=password", "error: --sasl-password-file has no effect without --sasl-user"},
		{"--jaas=jaas", "login"},
		{"--jaas=jaas --jaas-section=Server", "error: jaas: the section Server names no user to log in as"},
		{"--jaas=jaas.server", "error: jaas.server has no section Client"},
		{"--jaas-section=Client", "error: --jaas-section names a section, but no JAAS file is named: give --jaas"},
		{"JVMFLAGS=-Djava.security.auth.login.config=jaas", "login"},
		{"JVMFLAGS=-Djava.security.auth.login.config=jaas.server", "notice: -Djava.security.auth.login.config in $JVMFLAGS: the client does not log in: jaas.server has no section Client"},
		{"--client-configuration=login", "login"},
		{"--client-configuration=section", "error: jaas has no section Other"},
		{"--client-configuration=nologin", "notice: nologin line 2: java.security.auth.login.config has no effect, and the client does not log in"},
		{"--client-configuration=nologin --jaas=jaas", "login"},
		{"--jaas=jaas --sasl-user=bob", "error: --sasl-user and --jaas are two ways to log in"},
		{"--jaas=jaas BELLWETHER_SASL_USER=eve", "login"},
		{"--kerberos-principal=bob KRB5CCNAME=KEYRING:persistent:0", "error: the ticket cache KEYRING:persistent:0 is of type KEYRING, and only files are read"},
		{"--kerberos-keytab=none", "error: --kerberos-keytab needs the name to log in as: give --kerberos-principal"},
		{"BELLWETHER_KERBEROS_KEYTAB=none", "error: $BELLWETHER_KERBEROS_KEYTAB needs the name to log in as: give --kerberos-principal"},
		{"--kerberos-service=zk/_HOST", "error: --kerberos-service has no effect without a login: give --kerberos-principal, --kerberos-cache or --jaas"},
		{"BELLWETHER_KERBEROS_SERVICE=zk/_HOST", ""},
		{"--kerberos-service=zk/_HOST --jaas=jaas", "login"},
		{"--kerberos-cache=none KRB5_CONFIG=krb5.conf", "error: the credentials of Kerberos: stat none: no such file or directory: run kinit, or name a ticket cache with --kerberos-cache, or keys with --kerberos-keytab"},
		{"--kerberos-keytab=none --kerberos-principal=bob KRB5_CONFIG=nowhere", "error: the configuration of Kerberos, nowhere"},
	} {
		c, err := Load(given(strings.Fields(x.given)...))
		if got := describe(c, err); !strings.HasPrefix(got, x.want) || got != x.want && !strings.Contains(x.want, ": ") {
			t.Errorf("%s\n got %s\nwant %s", x.given, got, x.want)
		} else if strings.Contains(got, "hidden") {
			t.Errorf("%s shows a password: %s", x.given, got)
		}
	}
}

func describe(c *Config, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var o zk.Options
	c.Apply(&o)
	var parts []string
	if o.TLSConfig != nil {
		parts = append(parts, "tls")
	}
	if o.SASL != nil {
		parts = append(parts, "login")
	}
	for _, n := range c.Notices {
		parts = append(parts, "notice: "+n)
	}
	return strings.Join(parts, " ")
}

// TestTLSNames shows which name of a server is verified, and that the error for a wrong one names the flag
// that helps.
func TestTLSNames(t *testing.T) {
	folder(t)
	for _, x := range []struct{ given, want string }{
		{"--tls-ca=ca.pem", "zk1"},
		{"--tls-ca=ca.pem --tls-server-name=other", "other"},
	} {
		c, err := Load(given(strings.Fields(x.given)...))
		if err != nil {
			t.Fatal(err)
		}
		config, err := c.configFor(t.Context(), zk.Server{Host: "zk1", Address: "127.0.0.1:2281"})
		if err != nil || config.ServerName != x.want || config.ClientSessionCache == nil {
			t.Errorf("%s: name %q, %v", x.given, config.ServerName, err)
		}
	}
}

// TestChangedFiles: changed files are read for the next connection, which resumes no TLS session. Files
// that cannot be used are reported once, and those that were read before stay in use.
func TestChangedFiles(t *testing.T) {
	folder(t)
	c, err := Load(given("--tls-ca=ca.pem", "--tls-cert=client.pem"))
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	c.Warn = func(text string) { warned = append(warned, text) }
	sessions := func() any {
		config, err := c.configFor(t.Context(), zk.Server{Host: "zk1", Address: "127.0.0.1:2281"})
		if err != nil {
			t.Fatal(err)
		}
		return config.ClientSessionCache
	}
	first := sessions()
	if sessions() != first {
		t.Error("the TLS sessions were forgotten though nothing has changed")
	}
	good, err := os.ReadFile("server.pem")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{[]byte("broken"), good} {
		if err := os.WriteFile("client.pem", text, 0o600); err != nil {
			t.Fatal(err)
		}
		sessions()
		sessions()
	}
	if sessions() == first {
		t.Error("the TLS sessions of the old certificate are resumed")
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "--tls-cert: client.pem") || !strings.Contains(warned[0], "stay in use") {
		t.Errorf("warned %q", warned)
	}
}

// TestSettingsAreDocumented shows that docs/clients.md lists each flag and each variable.
func TestSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Settings {
		for _, name := range []string{s.Env, s.Flag} {
			if name == s.Flag && name != "" {
				name = "--" + name
			}
			if !strings.Contains(string(text), fmt.Sprintf("`%s`", name)) && name != "" {
				t.Errorf("docs/clients.md does not list %s", name)
			}
		}
	}
}
