package clientconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"bellwether/internal/sasl/jaas"
	"bellwether/zk"
	"bellwether/zk/kerberos"
)

// loadLogin sets c.login if a login is configured. A flag takes precedence over a
// variable, and a variable over a property.
func (c *Config) loadLogin(g gathered, env func(string) string) error {
	for _, r := range []rank{fromFlag, fromEnv} {
		way, err := wayOf(g, r)
		switch {
		case err != nil:
			return err
		case way == flagUser:
			return c.loginByPassword(g)
		case way == flagPrincipal:
			if v := g[flagKeyTab]; v.rank == r && g[flagPrincipal].text == "" {
				return fmt.Errorf("%s needs the name to log in as: give --%s", v.from, flagPrincipal)
			}
			return c.loginByTicket(g, ticketOf(g, env), env)
		case way == jaasFile:
			return c.loginByJAAS(g, env)
		}
	}
	if v := g[flagPasswordFile]; v.rank == fromFlag {
		return fmt.Errorf("%s has no effect without --%s", v.from, flagUser)
	}
	if v, other := g[serverPrincipal], g[jaasFile].text; v.rank == fromFlag && other == "" {
		return fmt.Errorf("%s has no effect without a login: give --%s, --%s or --%s", v.from, flagPrincipal, flagCache, flagJAAS)
	}
	file, ok := g[jaasFile]
	if !ok {
		if v := g[jaasSection]; v.rank > fromJVMFlags {
			return fmt.Errorf("%s names a section, but no JAAS file is named: give --%s", v.from, flagJAAS)
		}
		return nil
	}
	if v, given := g[saslClient]; given && !v.isTrue() {
		if file.rank == fromFile {
			c.notice("%s: %s has no effect, and the client does not log in: %s is not true", file.from, jaasFile, saslClient)
		}
		return nil
	}
	return c.loginByJAAS(g, env)
}

// wayOf returns the way to log in that the values of rank r name (the flags or the variables):
// flagUser, flagPrincipal or jaasFile; empty if they name none.
func wayOf(g gathered, r rank) (string, error) {
	way, by := "", ""
	for _, x := range []struct{ name, way string }{
		{flagUser, flagUser}, {jaasFile, jaasFile}, {flagPrincipal, flagPrincipal}, {flagKeyTab, flagPrincipal}, {flagCache, flagPrincipal},
	} {
		v := g[x.name]
		switch {
		case v.rank != r:
		case way != "" && way != x.way:
			return "", fmt.Errorf("%s and %s are two ways to log in: give one of them", by, v.from)
		default:
			way, by = x.way, v.from
		}
	}
	return way, nil
}

// loginByPassword logs in as the user of --sasl-user.
func (c *Config) loginByPassword(g gathered) error {
	user, password, file := g[flagUser], g[envPassword], g[flagPasswordFile]
	if file.rank > fromJVMFlags && file.rank >= password.rank {
		text, err := c.readPassword(file)
		if err != nil {
			return err
		}
		password.text = text
	}
	if password.text == "" {
		return fmt.Errorf("%s needs a password: name a file with --%s, or set $%s", user.from, flagPasswordFile, envPassword)
	}
	c.login = zk.DigestMD5(user.text, password.text)
	return nil
}

// loginByJAAS logs in as a section of a JAAS file says. If only -D settings name the file, it
// may be the file of a server: a missing section for clients is then no error.
func (c *Config) loginByJAAS(g gathered, env func(string) string) error {
	property := func(name string) (string, bool) {
		if v, ok := g[name]; ok {
			return v.text, true
		}
		return env("HOME"), name == "user.home" && env("HOME") != ""
	}
	file := g[jaasFile]
	path, err := jaas.Path(file.text, property)
	if err != nil {
		return fmt.Errorf("%s: %w", file.from, err)
	}
	text, err := readFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", file.from, err)
	}
	parsed, err := jaas.Parse(path, text, property)
	if err != nil {
		return err
	}
	name, named := g[jaasSection]
	if !named {
		name.text = "Client"
	}
	section, err := parsed.Section(name.text)
	if err != nil && file.rank == fromJVMFlags && !named {
		c.notice("%s: the client does not log in: %v", file.from, err)
		return nil
	}
	if err != nil {
		return err
	}
	login, err := section.Login()
	if err != nil {
		return err
	}
	return c.loginBySection(g, env, path, name.text, login)
}

