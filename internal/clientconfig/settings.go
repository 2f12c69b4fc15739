package clientconfig

import (
	"fmt"
	"strings"
)

// Setting is a value that the user gives with a flag or with an environment variable.
type Setting struct {
	Flag  string // empty: there is no flag, because the value is secret
	Env   string
	Usage string
	// Default is used if neither is given.
	Default string
	// property is the name of the value in ZooKeeper's client configuration.
	property string
}

// The flags and variables that the code names.
const (
	flagFile         = "client-configuration"
	flagTLS          = "tls"
	flagCA           = "tls-ca"
	flagCert         = "tls-cert"
	flagKey          = "tls-key"
	flagTLSPassword  = "tls-password-file"
	flagServerName   = "tls-server-name"
	flagUser         = "sasl-user"
	flagPasswordFile = "sasl-password-file"
	flagJAAS         = "jaas"
	flagSection      = "jaas-section"
	flagPrincipal    = "kerberos-principal"
	flagKeyTab       = "kerberos-keytab"
	flagCache        = "kerberos-cache"
	flagService      = "kerberos-service"

	envPassword    = "BELLWETHER_SASL_PASSWORD"
	envTLSPassword = "BELLWETHER_TLS_PASSWORD"
)

// Settings are all flags and environment variables of this package. The flag tls is a switch. The
// last two have no flag, because they are passwords.
var Settings = []Setting{
	{flagFile, "BELLWETHER_CLIENT_CONFIGURATION", "`FILE` with ZooKeeper's client properties for TLS and SASL, as for zkCli", "", ""},
	{flagTLS, "BELLWETHER_TLS", "connect with TLS; any other --tls flag switches it on too", "", secureClient},
	{flagCA, "BELLWETHER_TLS_CA", "`FILE` with the trusted authorities: PEM, PKCS#12 or JKS", "the system's", trustStore + location},
	{flagCert, "BELLWETHER_TLS_CERT", "`FILE` with this client's certificate: PEM, PKCS#12 or JKS", "", keyStore + location},
	{flagKey, "BELLWETHER_TLS_KEY", "`FILE` with the certificate's private key, in PEM", "in --tls-cert", ""},
	{flagTLSPassword, "BELLWETHER_TLS_PASSWORD_FILE", "`FILE` with the password of --tls-cert and --tls-ca", "$" + envTLSPassword, ""},
	{flagServerName, "BELLWETHER_TLS_SERVER_NAME", "`NAME` that the servers' certificates must have", "each server's own", ""},
	{flagUser, "BELLWETHER_SASL_USER", "log in as this `USER` with a password (SASL DIGEST-MD5)", "", ""},
	{flagPasswordFile, "BELLWETHER_SASL_PASSWORD_FILE", "`FILE` with the password of --sasl-user", "$" + envPassword, ""},
	{flagJAAS, "BELLWETHER_JAAS", "log in as a section of this JAAS `FILE` says (DIGEST-MD5 or Kerberos)", "", jaasFile},
	{flagSection, "BELLWETHER_JAAS_SECTION", "`NAME` of the section in the JAAS file", "Client", jaasSection},
	{flagPrincipal, "BELLWETHER_KERBEROS_PRINCIPAL", "log in with Kerberos as this `NAME`", "", ""},
	{flagKeyTab, "BELLWETHER_KERBEROS_KEYTAB", "`FILE` with the keys of --kerberos-principal", "", ""},
	{flagCache, "BELLWETHER_KERBEROS_CACHE", "log in with the Kerberos tickets of this `FILE`", "$KRB5CCNAME", ""},
	{flagService, "BELLWETHER_KERBEROS_SERVICE", "`PRINCIPAL` of the servers; _HOST stands for a server's name", "zookeeper/_HOST", serverPrincipal},
	{"", envPassword, "", "", ""},
	{"", envTLSPassword, "", "", ""},
}

// Properties of ZooKeeper's client configuration.
const (
	secureClient    = "zookeeper.client.secure"
	keyStore        = "zookeeper.ssl.keyStore."
	trustStore      = "zookeeper.ssl.trustStore."
	location        = "location"
	saslClient      = "zookeeper.sasl.client"
	jaasFile        = "java.security.auth.login.config"
	jaasSection     = "zookeeper.sasl.clientconfig"
	serverPrincipal = "zookeeper.server.principal"
	serviceName     = "zookeeper.sasl.client.username"
	serverRealm     = "zookeeper.server.realm"
	canonicalize    = "zookeeper.sasl.client.canonicalize.hostname"
	krb5Conf        = "java.security.krb5.conf"
)

// rank orders the sources of a value: the value with the highest rank is used.
type rank int

const (
	fromJVMFlags rank = iota + 1
	fromFile
	fromEnv
	fromFlag
)

// value is a setting or a property, and where it was given.
type value struct {
	text string
	rank rank
	from string // such as "--tls-ca" or "client.properties line 3"
}

// isTrue reads a switch of ZooKeeper: every text except true means false.
func (v value) isTrue() bool { return strings.EqualFold(v.text, "true") }

// gathered holds the values of all sources. A property is found by its name; any other setting is found by
// its flag or variable.
type gathered map[string]value

// add adds a value unless one of a higher rank is there.
func (g gathered) add(name string, v value) {
	if g[name].rank <= v.rank {
		g[name] = v
	}
}

// id returns the name under which a setting is gathered.
func (s Setting) id() string {
	switch {
	case s.property != "":
		return s.property
	case s.Flag != "":
		return s.Flag
	}
	return s.Env
}

// addSettings adds the flags and the variables.
func (g gathered) addSettings(flag func(string) (string, bool), env func(string) string) error {
	for _, s := range Settings {
		v, from, r := env(s.Env), "$"+s.Env, fromEnv
		if s.Flag != "" {
			if text, ok := flag(s.Flag); ok {
				v, from, r = text, "--"+s.Flag, fromFlag
			}
		}
		if v == "" {
			if r == fromFlag {
				return fmt.Errorf("%s is empty: give it a value, or leave it out", from)
			}
			continue
		}
		if s.Flag == flagTLS && v != "true" && v != "false" {
			return fmt.Errorf("%s=%s: want true or false", from, v)
		}
		g.add(s.id(), value{v, r, from})
	}
	return nil
}

// addJVMFlags adds the -D settings that ZooKeeper's command line passes to Java.
func (g gathered) addJVMFlags(env func(string) string) {
	for _, name := range []string{"CLIENT_JVMFLAGS", "JVMFLAGS"} {
		for word := range strings.FieldsSeq(env(name)) {
			if def, ok := strings.CutPrefix(word, "-D"); ok {
				key, text, _ := strings.Cut(def, "=")
				g.add(key, value{text, fromJVMFlags, "-D" + key + " in $" + name})
			}
		}
	}
}
