package secure

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// end is the other end of a connection.
type end struct {
	address netip.Addr // not valid if it is not known
	host    string     // the name that was dialled; empty if an address was dialled, or for an accepted connection
}

// resolver is what net.Resolver offers for names of addresses.
type resolver interface {
	LookupAddr(ctx context.Context, address string) ([]string, error)
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// namesMax bounds how many names of one address are tried.
const namesMax = 4

// checkName returns an error if a certificate is not for the other end of a connection. As in ZooKeeper,
// it first compares the address, then the name that was dialled. If no name is known and lookup is not
// nil, it compares the names to which the address resolves.
func checkName(ctx context.Context, c *x509.Certificate, e end, lookup resolver) error {
	var tried []string
	for _, host := range []string{e.addressText(), e.host} {
		if host == "" {
			continue
		}
		if matches(c, host) {
			return nil
		}
		tried = append(tried, host)
	}
	if e.host == "" && e.address.IsValid() && lookup != nil {
		names := namesOf(ctx, e.addressText(), lookup)
		for _, host := range names {
			if matches(c, host) {
				return nil
			}
		}
		tried = append(tried, names...)
	}
	if len(tried) == 0 {
		return errors.New("the address of the other end is not known")
	}
	return fmt.Errorf("its names (%s) are not those of the other end (%s)", strings.Join(hostsOf(c), ", "), strings.Join(tried, ", "))
}

func (e end) addressText() string {
	if !e.address.IsValid() {
		return ""
	}
	return e.address.Unmap().WithZone("").String()
}

// namesOf returns those names of an address that resolve to the address again. The owner of an address
// chooses the names to which it resolves, so a name that does not resolve back proves nothing.
func namesOf(ctx context.Context, address string, lookup resolver) []string {
	all, err := lookup.LookupAddr(ctx, address)
	if err != nil {
		return nil
	}
	var names []string
	for _, name := range all[:min(len(all), namesMax)] {
		name = strings.TrimSuffix(name, ".")
		back, err := lookup.LookupHost(ctx, name)
		if err == nil && slices.Contains(back, address) {
			names = append(names, name)
		}
	}
	return names
}

// matches reports whether a certificate is for a host, which is a name or an address. The rules are those
// of ZooKeeper's ZKHostnameVerifier: if the certificate has alternative names that are DNS names or
// addresses, only these count; otherwise its common name counts.
func matches(c *x509.Certificate, host string) bool {
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	isAddress := err == nil
	if len(c.DNSNames) == 0 && len(c.IPAddresses) == 0 {
		name := commonName(c)
		if isAddress {
			return name == host
		}
		return name != "" && matchPattern(host, name)
	}
	if !isAddress {
		return slices.ContainsFunc(c.DNSNames, func(name string) bool { return matchPattern(host, name) })
	}
	for _, ip := range c.IPAddresses {
		if other, ok := netip.AddrFromSlice(ip); ok && other.Unmap() == address.Unmap().WithZone("") {
			return true
		}
	}
	return false
}

// matchPattern reports whether a name matches a pattern of a certificate. The first asterisk of the
// pattern stands for any text without a dot.
func matchPattern(host, pattern string) bool {
	host, pattern = strings.ToLower(host), strings.ToLower(pattern)
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return host == pattern
	}
	rest, ok := strings.CutPrefix(host, before)
	if !ok {
		return false
	}
	rest, ok = strings.CutSuffix(rest, after)
	return ok && !strings.Contains(rest, ".")
}

// commonName returns the common name of the last part of the subject that has one.
func commonName(c *x509.Certificate) string {
	var parts []attributeSET
	if unmarshal(c.RawSubject, &parts) != nil {
		return ""
	}
	for _, part := range slices.Backward(parts) {
		for _, a := range part {
			if keywords[a.ID.String()] == "CN" && a.isText() {
				return javaText(a.Value.Bytes)
			}
		}
	}
	return ""
}

// hostsOf returns the names and addresses for which a certificate is valid, for messages.
func hostsOf(c *x509.Certificate) []string {
	hosts := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	if name := commonName(c); len(hosts) == 0 && name != "" {
		hosts = append(hosts, name)
	}
	if len(hosts) == 0 {
		return []string{"none"}
	}
	if len(hosts) > namesMax {
		hosts = append(hosts[:namesMax], fmt.Sprintf("and %d more", len(hosts)-namesMax))
	}
	return hosts
}
