package secure

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Family is the prefix of one set of TLS keys of zoo.cfg.
type Family string

// The families. The client port uses Clients. The quorum port, the election port and the admin server
// use Servers. Programs is the family in the configuration of a program that dials the client port.
const (
	Clients  Family = "ssl."
	Servers  Family = "ssl.quorum."
	Programs Family = "zookeeper.ssl."
)

// Value is a setting, and where it was given, such as "zoo.cfg line 12", for errors.
type Value struct{ Text, From string }

// ClientAuth says whether the side that dials must show a certificate.
type ClientAuth string

// The values of ssl.clientAuth. With Want a client may show no certificate, but one that it shows must be
// valid.
const (
	Need ClientAuth = "need"
	Want ClientAuth = "want"
	None ClientAuth = "none"
)

// Settings are the values of one family, complete with defaults.
type Settings struct {
	Family               Family
	KeyStore, TrustStore StoreFile
	MinVersion           uint16 // version of TLS, numbered as in crypto/tls
	MaxVersion           uint16
	CipherSuites         []uint16 // up to TLS 1.2; nil: those of crypto/tls
	ClientAuth           ClientAuth
	VerifyServerNames    bool   // the names of servers that are dialled must be in their certificates
	VerifyClientNames    bool   // the certificates of clients must contain the names or addresses of these clients
	SharedName           string // a certificate with this name is for every server; empty: none is. Only in the family Servers
	ReverseLookup        bool   // for these checks an address may be resolved to a name
	// AcceptsClients: with the family Servers, those who connect are programs such as browsers, and their
	// certificates need not be those of servers.
	AcceptsClients   bool
	CRL, OCSP        bool // revocation is checked. If both are set, OCSP comes first
	DetectionTimeout time.Duration
	Identity         IdentityRule // which text of a client's certificate is its id; only in the family Clients
	Notices          []string     // settings that are accepted, but have another effect than an operator may expect
}

// SettingError says why a setting cannot be used, and what to use instead.
type SettingError struct {
	Key     string
	Value   string
	From    string
	Why     string
	Instead string
}

func (e *SettingError) Error() string {
	from := ""
	if e.From != "" {
		from = " (" + e.From + ")"
	}
	return fmt.Sprintf("%s=%s%s: %s: %s", e.Key, e.Value, from, e.Why, e.Instead)
}

// detectionDefault is the default of ssl.handshakeDetectionTimeoutMillis.
const detectionDefault = 5 * time.Second

// Parse returns the settings of a family from the keys of zoo.cfg and the properties that
// belong to it, by their names in zoo.cfg. It does not open files. The error joins a
// *SettingError for each setting that cannot be used.
func Parse(f Family, values map[string]Value) (Settings, error) {
	p := &parser{family: f, values: values, known: map[string]bool{"sslProvider": f != Servers, "authProvider": f == Programs}}
	s := Settings{
		Family:            f,
		KeyStore:          p.store("keyStore"),
		TrustStore:        p.store("trustStore"),
		ClientAuth:        p.clientAuth(),
		VerifyServerNames: p.boolean("hostnameVerification", true),
		VerifyClientNames: p.boolean("clientHostnameVerification", f == Servers),
		ReverseLookup:     p.boolean("allowReverseDnsLookup", f == Servers),
		CRL:               p.boolean("crl", false),
		OCSP:              p.boolean("ocsp", false),
		DetectionTimeout:  p.timeout(),
	}
	if !s.VerifyServerNames && s.VerifyClientNames {
		s.VerifyClientNames = false
		if _, set := p.text("clientHostnameVerification"); set {
			p.notice("%sclientHostnameVerification has no effect while %shostnameVerification is false, as in ZooKeeper", f, f)
		}
	}
	if f == Servers {
		s.SharedName = p.sharedName(s.VerifyServerNames)
	}
	p.versions(&s)
	p.ciphers(&s)
	if v, set := p.text("context.supplier.class"); set {
		p.refuse("context.supplier.class", v, "it names a Java class, and there is no Java here",
			fmt.Sprintf("remove it, and set %skeyStore.location and %strustStore.location", f, f))
	}
	if s.KeyStore.Location != "" && s.TrustStore.Location == "" {
		p.notice("%strustStore.location is not set: every authority that this system trusts is trusted", f)
	}
	if f == Clients {
		s.Identity = p.identity()
		if v, set := p.text("authProvider"); set && v != "x509" {
			p.refuse("authProvider", v, "there is no such scheme for certificates", "remove it, or use x509")
		}
	}
	p.unknown()
	s.Notices = p.notices
	return s, errors.Join(p.errs...)
}

// parser collects the errors of all values.
type parser struct {
	family  Family
	values  map[string]Value
	known   map[string]bool // the keys that this package knows, without the prefix
	notices []string
	errs    []error
}