// loginBySection logs in by one of the two login modules.
func (c *Config) loginBySection(g gathered, env func(string) string, path, name string, login *jaas.Login) error {
	if k := login.Kerberos; k != nil {
		o := kerberos.Options{Principal: k.Principal}
		if k.UseTicketCache {
			o.TicketCache = orCache(k.TicketCache, env)
		}
		// As in Java, the keys are used if there are no tickets.
		if _, err := os.Stat(o.TicketCache); k.UseKeyTab && err != nil {
			o.TicketCache, o.KeyTab = "", orKeyTab(k.KeyTab, env)
		}
		return c.loginByTicket(g, o, env)
	}
	if login.Digest.Username == "" {
		return fmt.Errorf("%s: the section %s names no user to log in as: add the options username and password", path, name)
	}
	c.warnReadable(path, "a password")
	c.login = zk.DigestMD5(login.Digest.Username, login.Digest.Password.Reveal())
	return nil
}

// ticketOf returns the Kerberos credentials that flags or variables name.
func ticketOf(g gathered, env func(string) string) kerberos.Options {
	o := kerberos.Options{Principal: g[flagPrincipal].text, KeyTab: g[flagKeyTab].text, TicketCache: g[flagCache].text}
	if g[flagKeyTab].rank > g[flagCache].rank {
		o.TicketCache = ""
	} else if g[flagCache].rank > g[flagKeyTab].rank {
		o.KeyTab = ""
	}
	if o.KeyTab == "" && o.TicketCache == "" {
		o.TicketCache = orCache("", env)
	}
	return o
}

// loginByTicket logs in with Kerberos.
func (c *Config) loginByTicket(g gathered, o kerberos.Options, env func(string) string) error {
	if kind, _, ok := strings.Cut(o.TicketCache, ":"); ok && !strings.Contains(kind, "/") {
		return fmt.Errorf("the ticket cache %s is of type %s, and only files are read: run kinit -c FILE, and name the file with --%s", o.TicketCache, kind, flagCache)
	}
	o.Conf = g[krb5Conf].text
	if o.Conf == "" {
		o.Conf, _, _ = strings.Cut(env("KRB5_CONFIG"), ":")
	}
	o.Service = g[serverPrincipal].text
	if name := g[serviceName].text; o.Service == "" && name != "" {
		o.Service = name + "/_HOST"
	}
	if realm := g[serverRealm].text; realm != "" && !strings.Contains(o.Service, "@") {
		if o.Service == "" {
			o.Service = "zookeeper/_HOST"
		}
		o.Service += "@" + realm
	}
	v, given := g[canonicalize]
	o.HostAsGiven = given && !v.isTrue()
	login, err := kerberos.New(o)
	if errors.Is(err, fs.ErrNotExist) && o.TicketCache != "" {
		return fmt.Errorf("%w: run kinit, or name a ticket cache with --%s, or keys with --%s", err, flagCache, flagKeyTab)
	}
	if err != nil {
		return err
	}
	if o.KeyTab != "" {
		c.warnReadable(o.KeyTab, "keys")
	}
	c.login, c.close = login.Begin, login.Close
	return nil
}

// orCache returns the ticket cache that kinit uses, unless one is named.
func orCache(named string, env func(string) string) string {
	if named != "" {
		return named
	}
	if name := env("KRB5CCNAME"); name != "" {
		return strings.TrimPrefix(name, "FILE:")
	}
	return fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
}

// orKeyTab returns the keytab that programs of Kerberos use, unless one is named.
func orKeyTab(named string, env func(string) string) string {
	for _, name := range []string{named, env("KRB5_CLIENT_KTNAME"), env("KRB5_KTNAME")} {
		if name != "" {
			return strings.TrimPrefix(name, "FILE:")
		}
	}
	return "/etc/krb5.keytab"
}
