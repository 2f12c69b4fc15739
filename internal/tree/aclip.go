package tree

import (
	"net/netip"
	"strconv"
	"strings"
)

// Ids of the scheme ip are parsed as ZooKeeper 3.9 parses them, in new entries and in
// those of a migrated directory: numbers may have a sign and leading zeros, and an IPv6
// address has no IPv4 part and no zone.

// matchesIP reports whether the first bits of the peer's address equal those of
// the entry. An address of one family never matches an entry of the other.
func matchesIP(peer, want string) bool {
	prefix, ok := parseIP(want)
	if !ok {
		return false
	}
	addr, err := netip.ParseAddr(peer)
	return err == nil && prefix.Contains(addr.Unmap().WithZone(""))
}

// parseIP parses the id of an ACL entry: an address, or an address, a slash and the
// number of leading bits to compare.
func parseIP(s string) (netip.Prefix, bool) {
	text, bits, found := strings.Cut(s, "/")
	parse := parseIPv4
	if strings.Contains(text, ":") {
		parse = parseIPv6
	}
	addr, ok := parse(text)
	if !ok {
		return netip.Prefix{}, false
	}
	n := int64(addr.BitLen())
	if found {
		var err error
		if n, err = strconv.ParseInt(bits, 10, 32); err != nil || n < 0 || n > int64(addr.BitLen()) {
			return netip.Prefix{}, false
		}
	}
	return netip.PrefixFrom(addr, int(n)), true
}

// parseIPv4 parses four decimal numbers from 0 to 255, separated by dots.
func parseIPv4(s string) (netip.Addr, bool) {
	var b [4]byte
	for i := range b {
		part, rest, more := strings.Cut(s, ".")
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || n < 0 || n > 255 || more != (i < len(b)-1) {
			return netip.Addr{}, false
		}
		b[i], s = byte(n), rest
	}
	return netip.AddrFrom4(b), true
}

// parseIPv6 parses eight hexadecimal groups separated by colons, or fewer with one :: in
// place of those that are zero.
func parseIPv6(s string) (netip.Addr, bool) {
	var b [16]byte
	head, tail, short := strings.Cut(s, "::")
	front, ok := parseGroups(head, b[:])
	if !short {
		return netip.AddrFrom16(b), ok && front == len(b)
	}
	var end [16]byte
	back, okTail := parseGroups(tail, end[:])
	if !ok || !okTail || front+back >= len(b) {
		return netip.Addr{}, false
	}
	copy(b[len(b)-back:], end[:back])
	return netip.AddrFrom16(b), true
}

// parseGroups parses hexadecimal groups of one to four characters into b and returns how
// many bytes they take. Empty text is not a group.
func parseGroups(s string, b []byte) (n int, ok bool) {
	for more := s != ""; more; n += 2 {
		var group string
		group, s, more = strings.Cut(s, ":")
		v, err := strconv.ParseInt(group, 16, 32)
		if err != nil || len(group) > 4 || n+2 > len(b) {
			return 0, false
		}
		b[n], b[n+1] = byte(v>>8), byte(v)
	}
	return n, true
}
