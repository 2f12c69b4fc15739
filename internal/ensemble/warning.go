package ensemble

import "fmt"

// Rule names what a Warning is about.
type Rule uint8

// The rules that a valid membership should follow.
const (
	OneVoter      Rule = iota + 1 // a single participant
	TwoVoters                     // no failure is tolerated
	EvenVoters                    // one voter more than needed
	SharedAddress                 // two servers listen on one address
	LargeID                       // an id above the documented range
)

// Warning describes a valid membership that an operator should check.
type Warning struct {
	Rule Rule
	Text string
}

// idDocumented is the largest id that the documentation allows. The low byte
// of an id begins the session ids that its server gives out.
const idDocumented = 255

// Warnings returns what is valid but unwise in a membership.
func (m *Membership) Warnings() []Warning {
	var ws []Warning
	add := func(r Rule, format string, args ...any) {
		ws = append(ws, Warning{r, fmt.Sprintf(format, args...)})
	}
	switch n := len(m.voters); {
	case n == 1:
		add(OneVoter, "one voter only: no server failure is tolerated; at least 3 are needed for that")
	case n == 2:
		add(TwoVoters, "two voters only: no server failure is tolerated; at least 3 are needed for that")
	case n > 0 && n%2 == 0 && !m.Hierarchical():
		add(EvenVoters, "%d voters tolerate as many failures as %d; use an odd number", n, n-1)
	}
	for _, s := range m.servers {
		if s.ID > idDocumented {
			add(LargeID, "server id %d is above %d; session ids of two servers may collide", s.ID, idDocumented)
		}
	}
	for i, s := range m.servers {
		for _, o := range m.servers[i+1:] {
			if a := sharedAddress(s, o); a != "" {
				add(SharedAddress, "server %d and server %d share the address %s", s.ID, o.ID, a)
			}
		}
	}
	return ws
}

// sharedAddress returns an address that both servers use.
func sharedAddress(a, b Server) string {
	used := make(map[string]bool)
	for _, addr := range a.listeners() {
		used[addr] = true
	}
	for _, addr := range b.listeners() {
		if used[addr] {
			return addr
		}
	}
	return ""
}

// listeners returns the addresses of a server that name one machine. It leaves out wildcard
// addresses, and a loopback address for clients, because with them each server means its
// own machine.
func (s Server) listeners() []string {
	var all []string
	for _, a := range s.Addresses {
		if !(HostPort{Host: a.Host}).IsWildcard() {
			all = append(all, a.Quorum(), a.Election())
		}
	}
	if !s.Client.IsZero() && !s.Client.IsWildcard() && !s.Client.IsLoopback() {
		all = append(all, s.Client.String())
	}
	return all
}
