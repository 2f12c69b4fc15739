package ensemble

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
)

// Wildcard is the host that means all addresses of the machine, as ZooKeeper writes it.
// Listening on it includes IPv6 if the machine has it.
const Wildcard = "0.0.0.0"

// portMax is the largest TCP port.
const portMax = 65535

// hostMax is the longest host name: DNS allows 253 bytes, and an IPv6 address with a zone
// is shorter.
const hostMax = 255

// HostPort is an address that clients connect to. The zero value means none.
type HostPort struct {
	Host string // name or literal address, IPv6 without brackets
	Port int    // 0 asks the system for a free port
}

// IsZero reports whether there is no address.
func (a HostPort) IsZero() bool { return a == HostPort{} }

// IsWildcard reports whether the address stands for all addresses of the machine.
func (a HostPort) IsWildcard() bool {
	ip, err := netip.ParseAddr(a.Host)
	return err == nil && ip.IsUnspecified()
}

// IsLoopback reports whether only this machine can reach the address. The only name that
// it recognises is localhost.
func (a HostPort) IsLoopback() bool {
	ip, err := netip.ParseAddr(a.Host)
	return strings.EqualFold(a.Host, "localhost") || err == nil && ip.IsLoopback()
}

// String returns host:port with an IPv6 host in brackets, as net.Listen takes
// it, or nothing for the zero value.
func (a HostPort) String() string {
	if a.IsZero() {
		return ""
	}
	return bracketed(a.Host) + ":" + strconv.Itoa(a.Port)
}

// bracketed puts an IPv6 literal into brackets.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// canonicalHost returns the host as ZooKeeper prints it: an IPv6 literal with all its
// eight numbers, an IPv4-mapped IPv6 address as IPv4, and everything else unchanged.
func canonicalHost(host string) string {
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Is4() {
		return host
	}
	if ip.Is4In6() {
		return ip.Unmap().String()
	}
	var b strings.Builder
	for i, raw := 0, ip.As16(); i < len(raw); i += 2 {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(strconv.FormatUint(uint64(raw[i])<<8|uint64(raw[i+1]), 16))
	}
	if zone := ip.Zone(); zone != "" {
		b.WriteString("%" + zone)
	}
	return b.String()
}

// parseClient parses the part after the semicolon of a server line, a port or host:port.
func parseClient(text string) (HostPort, error) {
	fields, err := splitColons(text)
	if err != nil {
		return HostPort{}, err
	}
	addr := HostPort{Host: Wildcard}
	switch len(fields) {
	case 1:
	case 2:
		addr.Host = fields[0]
		if err := checkHost(addr.Host); err != nil {
			return HostPort{}, err
		}
	default:
		return HostPort{}, fmt.Errorf("client address %q is not port or host:port; an IPv6 host stands in brackets", text)
	}
	addr.Port, err = parsePort("client port", fields[len(fields)-1], 0)
	return addr, err
}

// splitColons splits at colons. A first field in brackets keeps its colons and loses the
// brackets. Empty fields at the end are dropped, as ZooKeeper does.
func splitColons(text string) ([]string, error) {
	var host string
	bracket := strings.HasPrefix(text, "[")
	if bracket {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return nil, fmt.Errorf("%q has no closing bracket", text)
		}
		rest := text[end+1:]
		if rest != "" && rest[0] != ':' {
			return nil, fmt.Errorf("in %q a colon must follow the bracket", text)
		}
		host, text = text[1:end], strings.TrimPrefix(rest, ":")
	}
	fields := strings.Split(text, ":")
	for len(fields) > 0 && fields[len(fields)-1] == "" {
		fields = fields[:len(fields)-1]
	}
	if bracket {
		fields = append([]string{host}, fields...)
	}
	if len(fields) == 0 {
		return nil, errors.New("empty address")
	}
	return fields, nil
}

// checkHost refuses what cannot be a host name and would break the canonical text.
func checkHost(host string) error {
	if host == "" {
		return errors.New("a host is missing")
	}
	if len(host) > hostMax {
		return fmt.Errorf("host of %d bytes is longer than %d", len(host), hostMax)
	}
	for _, r := range host {
		if r <= ' ' || unicode.IsControl(r) || strings.ContainsRune(`|;=[]\/"`, r) {
			return fmt.Errorf("host %q contains %q", host, r)
		}
	}
	return nil
}

// parsePort parses a decimal port of at least lowest.
func parsePort(what, text string, lowest int) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < int64(lowest) || n > portMax {
		return 0, fmt.Errorf("%s %q is not a number from %d to %d", what, text, lowest, portMax)
	}
	return int(n), nil
}
