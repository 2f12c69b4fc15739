package preflight

import (
	"context"
	"slices"
	"strings"
	"sync"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/fourletter"
)

// Member is a running server, as its four-letter words describe it.
type Member struct {
	Server  string // its client address
	Err     error  // why it does not answer; nil: it answers
	Srvr    fourletter.Srvr
	Conf    map[string]string    // the fields of conf; nil: the server does not answer conf
	Config  *ensemble.Membership // the membership in conf; nil: there is none
	Mntr    map[string]float64   // the numbers of mntr without the prefix zk_; empty: none
	Refused []string             // words that the server answers only if its whitelist allows them
}

// Asker sends a four-letter word to a server and returns the answer.
type Asker func(ctx context.Context, server, word string) (string, error)

// Ask asks all servers at the same time.
func Ask(ctx context.Context, ask Asker, servers []string) []Member {
	all := make([]Member, len(servers))
	var asked sync.WaitGroup
	for i, server := range servers {
		asked.Go(func() { all[i] = askOne(ctx, ask, server) })
	}
	asked.Wait()
	return all
}

func askOne(ctx context.Context, ask Asker, server string) Member {
	m := Member{Server: server}
	text, err := ask(ctx, server, "srvr")
	if err != nil {
		m.Err = err
		return m
	}
	m.Srvr = fourletter.ParseSrvr(text)
	if m.Srvr.Mode == "" {
		return m
	}
	for _, word := range []string{"conf", "mntr"} {
		text, err := ask(ctx, server, word)
		switch {
		case err != nil || strings.Contains(text, "is not in the whitelist"):
			m.Refused = append(m.Refused, word)
		case word == "conf":
			m.Conf, m.Config = parseConf(text)
		default:
			m.Mntr = fourletter.ParseMntr(text)
		}
	}
	return m
}

// parseConf parses the answer to conf. The membership is nil for a standalone server.
func parseConf(text string) (map[string]string, *ensemble.Membership) {
	fields, members, inEnsemble := strings.Cut(text, "membership: ")
	values := map[string]string{}
	for line := range strings.Lines(fields) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[key] = value
		}
	}
	if !inEnsemble {
		return values, nil
	}
	m, err := ensemble.Parse(strings.TrimSpace(members))
	if err != nil {
		return values, nil
	}
	return values, m
}

// Servers returns the client addresses of the servers that a zoo.cfg describes: the ports without TLS, or
// those with TLS if there is no other one. A server line without a client port is taken to have the port of this server.
func Servers(c *config.Config) []string {
	own := c.Client
	if own.IsZero() {
		own = c.TLS.Client
	}
	if c.Standalone() {
		return reachable(own, "127.0.0.1")
	}
	var all []string
	for _, s := range c.Ensemble.Members.Servers() {
		client := s.Client
		switch {
		case s.ID == c.Ensemble.ID && !own.IsZero():
			client = own
		case client.IsZero():
			client = ensemble.HostPort{Host: ensemble.Wildcard, Port: own.Port}
		}
		for _, address := range reachable(client, s.Addresses[0].Host) {
			if !slices.Contains(all, address) {
				all = append(all, address)
			}
		}
	}
	return all
}

// reachable returns the address, with another host if it stands for all addresses of the machine.
func reachable(a ensemble.HostPort, host string) []string {
	if a.Port == 0 {
		return nil
	}
	if a.IsWildcard() {
		a.Host = host
	}
	return []string{a.String()}
}
