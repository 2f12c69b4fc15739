package secure

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// protocols are the versions of TLS by their names in Java.
var protocols = map[string]uint16{
	"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13,
}

const useProtocols = "use TLSv1.2, TLSv1.3 or both"

// versions sets the lowest and highest version of TLS. As in Java, enabledProtocols decides if it is set.
// Otherwise the protocol TLSv1.2 means only that version, and TLSv1.3 means TLSv1.2 too.
func (p *parser) versions(s *Settings) {
	s.MinVersion, s.MaxVersion = tls.VersionTLS12, tls.VersionTLS13
	list := p.words("enabledProtocols")
	protocol, set := p.text("protocol")
	if protocol = strings.TrimSpace(protocol); set && protocol != "" {
		switch v, ok := protocols[protocol]; {
		case protocol == "TLS" || protocol == "SSL": // Java's names for every version that it has
		case !ok:
			p.refuse("protocol", protocol, "there is no such version of TLS here", "use TLSv1.3 or TLSv1.2")
		case v < tls.VersionTLS13:
			s.MinVersion, s.MaxVersion = v, v
		}
	}
	if len(list) == 0 {
		p.oldVersion(s, "protocol")
		return
	}
	var versions []uint16
	for _, name := range list {
		v, ok := protocols[name]
		if ok {
			versions = append(versions, v)
		} else if name != "SSLv2Hello" { // SSLv2Hello is not a version: it says how Java wraps its first message
			p.refuse("enabledProtocols", name, "there is no such version of TLS here", useProtocols)
		}
	}
	if len(versions) == 0 {
		return
	}
	s.MinVersion, s.MaxVersion = slices.Min(versions), slices.Max(versions)
	if int(s.MaxVersion-s.MinVersion)+1 != len(versions) {
		p.refuse("enabledProtocols", strings.Join(list, ","), "the list leaves out a version between others", useProtocols)
	}
	p.oldVersion(s, "enabledProtocols")
}

func (p *parser) oldVersion(s *Settings, key string) {
	if s.MinVersion < tls.VersionTLS12 {
		p.notice("%s%s allows %s, which is not safe any more: %s", p.family, key, tls.VersionName(s.MinVersion), useProtocols)
	}
}

// ciphers sets the cipher suites. Go always offers all suites of TLS 1.3 together, so a list can only
// exclude TLS 1.3 as a whole, or everything below it.
func (p *parser) ciphers(s *Settings) {
	list := p.words("ciphersuites")
	if len(list) == 0 {
		return
	}
	byName, insecure := suites()
	var of13, bad []string
	for _, name := range list {
		// Java's names of the oldest suites begin with SSL_.
		c := byName[name]
		if rest, old := strings.CutPrefix(name, "SSL_"); c == nil && old {
			c = byName["TLS_"+rest]
		}
		switch {
		case name == "TLS_EMPTY_RENEGOTIATION_INFO_SCSV": // not a suite: with this name Java offers secure renegotiation
		case c == nil:
			p.refuse("ciphersuites", name, "there is no such cipher suite here", instead(name, byName))
		case slices.Equal(c.SupportedVersions, []uint16{tls.VersionTLS13}):
			of13 = append(of13, name)
		default:
			s.CipherSuites = append(s.CipherSuites, c.ID)
			if insecure[c.ID] {
				bad = append(bad, name)
			}
		}
	}
	if len(bad) > 0 {
		p.notice("%sciphersuites has suites that are not safe any more: %s", p.family, strings.Join(bad, ", "))
	}
	p.versionsOf(s, list, of13)
}

// suites returns the cipher suites of crypto/tls by their names, and which of them are not safe.
func suites() (byName map[string]*tls.CipherSuite, insecure map[uint16]bool) {
	byName, insecure = map[string]*tls.CipherSuite{}, map[uint16]bool{}
	for _, c := range tls.CipherSuites() {
		byName[c.Name] = c
	}
	for _, c := range tls.InsecureCipherSuites() {
		byName[c.Name], insecure[c.ID] = c, true
	}
	return byName, insecure
}

// versionsOf limits the versions to those that the list of suites allows. of13 holds the suites of TLS 1.3 in the list.
func (p *parser) versionsOf(s *Settings, list, of13 []string) {
	switch {
	case len(p.errs) > 0:
	case len(of13) == 0 && len(s.CipherSuites) == 0:
		p.refuse("ciphersuites", strings.Join(list, ","), "there is no cipher suite in the list", "remove the key, or name suites")
	case len(of13) == 0 && s.MinVersion == tls.VersionTLS13:
		p.refuse("ciphersuites", strings.Join(list, ","), "none of these suites is one of TLSv1.3, the only version enabled",
			"add TLS_AES_256_GCM_SHA384, or enable TLSv1.2")
	case len(of13) == 0:
		s.MaxVersion = min(s.MaxVersion, tls.VersionTLS12)
	case len(s.CipherSuites) == 0 && s.MaxVersion < tls.VersionTLS13:
		p.refuse("ciphersuites", strings.Join(list, ","), "all of these suites are of TLSv1.3, which is not enabled",
			"enable TLSv1.3, or add TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
	default:
		if len(s.CipherSuites) == 0 {
			s.MinVersion = tls.VersionTLS13
		}
		if len(of13) < 3 {
			p.notice("%sciphersuites: Go does not choose among the suites of TLSv1.3: besides %s it uses the others too", p.family, strings.Join(of13, ", "))
		}
	}
}

// instead returns which suite to use instead of a suite that Go does not have.
func instead(name string, known map[string]*tls.CipherSuite) string {
	for _, change := range []func(string) string{
		func(s string) string { return strings.Replace(s, "_DHE_RSA_", "_ECDHE_RSA_", 1) },
		func(s string) string { return strings.Replace(s, "AES_256_CBC_SHA384", "AES_256_GCM_SHA384", 1) },
		func(s string) string { return strings.Replace(s, "AES_256_CBC_SHA256", "AES_256_GCM_SHA384", 1) },
	} {
		name = change(name)
		if c := known[name]; c != nil && !c.Insecure {
			return "use " + name
		}
	}
	return fmt.Sprintf("use %s for RSA keys, or %s for EC keys",
		tls.CipherSuiteName(tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384), tls.CipherSuiteName(tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384))
}
