package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// loadSections applies flags and a zoo.cfg, reads the JAAS file DIR/jaas.conf of this text, and
// returns the loader.
func loadSections(t *testing.T, flags, zoo, text string) *loader {
	t.Helper()
	path := write(t, zoo, "jaas.conf", text)
	dir := strings.TrimSuffix(path, "zoo.cfg")
	props, err := readProperties(path)
	if err != nil {
		t.Fatal(err)
	}
	l := &loader{c: defaults(), settings: make(map[string]setting), flags: make(map[string]string)}
	l.applyFile(path, props)
	l.applyFlags(strings.Fields("-D" + jaasKey + "=" + dir + "jaas.conf " + flags))
	l.loadJAAS()
	return l
}

// TestJAASFileIsRead shows that ${...} in the JAAS file stands for the value of a -D flag, of a key of
// zoo.cfg, or of user.home.
func TestJAASFileIsRead(t *testing.T) {
	t.Setenv("HOME", "/home/zk")
	const text = `Server { org.apache.zookeeper.server.auth.DigestLoginModule required
		user_a="${pw}" user_b="${zookeeper.pw}" user_c="${user.home}${/}x" user_d="${zookeeper.superUser}"; };`
	l := loadSections(t, "-Dpw=first -Dpw=second -Dzookeeper.pw=prefixed -Dzookeeper.superUser=flag", "superUser=file\ntickTime=1", text)
	if len(l.errs) > 0 {
		t.Fatal(l.joined())
	}
	section, err := l.c.SASL.JAAS.Section("Server")
	if err != nil {
		t.Fatal(err)
	}
	login, err := section.Login()
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"a": "second", "b": "prefixed", "c": "/home/zk/x", "d": "file"} {
		if got := login.Digest.Users[user].Reveal(); got != want {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
}

// TestJAASFileIsRefused shows that a JAAS file that cannot be used is an error that names the flag,
// the file and the place, and shows no password.
func TestJAASFileIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`Server { x required user_a="hush" };`:     "jaas.conf:1:35: expected",
		`Server { x required user_a="hush`:         "jaas.conf:1:",
		`Server { x required user_a="${unset}";};`: `the system property "unset" is not set`,
		strings.Repeat("/", 1<<20+1):               "is longer than 1048576 bytes",
	} {
		l := loadSections(t, "", "tickTime=1", text)
		if len(l.errs) != 1 {
			t.Fatalf("%.40s: %d errors", text, len(l.errs))
		}
		if got := l.errs[0].Error(); !strings.Contains(got, want) || !strings.HasPrefix(got, "JVMFLAGS: -D"+jaasKey+"=") || strings.Contains(got, "hush") {
			t.Errorf("%.40s: %s", text, got)
		}
	}
	l := loadSections(t, "", "tickTime=1", "")
	l.errs, l.settings[jaasKey] = nil, setting{key: byName[jaasKey], file: FlagsSource, name: "-D" + jaasKey, value: "/nonexistent/jaas.conf"}
	if l.loadJAAS(); len(l.errs) != 1 || !strings.Contains(l.errs[0].Error(), "no such file") {
		t.Errorf("a file that does not exist: %v", l.errs)
	}
}

// The lines and the file of a server to which clients log in.
const (
	saslProvider = "dataDir=/nonexistent\nclientPort=1\nautopurge.purgeInterval=1\nauthProvider.1=" + saslClass + "\n"
	saslSection  = `Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="hush"; };`
)

// loadLogins loads a zoo.cfg. The flag that names the JAAS file comes before the other flags.
func loadLogins(t *testing.T, flags, zoo, text string) (*Config, error) {
	t.Helper()
	path := write(t, zoo, "jaas.conf", text)
	file := strings.TrimSuffix(path, "zoo.cfg") + "jaas.conf"
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, "-D"+jaasKey+"="+file+" "+flags)
}

// TestLoginSettings shows where the keys of logins are stored, and which keys belong together.
func TestLoginSettings(t *testing.T) {
	c, err := loadLogins(t, "-Dzookeeper.superUser.x=carl -Dzookeeper.kerberos.removeHostFromPrincipal=true",
		saslProvider+"superUser=bob\nsuperUser.1=alice\nsessionRequireClientSASLAuth=true\nenforce.auth.schemes=digest\nletAnySaslUserDoX=all", saslSection)
	if err != nil {
		t.Fatal(err)
	}
	a := &c.Access
	if got := fmt.Sprint(a.SASLSupers, a.SASLScheme, a.RequiredSchemes(), a.LetAnySASLUser); got != "[alice bob carl] true [sasl]all" {
		t.Error(got)
	}
	if !c.SASL.HasClientSection() || !c.SASL.RemoveHost || c.SASL.RemoveRealm || c.SASL.Krb5Conf != "/etc/krb5.conf" {
		t.Errorf("%+v", c.SASL)
	}
	if c = load(t, "", saslProvider+"enforce.auth.enabled=true\nenforce.auth.schemes= sasl , ip"); fmt.Sprint(c.Access.RequiredSchemes()) != "[sasl ip]" {
		t.Errorf("%v", c.Access.RequiredSchemes())
	}
	if c = load(t, "", saslProvider); c.Access.RequiredSchemes() != nil {
		t.Errorf("%v", c.Access.RequiredSchemes())
	}
}

// refusals returns the number of warnings that say that clients are refused.
func refusals(c *Config) (n int) {
	for _, w := range c.Warnings {
		if w.RefusesClients {
			n++
		}
	}
	return n
}

// TestLoginWarnings shows the warnings about settings of logins that need another setting.
func TestLoginWarnings(t *testing.T) {
	const other = `QuorumServer { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="hush"; };`
	plain := strings.Split(saslProvider, "authProvider")[0]
	for _, x := range []struct{ zoo, text, want string }{
		{saslProvider, saslSection, ""},
		{plain, other, ""},
		{saslProvider, other, "zoo.cfg: authProvider switches the scheme sasl on, but the JAAS file has no section Server: no client can log in"},
		{saslProvider + "sessionRequireClientSASLAuth=true", other, "zoo.cfg:5: sessionRequireClientSASLAuth requires a login by SASL, but the JAAS file has no section Server: no client will be served"},
		{saslProvider + "enforce.auth.enabled=true\nenforce.auth.schemes=sasl", other, "zoo.cfg:6: enforce.auth.schemes requires a login by SASL"},
		{plain, saslSection, "JVMFLAGS: -D" + jaasKey + " lets clients log in, but the scheme sasl is not switched on"},
	} {
		c, err := loadLogins(t, "", x.zoo, x.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(c.Warnings); !strings.Contains(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%s%s: got %s", x.zoo, x.text, got)
		}
		if got, want := refusals(c), strings.Contains(x.want, "no client") || strings.Contains(x.want, "requires a login"); (got == 1) != want || got > 1 {
			t.Errorf("%s%s: %d warnings say that clients are refused", x.zoo, x.text, got)
		}
	}
	_, err := loadLogins(t, "", saslProvider+"sasl.serverconfig=Clients", saslSection)
	if err == nil || !strings.Contains(err.Error(), "zoo.cfg:5: sasl.serverconfig=Clients names the section with which clients log in, but the JAAS file has no such section") {
		t.Error(err)
	}
	if _, err = loadLogins(t, "", saslProvider+"sasl.serverconfig=Clients", "Clients {"); err == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("one fault is reported more than once: %v", err)
	}
}
