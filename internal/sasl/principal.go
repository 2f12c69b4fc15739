package sasl

import (
	"fmt"
	"slices"
	"strings"
)

// Principal is the name of a user or a service in Kerberos, service/host@realm. A user of
// DIGEST-MD5 is a principal with a Service only.
type Principal struct {
	Service string // the first component; of a person, the person's name
	Host    string // the second component; may be empty
	Realm   string // may be empty
}

// ParsePrincipal reads name or name@realm or service/host@realm. As in ZooKeeper, a text
// without @ is one name, even with a slash in it. A principal of three components is an
// error, and so is one with an empty component, because it would look like another one once
// a part of it is removed.
func ParsePrincipal(s string) (Principal, error) {
	name, realm, ok := strings.Cut(s, "@")
	if !ok {
		if s == "" {
			return Principal{}, fmt.Errorf("the name of the client is empty")
		}
		return Principal{Service: s}, nil
	}
	service, host, hasHost := strings.Cut(name, "/")
	if service == "" || hasHost && host == "" || realm == "" || strings.ContainsAny(host, "/") || strings.ContainsAny(realm, "/@") {
		return Principal{}, fmt.Errorf("%s is not a Kerberos principal of the form name@REALM or service/host@REALM", quoteShort(s))
	}
	return Principal{service, host, realm}, nil
}

// String returns the principal in the form that ParsePrincipal reads.
func (p Principal) String() string {
	s := p.Service
	if p.Host != "" {
		s += "/" + p.Host
	}
	if p.Realm != "" {
		s += "@" + p.Realm
	}
	return s
}

// hostPattern in the name of a service stands for the host of the server that is dialled.
const hostPattern = "_HOST"

// ServicePrincipal returns the principal of the server at host, in lower case, if the host
// of the configured principal is _HOST. Otherwise it returns the configured text. As in
// ZooKeeper, _HOST is replaced only where it ends the text.
func ServicePrincipal(configured, host string) string {
	service, pattern, ok := strings.Cut(configured, "/")
	if !ok || pattern != hostPattern {
		return configured
	}
	return service + "/" + strings.ToLower(host)
}

// Naming says which id a client of the client port gets.
type Naming struct {
	Rules        Rules  // security.auth_to_local; nil means DEFAULT, and empty that no rule applies
	DefaultRealm string // the realm of the rule DEFAULT; krb5.conf names it
	RemoveHost   bool   // kerberos.removeHostFromPrincipal
	RemoveRealm  bool   // kerberos.removeRealmFromPrincipal
}

// Authorize returns the id of a client that has proved to be authenticationID: its name as
// the rules shorten it, with its host and its realm unless they are to be removed. If no
// rule applies, the id is the whole principal.
//
// The id does not depend on authorizationID. ZooKeeper ignores it too, except where no rule
// applies: there a client of ZooKeeper gets whatever id it asks for.
func (n *Naming) Authorize(authenticationID, _ string) (string, error) {
	p, err := ParsePrincipal(authenticationID)
	if err != nil {
		return "", err
	}
	if p.Realm == "" {
		return p.Service, nil
	}
	rules := n.Rules
	if rules == nil {
		rules = Rules{{isDefault: true}}
	}
	short, ok := rules.apply(p, n.DefaultRealm)
	if !ok {
		return p.String(), nil
	}
	id := Principal{Service: short}
	if !n.RemoveHost {
		id.Host = p.Host
	}
	if !n.RemoveRealm {
		id.Realm = p.Realm
	}
	return id.String(), nil
}

// AuthorizePeer returns the rule between servers: the peer acts as itself. If the mechanism
// is GSSAPI, hosts are the hosts of the ensemble's members, and the principal must be that of
// a service on one of them. For DIGEST-MD5 hosts is nil.
func AuthorizePeer(hosts []string) Authorize {
	return func(authenticationID, authorizationID string) (string, error) {
		if authenticationID != authorizationID {
			return "", fmt.Errorf("%s wants to act as %s; a server may act only as itself", quoteShort(authenticationID), quoteShort(authorizationID))
		}
		if hosts == nil {
			return authenticationID, nil
		}
		p, err := ParsePrincipal(authenticationID)
		if err != nil {
			return "", err
		}
		if p.Host == "" || !slices.Contains(hosts, p.Host) {
			return "", fmt.Errorf("%s is not on a host of the ensemble (%s)", quoteShort(authenticationID), strings.Join(hosts, ", "))
		}
		return authenticationID, nil
	}
}
