package ensemble

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ServerID is a server's number in its ensemble, its sid.
type ServerID int64

// Role says whether a server votes.
type Role uint8

// The roles of a server line.
const (
	Participant Role = iota // votes, may lead
	Observer                // follows without a vote
)

// String returns the name of the role as a server line spells it.
func (r Role) String() string {
	if r == Observer {
		return "observer"
	}
	return "participant"
}

// ParseRole parses participant or observer, in upper or lower case.
func ParseRole(text string) (Role, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "participant":
		return Participant, nil
	case "observer":
		return Observer, nil
	}
	return 0, fmt.Errorf("role %q is neither participant nor observer", text)
}

// Address is one way to reach a server from other servers.
type Address struct {
	Host         string // name or literal address, IPv6 without brackets
	QuorumPort   int    // where it listens while it leads
	ElectionPort int    // where it listens for votes
}

// Quorum returns host:port for learners.
func (a Address) Quorum() string { return HostPort{a.Host, a.QuorumPort}.String() }

// Election returns host:port for votes.
func (a Address) Election() string { return HostPort{a.Host, a.ElectionPort}.String() }

// String returns host:quorumPort:electionPort in canonical form.
func (a Address) String() string {
	return bracketed(canonicalHost(a.Host)) + ":" + strconv.Itoa(a.QuorumPort) + ":" + strconv.Itoa(a.ElectionPort)
}

// Server is one member of an ensemble: what its server line says.
type Server struct {
	ID        ServerID
	Addresses []Address // at least one; owned by the Server
	Role      Role
	Client    HostPort // where clients connect; zero if the line does not say
}

// addressesMax is how many addresses a server may have.
const addressesMax = 16

// serverForm is the form of a server line, for error texts.
const serverForm = "host:quorumPort:electionPort[:role][|further addresses][;[clientHost:]clientPort]"

// ParseServer parses the value of the line server.<id>. The default role is participant,
// and the default client host is [Wildcard].
func ParseServer(id ServerID, value string) (Server, error) {
	s := Server{ID: id}
	between, client, _ := strings.Cut(value, ";")
	if strings.Contains(strings.TrimRight(client, ";"), ";") {
		return Server{}, fmt.Errorf("more than one semicolon; the form is %s", serverForm)
	}
	if client = strings.TrimRight(client, ";"); client != "" {
		var err error
		if s.Client, err = parseClient(client); err != nil {
			return Server{}, err
		}
	}
	parts := strings.Split(strings.TrimRight(between, "|"), "|")
	if len(parts) > addressesMax {
		return Server{}, fmt.Errorf("%d addresses; at most %d are allowed", len(parts), addressesMax)
	}
	if err := s.parseAddresses(parts); err != nil {
		return Server{}, err
	}
	slices.SortStableFunc(s.Addresses, func(a, b Address) int { return strings.Compare(canonicalHost(a.Host), canonicalHost(b.Host)) })
	return s, nil
}

// parseAddresses fills Addresses and Role. A role may be given with each
// address or with some of them; all that are given must agree.
func (s *Server) parseAddresses(parts []string) error {
	roleGiven := false
	for _, part := range parts {
		addr, role, err := parseAddress(part)
		if err != nil {
			return err
		}
		s.Addresses = append(s.Addresses, addr)
		if role == "" {
			continue
		}
		r, err := ParseRole(role)
		if err != nil {
			return err
		}
		if roleGiven && r != s.Role {
			return errors.New("the addresses of the server name different roles")
		}
		s.Role, roleGiven = r, true
	}
	return nil
}

// parseAddress parses host:port:port[:role]; role is empty if it is not given.
func parseAddress(text string) (Address, string, error) {
	fields, err := splitColons(text)
	if err != nil {
		return Address{}, "", err
	}
	if len(fields) < 3 || len(fields) > 4 {
		return Address{}, "", fmt.Errorf("%q does not have the form %s; an IPv6 host stands in brackets", text, serverForm)
	}
	a := Address{Host: fields[0]}
	if err := checkHost(a.Host); err != nil {
		return Address{}, "", err
	}
	if a.QuorumPort, err = parsePort("quorum port", fields[1], 1); err != nil {
		return Address{}, "", err
	}
	if a.ElectionPort, err = parsePort("election port", fields[2], 1); err != nil {
		return Address{}, "", err
	}
	if a.QuorumPort == a.ElectionPort {
		return Address{}, "", fmt.Errorf("quorum and election port are both %d; they must differ", a.QuorumPort)
	}
	if len(fields) == 4 {
		return a, fields[3], nil
	}
	return a, "", nil
}

// String returns the value of the server line in canonical form: addresses in
// order of their hosts, the role spelled out once, then the client address, and
// IPv6 literals with all their eight numbers.
func (s Server) String() string {
	var b strings.Builder
	for i, a := range s.Addresses {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(a.String())
	}
	b.WriteByte(':')
	b.WriteString(s.Role.String())
	if !s.Client.IsZero() {
		b.WriteByte(';')
		b.WriteString(HostPort{canonicalHost(s.Client.Host), s.Client.Port}.String())
	}
	return b.String()
}

// Line returns the whole canonical line, server.<id>=<value>.
func (s Server) Line() string {
	return "server." + strconv.FormatInt(int64(s.ID), 10) + "=" + s.String()
}