// text returns the value of a key of the family, and whether it is set.
func (p *parser) text(name string) (string, bool) {
	p.known[name] = true
	v, ok := p.values[string(p.family)+name]
	return v.Text, ok
}

// unknown adds a notice for each key of the family that has no effect.
func (p *parser) unknown() {
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		name, ok := strings.CutPrefix(key, string(p.family))
		if ok && !p.known[name] && (p.family == Servers || !strings.HasPrefix(name, "quorum.") && !strings.HasPrefix(name, "x509.")) {
			p.notice("%s is not a key of TLS and has no effect; upper and lower case count", key)
		}
	}
}

func (p *parser) refuse(name, value, why, instead string) {
	key := string(p.family) + name
	p.errs = append(p.errs, &SettingError{key, value, p.values[key].From, why, instead})
}

func (p *parser) notice(format string, args ...any) {
	p.notices = append(p.notices, fmt.Sprintf(format, args...))
}

// boolean returns a switch. As in Java, every text except true, in upper or lower case, means false.
func (p *parser) boolean(name string, def bool) bool {
	v, set := p.text(name)
	if !set {
		return def
	}
	v = strings.ToLower(strings.TrimSpace(v))
	if v != "true" && v != "false" {
		p.notice("%s%s=%s means false, as in ZooKeeper: only true means true", p.family, name, v)
	}
	return v == "true"
}

// sharedName returns the name that the certificates of all servers may have in place of their own names.
func (p *parser) sharedName(verified bool) string {
	const name = "sharedName"
	v, set := p.text(name)
	v = strings.TrimSpace(v)
	switch {
	case v == "":
	case strings.ContainsAny(v, "*, "):
		p.refuse(name, v, "not one name", "use a name that all certificates of servers have, without an asterisk")
	case !verified:
		p.notice("%s%s has no effect while %shostnameVerification is false", p.family, name, p.family)
	}
	if !set {
		return ""
	}
	return v
}

func (p *parser) clientAuth() ClientAuth {
	v, _ := p.text("clientAuth")
	switch auth := ClientAuth(strings.ToLower(v)); auth {
	case "":
		return Need
	case Need, Want, None:
		return auth
	}
	p.refuse("clientAuth", v, "not a choice", "use none, want or need")
	return Need
}

// timeout returns the time for which a port that takes TLS and plain text waits for the
// first bytes. As in ZooKeeper a number below 1 means the default.
func (p *parser) timeout() time.Duration {
	const name = "handshakeDetectionTimeoutMillis"
	v, set := p.text(name)
	if !set {
		return detectionDefault
	}
	ms, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		p.refuse(name, v, "not a number of milliseconds", "use a number such as 5000")
		return detectionDefault
	}
	if ms < 1 {
		p.notice("%s%s=%d means %d, as in ZooKeeper", p.family, name, ms, detectionDefault.Milliseconds())
		return detectionDefault
	}
	return time.Duration(ms) * time.Millisecond
}

// suffixes are the file name suffixes of each type. ZooKeeper knows the first three.
var suffixes = map[string]StoreType{".jks": JKS, ".pem": PEM, ".p12": PKCS12, ".pkcs12": PKCS12, ".pfx": PKCS12}

// store returns the key store or trust store that the keys name.
func (p *parser) store(name string) StoreFile {
	f := StoreFile{key: string(p.family) + name + ".location"}
	f.Location, _ = p.text(name + ".location")
	secret, _ := p.text(name + ".password")
	f.Password = Secret(secret)
	f.PasswordPath, _ = p.text(name + ".passwordPath")
	t, _ := p.text(name + ".type")
	switch up := StoreType(strings.ToUpper(t)); up {
	case PEM, JKS, PKCS12:
		f.Type = up
	case "":
		if f.Location != "" {
			f.Type = p.suffix(name, f.Location)
		}
	case "BCFKS":
		p.refuse(name+".type", t, "only the Java library Bouncy Castle reads this format", convert)
	default:
		p.refuse(name+".type", t, "not a type of store", "use PEM, PKCS12 or JKS")
	}
	return f
}

const convert = "convert the file with keytool -importkeystore -deststoretype PKCS12, and set the type to PKCS12"

// suffix returns the type of a file by its name.
func (p *parser) suffix(name, file string) StoreType {
	end := path.Ext(file)
	if end == ".bcfks" {
		p.refuse(name+".location", file, "only the Java library Bouncy Castle reads this format", convert)
		return ""
	}
	t, ok := suffixes[end]
	if !ok {
		p.refuse(name+".location", file, "the name does not end with .pem, .p12 or .jks, so the type of the file is unknown",
			fmt.Sprintf("set %s%s.type to PEM, PKCS12 or JKS", p.family, name))
	}
	return t
}

// words splits a list at its commas.
func (p *parser) words(name string) []string {
	v, _ := p.text(name)
	var list []string
	for _, word := range strings.Split(v, ",") {
		if word = strings.TrimSpace(word); word != "" && !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list
}
