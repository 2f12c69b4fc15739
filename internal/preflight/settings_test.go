package preflight

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/config"
)

// examined writes a zoo.cfg for a standalone server and returns what Examine says about it.
func examined(t *testing.T, lines string, flags ...string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte("dataDir="+dir+"\nclientPort=2181\n"+lines), 0o666); err != nil {
		t.Fatal(err)
	}
	return config.Examine(file, flags)
}

// saslScheme switches the scheme sasl on.
const saslScheme = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"

// TestSettingsThatRefuseClientsPrevent shows that a login that no client can pass prevents a takeover, although a server
// would start with a warning.
func TestSettingsThatRefuseClientsPrevent(t *testing.T) {
	for name, test := range map[string]struct{ lines, what string }{
		"a required login":     {saslScheme + "sessionRequireClientSASLAuth=true\n", "names no JAAS file: no client will be served"},
		"a login":              {saslScheme, "names no JAAS file: no client can log in"},
		"a client certificate": {"secureClientPort=2281\nssl.keyStore.location=/k.pem\nssl.clientAuth=none\nenforce.auth.enabled=true\nenforce.auth.schemes=x509\n", "asks for the id in a certificate: no client will be served"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := examined(t, test.lines)
			if err != nil {
				t.Fatal(err)
			}
			if got := Settings(c, err); !finds(got, Prevents, c.File, test.what) {
				t.Errorf("findings: %+v", got)
			}
		})
	}
}

// TestMovedFlagsThatProtectPrevent shows that a flag which Bellwether does not see prevents a takeover if logins,
// permissions or TLS depend on it, and warns otherwise.
func TestMovedFlagsThatProtectPrevent(t *testing.T) {
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	if err := os.WriteFile(jaas, []byte(`Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="hush"; };`), 0o666); err != nil {
		t.Fatal(err)
	}
	const tls = "secureClientPort=2281\nssl.keyStore.location=/k.pem\n"
	for name, test := range map[string]struct {
		lines, flag string
		severity    Severity
	}{
		"the JAAS file of a required login": {saslScheme + "sessionRequireClientSASLAuth=true\n", "-Djava.security.auth.login.config=" + jaas, Prevents},
		"the JAAS file of a login":          {saslScheme, "-Djava.security.auth.login.config=" + jaas, Prevents},
		"the scheme that a key requires":    {"enforce.auth.enabled=true\n", "-Dzookeeper.enforce.auth.schemes=ip", Prevents},
		"a login is required":               {"enforce.auth.schemes=digest\n", "-Dzookeeper.enforce.auth.enabled=true", Prevents},
		"a super user":                      {"", "-Dzookeeper.X509AuthenticationProvider.superUser=CN=admin, O=Example", Prevents},
		"the key store of the secure port":  {"secureClientPort=2281\n", "-Dzookeeper.ssl.keyStore.location=/k.pem", Prevents},
		"the trust store":                   {tls, "-Dzookeeper.ssl.trustStore.location=/t.pem", Prevents},
		"reloaded certificates":             {tls, "-Dzookeeper.client.certReload=true", Warns},
		"TLS that no port uses":             {"", "-Dzookeeper.ssl.trustStore.location=/t.pem", Warns},
		"the default":                       {"", "-Dzookeeper.skipACL=no", Warns},
		"a limit":                           {"", "-Djute.maxbuffer=4194304", Warns},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := examined(t, test.lines, test.flag)
			if err != nil {
				t.Fatal(err)
			}
			flag, _, _ := strings.Cut(test.flag, "=")
			if got := Moved(c, err, []string{test.flag}, nil); len(got) != 1 || !finds(got, test.severity, "flag "+flag, "has an effect in Bellwether") {
				t.Errorf("want one finding that %s, got %+v", test.severity, got)
			}
			if got := Moved(c, err, []string{test.flag}, []string{test.flag}); len(got) > 0 {
				t.Errorf("Bellwether sees the flag: %+v", got)
			}
		})
	}
}

// TestMovedFlagsOfASettingThatIsRefused shows that a fault that a flag does not cause does not count against the flag.
func TestMovedFlagsOfASettingThatIsRefused(t *testing.T) {
	c, err := examined(t, "authProvider.1=com.example.Own\n", "-Djute.maxbuffer=4194304")
	if err == nil {
		t.Fatal("the scheme is accepted")
	}
	if got := Moved(c, err, []string{"-Djute.maxbuffer=4194304"}, nil); !finds(got, Warns, "-Djute.maxbuffer", "has an effect") {
		t.Errorf("findings: %+v", got)
	}
}
