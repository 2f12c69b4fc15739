package peerwire

import (
	"fmt"
	"strconv"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// InitialVersion says which form an InitialMessage has.
type InitialVersion int64

// The forms. ZooKeeper servers accept all of them, and send InitialOne unless
// they are configured for several addresses.
const (
	InitialBare InitialVersion = 0      // the id alone, before 3.5
	InitialOne  InitialVersion = -65536 // one address
	InitialMany InitialVersion = -65535 // one or more addresses, since 3.6
)

// Limits of an InitialMessage.
const (
	// InitialAddressMax is the longest address text in bytes.
	InitialAddressMax = 2048
	// InitialMax is the longest message in bytes.
	InitialMax = 8 + 8 + 4 + InitialAddressMax
)

// InitialMessage is the first message of the server that opens an election connection.
// It has no frame: read it with [wire.ReadRecord]. Write it with one call, because
// ZooKeeper reads it with one call.
type InitialMessage struct {
	Version InitialVersion
	Server  ensemble.ServerID // the dialler
	// Addresses are where the sender takes part in elections: host:port, IPv6 hosts in
	// brackets; none in an InitialBare. Wildcard hosts are well-formed but cannot be
	// dialled.
	Addresses []string
}

// Code encodes or decodes the fields.
func (m *InitialMessage) Code(c *wire.Coder) {
	first := int64(m.Version)
	if m.Version == InitialBare {
		first = int64(m.Server)
	}
	c.Int64(&first)
	if first >= 0 { // a version is negative, an id is not
		m.Version, m.Server, m.Addresses = InitialBare, ensemble.ServerID(first), nil
		return
	}
	m.Version = InitialVersion(first)
	if m.Version != InitialOne && m.Version != InitialMany {
		c.Fail(8, fmt.Errorf("version %d of an initial message: %w", first, wire.ErrValue))
		return
	}
	c.Int64((*int64)(&m.Server))
	m.codeAddresses(c)
}

// addressSeparator stands between the addresses of an InitialMany.
const addressSeparator = "|"

// codeAddresses encodes or decodes the text that holds all addresses.
func (m *InitialMessage) codeAddresses(c *wire.Coder) {
	text := strings.Join(m.Addresses, addressSeparator)
	c.String(&text)
	switch {
	case c.Err() != nil:
	case len(text) > InitialAddressMax:
		c.Fail(len(text), wire.ErrLength)
	case c.Decoding() && m.Version == InitialMany:
		m.Addresses = strings.Split(text, addressSeparator)
	case c.Decoding():
		m.Addresses = []string{text}
	}
	for _, address := range m.Addresses {
		if c.Decoding() && !hostPort(address) {
			c.Fail(0, fmt.Errorf("address %q is not host:port: %w", address, wire.ErrValue))
		}
	}
}

// hostPort reports whether s has the form of an election address.
func hostPort(s string) bool {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || strings.Contains(s, addressSeparator) {
		return false
	}
	host, port := s[:i], s[i+1:]
	if strings.HasPrefix(host, "[") != strings.HasSuffix(host, "]") {
		return false
	}
	if !strings.HasPrefix(host, "[") && strings.Contains(host, ":") {
		return false
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}
