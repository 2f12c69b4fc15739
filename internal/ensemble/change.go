package ensemble

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Change is what a reconfiguration asks for: either Whole, or Joining and Leaving.
type Change struct {
	// Joining holds server lines and Leaving server ids, separated by commas. A line of a
	// server that is a member already replaces its line.
	Joining, Leaving string
	// Whole is the text of the new membership, with commas or line feeds between its lines.
	// It is nil for an incremental change.
	Whole *string
	// VotersMin is how many voters there must be: 2, or 1 if a server that is the only
	// voter does not run standalone.
	VotersMin int
}

// Apply returns the membership after a change, at a version. The error names the rule that
// the change breaks. The rules are those of ZooKeeper, and two more: no two servers share
// an address, also on loopback and if the whole membership is given, and no server uses a
// port twice. A server could not start with such a membership.
func (m *Membership) Apply(c Change, version int64) (*Membership, error) {
	next, err := m.changed(&c)
	if err != nil {
		return nil, err
	}
	if n := len(next.voters); n < c.VotersMin {
		return nil, fmt.Errorf("the new membership has %d voters, and needs at least %d", n, c.VotersMin)
	}
	if err := next.checkAddresses(); err != nil {
		return nil, err
	}
	return next.WithVersion(version), nil
}

func (m *Membership) changed(c *Change) (*Membership, error) {
	switch {
	case c.Whole != nil:
		return c.parseWhole()
	case m.Hierarchical():
		return nil, errors.New("the present membership has groups, so only a whole new membership can replace it")
	}
	leaving, joining, err := c.parse()
	if err != nil {
		return nil, err
	}
	servers := slices.Clone(m.servers)
	for _, id := range leaving {
		servers = without(servers, id)
	}
	for _, s := range joining {
		servers = append(without(servers, s.ID), s)
	}
	return New(Definition{Servers: servers})
}

// Check returns an error if a change can be applied to no membership: an id is not a
// number, or a line cannot be parsed.
func (c *Change) Check() error {
	if c.Whole != nil {
		_, err := c.parseWhole()
		return err
	}
	_, _, err := c.parse()
	return err
}

func (c *Change) parseWhole() (*Membership, error) {
	return Parse(strings.ReplaceAll(*c.Whole, ",", "\n"))
}

func (c *Change) parse() (leaving []ServerID, joining []Server, err error) {
	for _, text := range listed(c.Leaving) {
		id, err := parseID("leaving server", text)
		if err != nil {
			return nil, nil, err
		}
		leaving = append(leaving, ServerID(id))
	}
	for _, text := range listed(c.Joining) {
		s, err := parseJoining(text)
		if err != nil {
			return nil, nil, err
		}
		joining = append(joining, s)
	}
	return leaving, joining, nil
}

// listed returns the parts of a list that are not blank.
func listed(text string) (all []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

func without(servers []Server, id ServerID) []Server {
	return slices.DeleteFunc(servers, func(s Server) bool { return s.ID == id })
}

// parseJoining parses server.N=value. Like ZooKeeper, it takes what follows the last dot of
// the key as the id, and needs a client address.
func parseJoining(text string) (Server, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return Server{}, fmt.Errorf("joining server %q does not have the form server.N=%s", text, serverForm)
	}
	id, err := parseID("joining server", strings.TrimSpace(key[strings.LastIndexByte(key, '.')+1:]))
	if err != nil {
		return Server{}, err
	}
	if id == observerWithoutID {
		return Server{}, fmt.Errorf("joining server %d has the id of observers without an id", id)
	}
	s, err := ParseServer(ServerID(id), strings.TrimSpace(value))
	switch {
	case err != nil:
		return Server{}, fmt.Errorf("joining server %d: %w", id, err)
	case s.Client.IsZero():
		return Server{}, fmt.Errorf("joining server %d has no client port; the form is %s", id, serverForm)
	}
	return s, nil
}

// checkAddresses refuses a membership in which two servers share an address, or a server
// uses a port both for clients and for servers.
func (m *Membership) checkAddresses() error {
	for i, s := range m.servers {
		for _, o := range m.servers[i+1:] {
			if a := sharedAddress(s, o); a != "" {
				return fmt.Errorf("server %d and server %d have the same address %s", s.ID, o.ID, a)
			}
		}
		for _, a := range s.Addresses {
			if p := s.Client.Port; p != 0 && s.onSameHost(a) && (p == a.QuorumPort || p == a.ElectionPort) {
				return fmt.Errorf("server %d uses port %d both for clients and for servers", s.ID, p)
			}
		}
	}
	return nil
}

// onSameHost reports whether the client address and a may listen on the same address.
func (s *Server) onSameHost(a Address) bool {
	return s.Client.IsWildcard() || HostPort{Host: a.Host}.IsWildcard() || strings.EqualFold(s.Client.Host, a.Host)
}

// FileText returns the content of a dynamic configuration file: the lines, sorted as text,
// without a line feed at the end. The version is a line only if withVersion is set; in all
// files but that of a proposed membership, it is a part of the name.
func (m *Membership) FileText(withVersion bool) string {
	lines := m.lines()
	if withVersion {
		lines = append(lines, "version="+m.hexVersion())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// FileName returns the name of the dynamic configuration file of this membership, which
// belongs to a static file.
func (m *Membership) FileName(static string) string { return static + ".dynamic." + m.hexVersion() }

// NextFileName returns the name of the file of a proposed membership.
func NextFileName(static string) string { return static + ".dynamic.next" }

func (m *Membership) hexVersion() string { return strconv.FormatUint(uint64(m.version), 16) }

// FileVersion returns the version in the name of a dynamic file: the hexadecimal number
// after the last dot, or 0 if there is none.
func FileVersion(file string) int64 {
	v, err := strconv.ParseInt(file[strings.LastIndexByte(file, '.')+1:], 16, 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}

// StaticText returns the content of a static configuration file that names a dynamic file.
// static is what the file contains now. The lines that the dynamic file replaces are left
// out: servers, groups and weights, peerType and, if client is set, the client address.
// Comments are lost, as in ZooKeeper. The last line names the dynamic file.
func StaticText(static, dynamic string, client bool) (string, error) {
	props, err := ReadProperties(Latin1([]byte(static)))
	if err != nil {
		return "", err
	}
	last := make(map[string]int, len(props))
	for i, p := range props {
		last[p.Key] = i
	}
	var b strings.Builder
	for i, p := range props {
		if last[p.Key] != i || replaced(p.Key, client) {
			continue
		}
		b.WriteString(escapeKey(p.Key) + "=" + escapeText(p.Value) + "\n")
	}
	b.WriteString("dynamicConfigFile=" + escapeText(dynamic) + "\n")
	return b.String(), nil
}

// replaced reports whether a dynamic file replaces a line of the static file.
func replaced(key string, client bool) bool {
	return IsMemberKey(key) || strings.HasPrefix(key, "dynamicConfigFile") || strings.HasPrefix(key, "peerType") ||
		client && strings.HasPrefix(key, "clientPort")
}

// escapeText writes a value so that ReadProperties returns it unchanged, in ASCII.
func escapeText(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// escapeKey writes a key so that ReadProperties returns it unchanged.
func escapeKey(key string) string {
	key = escapeText(key)
	for _, c := range []string{"=", ":", " ", "#", "!"} {
		key = strings.ReplaceAll(key, c, `\`+c)
	}
	return key
}
