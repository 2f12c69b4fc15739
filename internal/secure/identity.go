package secure

import (
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// IdentityRule says which text of a client's certificate is its id in the scheme x509. The
// zero value takes the subject, as ZooKeeper does. The keys ssl.x509.clientCertId* are
// those of LinkedIn's servers; no release of Apache ZooKeeper knows them.
type IdentityRule struct {
	bySAN   bool
	kind    int // kind of the alternative name: 1 e-mail, 2 DNS, 6 URI, 7 address
	match   *regexp.Regexp
	extract *regexp.Regexp
	group   int
}

// sanKinds are the kinds of alternative names whose value is a text.
var sanKinds = map[int]bool{1: true, 2: true, 6: true, 7: true}

// identity reads the keys of the rule.
func (p *parser) identity() IdentityRule {
	const prefix = "x509.clientCertId"
	var r IdentityRule
	kind, _ := p.text(prefix + "Type")
	switch strings.ToUpper(kind) {
	case "", "SDN":
		return r
	case "SAN":
		r.bySAN = true
	default:
		p.refuse(prefix+"Type", kind, "not a choice", "use SDN (the subject) or SAN (an alternative name)")
		return r
	}
	text, _ := p.text(prefix + "SanMatchType")
	n, err := strconv.Atoi(text)
	if r.kind = n; err != nil || !sanKinds[n] {
		p.refuse(prefix+"SanMatchType", text, "not a kind of alternative name that has a text", "use 1 (e-mail), 2 (DNS), 6 (URI) or 7 (address)")
	}
	r.match = p.expression(prefix + "SanMatchRegex")
	r.extract = p.expression(prefix + "SanExtractRegex")
	if text, set := p.text(prefix + "SanExtractMatcherGroupIndex"); set {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || r.extract != nil && n > r.extract.NumSubexp() {
			p.refuse(prefix+"SanExtractMatcherGroupIndex", text, "there is no such group in "+string(p.family)+prefix+"SanExtractRegex", "use 0 for the whole match")
		}
		r.group = n
	}
	return r
}

// expression returns a regular expression. If the key is not set, the expression matches everything.
func (p *parser) expression(name string) *regexp.Regexp {
	text, set := p.text(name)
	if !set {
		text = ".*"
	}
	re, err := regexp.Compile(text)
	if err != nil {
		p.refuse(name, text, err.Error(), "use an expression of Go's syntax: https://pkg.go.dev/regexp/syntax")
	}
	return re
}

// Of returns the id of a client from its certificate. With a rule for alternative names, exactly one of
// them must match. Otherwise the id is the subject, as on LinkedIn's servers, and the error says why.
func (r IdentityRule) Of(c *x509.Certificate) (string, error) {
	if !r.bySAN {
		return NameOf(c), nil
	}
	var found []string
	for _, n := range alternativeNames(c) {
		if n.kind == r.kind && r.match.MatchString(n.text) {
			found = append(found, n.text)
		}
	}
	if len(found) != 1 {
		return NameOf(c), fmt.Errorf("%d alternative names of kind %d match %s instead of exactly one: the subject is used as the id", len(found), r.kind, r.match)
	}
	groups := r.extract.FindStringSubmatch(found[0])
	if groups == nil {
		return NameOf(c), fmt.Errorf("the alternative name %q does not match %s: the subject is used as the id", found[0], r.extract)
	}
	return groups[r.group], nil
}

// alternativeName is a subject alternative name whose value is a text. Its kind is numbered as in RFC
// 5280.
type alternativeName struct {
	kind int
	text string
}

// Kinds of alternative names.
const (
	sanEmail   = 1
	sanDNS     = 2
	sanURI     = 6
	sanAddress = 7
)

// alternativeNames returns the alternative names that are texts, in their order. crypto/x509 has them
// too, but it does not keep the original text of URIs.
func alternativeNames(c *x509.Certificate) []alternativeName {
	var names []alternativeName
	for _, e := range c.Extensions {
		if !e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			continue
		}
		var all []asn1.RawValue
		if unmarshal(e.Value, &all) != nil {
			return nil
		}
		for _, v := range all {
			switch v.Tag {
			case sanEmail, sanDNS, sanURI:
				names = append(names, alternativeName{v.Tag, string(v.Bytes)})
			}
		}
	}
	for _, ip := range c.IPAddresses {
		names = append(names, alternativeName{sanAddress, ip.String()})
	}
	return names
}
