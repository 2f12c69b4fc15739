package jaas

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/sasl"
)

// The login modules that a section may have.
const (
	DigestModule   = "org.apache.zookeeper.server.auth.DigestLoginModule"
	KerberosModule = "com.sun.security.auth.module.Krb5LoginModule"
)

// Login is the meaning of a section. Exactly one of Digest and Kerberos is not nil.
type Login struct {
	Digest   *Digest
	Kerberos *Kerberos
	// Ignored are options that have no effect, with their places.
	Ignored []string
}

// Digest holds the options of DigestLoginModule. A section for accepting logins has Users. A
// section for logging in has Username and Password.
type Digest struct {
	Users    map[string]sasl.Secret // passwords by user, from the options user_NAME
	Username string
	Password sasl.Secret
}

// Kerberos holds the options of Krb5LoginModule.
type Kerberos struct {
	Principal string // never empty if UseKeyTab
	// UseKeyTab selects the file KeyTab. If KeyTab is empty, krb5.conf names the file.
	UseKeyTab bool
	KeyTab    string
	// UseTicketCache selects the file TicketCache. If TicketCache is empty, the environment names the file.
	UseTicketCache bool
	TicketCache    string
	RenewTGT       bool // a ticket of the cache must be renewed before it expires
	// StoreKey says that the keys may be used for accepting logins.
	StoreKey          bool
	Initiator         bool // a ticket must be obtained at the start; true if the file does not say
	RefreshKrb5Config bool // krb5.conf is read again at each login
}

