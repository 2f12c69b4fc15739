package config

import (
	"errors"
	"fmt"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/secure"
)

// loadTLS passes the keys ssl.x and ssl.quorum.x to package secure, and checks that each port
// with TLS has a certificate.
func (l *loader) loadTLS() {
	l.checkSecureClient()
	t := &l.c.TLS
	servers := "sslQuorum or portUnification"
	if !t.ForServers() {
		servers = "admin.forceHttps or admin.portUnification"
	}
	for _, f := range []struct {
		family secure.Family
		into   *secure.Settings
		used   bool
		by     string // the keys that need a certificate of this family
	}{
		{secure.Clients, &t.Clients, t.ForClients(), "secureClientPort or client.portUnification"},
		{secure.Servers, &t.Servers, t.ForServers() || l.c.Admin.TLS(), servers},
	} {
		values := map[string]secure.Value{}
		for name, v := range l.settings {
			if v.key.tls && familyOf(name) == f.family {
				values[name] = secure.Value{Text: v.value, From: v.file}
			}
		}
		settings, err := secure.Parse(f.family, values)
		if f.used {
			*f.into = settings
		}
		l.tlsErrors(err)
		if f.used {
			l.tlsNotices(settings.Notices)
		}
		location := string(f.family) + "keyStore.location"
		switch {
		case err == nil && f.used && settings.KeyStore.Location == "":
			l.failKey(location, "is not set, and "+f.by+" needs it", "name the file with this server's key and certificate")
		case err == nil && !f.used:
			l.noticeIf(true, location, "has no effect without "+f.by)
		}
	}
}

// tlsNotices passes on the notices of package secure. Each begins with the name of a key.
func (l *loader) tlsNotices(texts []string) {
	for _, text := range texts {
		name, rest, _ := strings.Cut(text, " ")
		if v, ok := l.settings[name]; ok {
			l.notice(v.file, v.line, name, rest)
		} else {
			l.notice(l.c.File, 0, name, rest)
		}
	}
}

// familyOf returns the family of a TLS key.
func familyOf(name string) secure.Family {
	if strings.HasPrefix(name, string(secure.Servers)) {
		return secure.Servers
	}
	return secure.Clients
}

// tlsErrors records the errors of package secure at the lines of their keys.
func (l *loader) tlsErrors(err error) {
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		return
	}
	for _, err := range all.Unwrap() {
		var bad *secure.SettingError
		if !errors.As(err, &bad) {
			continue
		}
		v := l.settings[bad.Key]
		e := l.fail(v.file, v.line, bad.Key, "cannot be used: "+bad.Why)
		e.Remedy = bad.Instead
		if v.key != nil && !v.key.secret {
			e.Value = bad.Value
		}
	}
}

// checkSecureClient determines the client address with TLS.
func (l *loader) checkSecureClient() {
	_, port := l.settings["secureClientPort"]
	_, address := l.settings["secureClientPortAddress"]
	t := &l.c.TLS
	switch {
	case address && !port:
		l.failKey("secureClientPortAddress", "is set but secureClientPort is not", "add a line secureClientPort=2281, or remove the address")
	case port && !address:
		t.Client.Host = ensemble.Wildcard
	case !port:
		t.Client = ensemble.HostPort{}
	}
	if c := l.c.Client; port && t.Client.Port != 0 && t.Client.Port == c.Port && (t.Client.IsWildcard() || c.IsWildcard() || strings.EqualFold(t.Client.Host, c.Host)) {
		l.failKey("secureClientPort", fmt.Sprintf("is %d, like clientPort", c.Port), "choose another port, or remove it and set client.portUnification=true to use one port for both")
	}
}

// warnTLS warns about settings with which TLS does not prove who a server or a client is.
func (l *loader) warnTLS() {
	c := l.c
	t := &c.TLS
	if t.ForClients() && t.Clients.ClientAuth == secure.None {
		if schemes := c.Access.RequiredSchemes(); len(schemes) == 1 && schemes[0] == schemeX509 {
			l.warnRefusal(clientAuthKey(secure.Clients), "is none, but "+schemesKey+" asks for the id in a certificate: no client will be served; use need or want")
		}
	}
	if c.Standalone() || !t.ForServers() || c.SASL.Quorum.ServerRequires {
		return
	}
	if auth := t.Servers.ClientAuth; auth != secure.Need {
		l.warnIf(true, clientAuthKey(secure.Servers), fmt.Sprintf("is %s: every program that reaches the quorum and election ports can act as a member, without a certificate", auth))
	}
	l.warnIf(!t.Servers.VerifyServerNames, string(secure.Servers)+"hostnameVerification", "is false: every server with a certificate that is trusted here can act as any member")
	l.warnIf(t.Quorum && t.QuorumUnified, "portUnification", "is true: every program that reaches the quorum and election ports can act as a member, without TLS; remove the key as soon as all servers have sslQuorum=true")
}

// clientAuthKey returns the key that says whether programs that connect must show a certificate:
// ssl.clientAuth or ssl.quorum.clientAuth.
func clientAuthKey(f secure.Family) string { return string(f) + "clientAuth" }
