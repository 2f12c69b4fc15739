package config

import (
	"fmt"
	"slices"

	"bellwether/internal/sasl"
	"bellwether/internal/sasl/jaas"
)

// SASL holds the settings of logins by SASL.
type SASL struct {
	File     string     // as java.security.auth.login.config names it; empty: there are no logins
	JAAS     *jaas.File // what that file holds; nil: there is none
	Section  string     // section of the file with which clients log in; it may be missing
	Quorum   QuorumSASL
	Krb5Conf string // path of the configuration of Kerberos
	// ServerRealm is the realm of other servers if Quorum.ServicePrincipal names none; empty: that
	// of this server.
	ServerRealm string

	SuperPassword   string // password of the user super, if the JAAS file has that user
	RequireKerberos bool   // the configuration of Kerberos must exist
	RemoveHost      bool   // the SASL ids of clients are their Kerberos names without the host
	RemoveRealm     bool   // the SASL ids of clients are their Kerberos names without the realm
	AuthToLocal     string // rules that sasl.ParseRules accepts
}

const (
	schemeSASL  = "sasl"
	schemeX509  = "x509"
	saslClass   = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	sectionKey  = "sasl.serverconfig"
	rulesKey    = "security.auth_to_local"
	schemesKey  = "enforce.auth.schemes"
	enforceKey  = "enforce.auth.enabled"
	requireKey  = "sessionRequireClientSASLAuth"
	providerKey = "authProvider.1=" + saslClass
)

// HasClientSection reports whether the JAAS file has a section with which clients log in.
func (s *SASL) HasClientSection() bool {
	return s.JAAS != nil && slices.ContainsFunc(s.JAAS.Sections, func(x jaas.Section) bool { return x.Name == s.Section })
}

// loadSASL determines the settings of logins that follow from several keys, and checks them.
func (l *loader) loadSASL() {
	l.loadProviders()
	c := l.c
	if _, err := sasl.ParseRules(c.SASL.AuthToLocal); err != nil {
		l.failKey(rulesKey, "is not allowed: "+err.Error(), "correct the rule, or remove the key for the default, DEFAULT")
	}
	if _, given := l.settings[sectionKey]; given && !c.SASL.HasClientSection() && len(l.errsOf("-D"+jaasKey)) == 0 {
		where := "the JAAS file has no such section"
		if c.SASL.JAAS == nil {
			where = "no JAAS file is named"
		}
		l.failKey(sectionKey, "names the section with which clients log in, but "+where,
			"name the file with -D"+jaasKey+"=PATH in SERVER_JVMFLAGS and add the section to it, or remove the key")
	}
	l.noticeIf(!c.SASL.HasClientSection() && !c.SASL.Quorum.Enable, jaasKey, fmt.Sprintf("has no effect: the file has no section %s for clients, and %s is not true", c.SASL.Section, enableSASL))
	l.checkSchemes()
}

// loadProviders reads the families authProvider.* and superUser.*.
func (l *loader) loadProviders() {
	a := &l.c.Access
	if a.SASLSuper != "" {
		a.SASLSupers = append(a.SASLSupers, a.SASLSuper)
	}
	for _, v := range l.settings {
		switch {
		case v.key.form != pattern || v.value == "":
		case v.key.name == "superUser.*":
			a.SASLSupers = append(a.SASLSupers, v.value)
		case v.key.name == "authProvider.*" && v.value == saslClass:
			a.SASLScheme = true
		}
	}
	slices.Sort(a.SASLSupers)
}

// checkSchemes refuses to require schemes that this server does not have. ZooKeeper does not
// start with them either.
func (l *loader) checkSchemes() {
	c := l.c
	if c.Access.RequireSASL {
		if !c.Access.SASLScheme {
			l.failKey(requireKey, "needs the scheme sasl, which is not switched on", "add a line "+providerKey)
		}
		return
	}
	if !c.Access.EnforceAuth {
		l.noticeIf(true, schemesKey, "has no effect without "+enforceKey+"=true")
		return
	}
	if len(c.Access.AuthSchemes) == 0 {
		l.failKey(enforceKey, "needs a scheme, and "+schemesKey+" names none", "add a line such as "+schemesKey+"=sasl")
	}
	for _, scheme := range c.Access.AuthSchemes {
		switch {
		case scheme == "digest" || scheme == "ip",
			scheme == schemeSASL && c.Access.SASLScheme,
			scheme == schemeX509 && c.TLS.ForClients():
		case scheme == schemeSASL:
			l.failKey(schemesKey, "names the scheme sasl, which is not switched on", "add a line "+providerKey)
		case scheme == schemeX509:
			l.failKey(schemesKey, "names the scheme x509, but no client can connect over TLS", "add secureClientPort and the keys ssl.*")
		default:
			l.failKey(schemesKey, fmt.Sprintf("names %q, which is no scheme of this server", clip(scheme)), "name some of digest, ip, sasl and x509, separated by commas")
		}
	}
}

// warnSASL warns if clients must log in by SASL, can log in, or have the scheme sasl in ACLs, but another setting
// that this needs is missing.
func (l *loader) warnSASL() {
	c := l.c
	section := c.SASL.HasClientSection()
	missing := fmt.Sprintf("but the JAAS file has no section %s", c.SASL.Section)
	if c.SASL.JAAS == nil {
		missing = "but -D" + jaasKey + " names no JAAS file"
	}
	required := c.Access.RequiredSchemes()
	switch {
	case !section && len(required) == 1 && required[0] == schemeSASL:
		name := requireKey
		if !c.Access.RequireSASL {
			name = schemesKey
		}
		l.warnRefusal(name, "requires a login by SASL, "+missing+": no client will be served")
	case !section && c.Access.SASLScheme:
		l.warnRefusal("authProvider", "switches the scheme sasl on, "+missing+": no client can log in")
	case section && !c.Access.SASLScheme:
		l.warnIf(true, jaasKey, "lets clients log in, but the scheme sasl is not switched on, so that their ids count in no ACL: add a line "+providerKey)
	}
}