// Login returns what the modules of the section mean together.
func (s *Section) Login() (*Login, error) {
	if len(s.Modules) == 0 {
		return nil, s.place.errorf("the section %s has no login module; add %s or %s", s.Name, DigestModule, KerberosModule)
	}
	l := &Login{}
	for i := range s.Modules {
		m := &s.Modules[i]
		var err error
		switch {
		case m.Class == DigestModule && l.Kerberos == nil:
			err = l.addDigest(m)
		case m.Class == KerberosModule && i == 0:
			l.Kerberos, err = l.kerberos(m)
		case m.Class == DigestModule || m.Class == KerberosModule:
			err = m.place.errorf("section %s has more than one login module, one of them for Kerberos; keep one", s.Name)
		default:
			err = m.place.errorf("section %s: the login module %s is not supported; use %s or %s", s.Name, m.Class, DigestModule, KerberosModule)
		}
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// userPrefix begins the options of DigestLoginModule that name a user.
const userPrefix = "user_"

// addDigest adds the users of a module. As in ZooKeeper, if a user occurs twice, the later password
// counts. If several modules have a username, the first one is that of the client.
func (l *Login) addDigest(m *Module) error {
	if l.Digest == nil {
		l.Digest = &Digest{Users: map[string]sasl.Secret{}}
	}
	d := l.Digest
	own, password := Option{}, Option{}
	for _, o := range m.Options {
		user, isUser := strings.CutPrefix(o.Name, userPrefix)
		switch {
		case isUser && user == "":
			return o.place.errorf("the option user_ names no user; write user_NAME")
		case isUser:
			d.Users[user] = o.Value
		case o.Name == "username":
			own = o
		case o.Name == "password":
			password = o
		case o.Name != "debug":
			l.ignore(o)
		}
	}
	switch {
	case own.Name != "" && password.Name == "":
		return own.place.errorf("the option username has no option password beside it")
	case own.Name == "" && password.Name != "":
		return password.place.errorf("the option password has no option username beside it; the users of a server are options user_NAME")
	case own.Name != "" && own.Value.Reveal() == "":
		return own.place.errorf("the option username is empty")
	case own.Name != "" && d.Username == "":
		d.Username, d.Password = own.Value.Reveal(), password.Value
	}
	return nil
}

func (l *Login) ignore(o Option) {
	l.Ignored = append(l.Ignored, fmt.Sprintf("%s:%d:%d: the option %s has no effect", o.place.file, o.place.line, o.place.column, o.Name))
}

// refused are the options of Krb5LoginModule that share passwords among modules.
var refused = []string{"useFirstPass", "tryFirstPass", "storePass", "clearPass"}

func (l *Login) kerberos(m *Module) (*Kerberos, error) {
	k := &Kerberos{Initiator: true}
	texts := map[string]*string{"principal": &k.Principal, "keyTab": &k.KeyTab, "ticketCache": &k.TicketCache}
	var doNotPrompt, debug bool
	switches := map[string]*bool{
		"useKeyTab": &k.UseKeyTab, "useTicketCache": &k.UseTicketCache, "renewTGT": &k.RenewTGT, "storeKey": &k.StoreKey,
		"isInitiator": &k.Initiator, "refreshKrb5Config": &k.RefreshKrb5Config, "doNotPrompt": &doNotPrompt, "debug": &debug,
	}
	for _, o := range m.Options {
		var err error
		if text, ok := texts[o.Name]; ok {
			*text, err = o.text()
		} else if on, ok := switches[o.Name]; ok {
			*on, err = o.boolean()
		} else if slices.Contains(refused, o.Name) {
			if on, _ := o.boolean(); on {
				err = o.place.errorf("the option %s is not supported: a server has no login module before this one; remove it", o.Name)
			}
		} else {
			l.ignore(o)
		}
		if err != nil {
			return nil, err
		}
	}
	return k, k.check(m)
}

// check refuses options that contradict each other, as the JDK does.
func (k *Kerberos) check(m *Module) error {
	switch {
	case !k.UseKeyTab && !k.UseTicketCache:
		return m.place.errorf("Krb5LoginModule would ask for a password; set useKeyTab=true with keyTab and principal, or useTicketCache=true")
	case k.KeyTab != "" && !k.UseKeyTab:
		return m.place.errorf("keyTab has no effect without useKeyTab=true; add it")
	case k.TicketCache != "" && !k.UseTicketCache:
		return m.place.errorf("ticketCache has no effect without useTicketCache=true; add it")
	case k.RenewTGT && !k.UseTicketCache:
		return m.place.errorf("renewTGT has no effect without useTicketCache=true; add it")
	case k.UseKeyTab && (k.Principal == "" || k.Principal == "*"):
		return m.place.errorf("useKeyTab=true needs the option principal with one principal, such as zookeeper/host.example.com@EXAMPLE.COM")
	}
	return nil
}

// fileType may stand before the path of a keytab or a ticket cache.
const fileType = "FILE:"

// text returns the value of an option that is not secret. It removes fileType from a path, and
// refuses every other type.
func (o *Option) text() (string, error) {
	v := o.Value.Reveal()
	if o.Name == "principal" {
		return v, nil
	}
	path := strings.TrimPrefix(v, fileType)
	if kind, _, ok := strings.Cut(path, ":"); ok && kind == strings.ToUpper(kind) && !strings.Contains(kind, "/") {
		return "", o.place.errorf("%s is of type %s; only files are supported", o.Name, kind)
	}
	if path == "" {
		return "", o.place.errorf("the option %s is empty", o.Name)
	}
	return path, nil
}

// boolean reads true or false. The JDK takes every other word as false, which hides mistakes.
func (o *Option) boolean() (bool, error) {
	switch strings.ToLower(o.Value.Reveal()) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, o.place.errorf("the option %s must be true or false", o.Name)
}

// Path returns the path of the file that a value of java.security.auth.login.config names. The
// value is a path or a file URL. An = before it tells the JVM to read no other file.
func Path(value string, property func(string) (string, bool)) (string, error) {
	path, err := expand(strings.TrimPrefix(value, "="), property)
	if err != nil {
		return "", fmt.Errorf("java.security.auth.login.config: %w", err)
	}
	if rest, ok := strings.CutPrefix(path, "file:"); ok {
		if path = strings.TrimPrefix(rest, "//"); !strings.HasPrefix(path, "/") {
			return "", fmt.Errorf("java.security.auth.login.config=%s names a file of another host; name a local file", value)
		}
		return path, nil
	}
	if scheme, _, ok := strings.Cut(path, "://"); ok {
		return "", fmt.Errorf("java.security.auth.login.config=%s: a URL of type %s is not supported; name a local file", value, scheme)
	}
	if path == "" {
		return "", fmt.Errorf("java.security.auth.login.config is empty; name a file")
	}
	return path, nil
}
