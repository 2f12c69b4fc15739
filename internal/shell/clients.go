package shell

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bellwether/wire"
)

// askTimeout is how long one server may take to answer which clients it has.
const askTimeout = 3 * time.Second

// clientList collects what the servers answer about clients.
type clientList struct {
	mu        sync.Mutex
	addresses map[wire.SessionID]string
	known     map[wire.SessionID]bool
}

// clients asks all servers in parallel for the addresses of their clients and for the
// sessions. It skips a server that does not answer.
func (s *surveyor) clients(ctx context.Context) (map[wire.SessionID]string, map[wire.SessionID]bool) {
	t := &clientList{addresses: map[wire.SessionID]string{}, known: map[wire.SessionID]bool{}}
	var asking sync.WaitGroup
	for _, server := range s.everyServer(ctx) {
		asking.Go(func() { t.ask(ctx, s.app, server, min(s.timeout, askTimeout), s.adminPort) })
	}
	asking.Wait()
	return t.addresses, t.known
}

// everyServer returns the servers of --server and those in the ensemble's configuration.
func (s *surveyor) everyServer(ctx context.Context) []string {
	hosts, _, _ := strings.Cut(s.servers, "/")
	var all []string
	for h := range strings.SplitSeq(hosts, ",") {
		all = append(all, withPort(h))
	}
	text, _, err := s.zc.Config(ctx)
	if err != nil {
		return all // the configuration is hidden, or the servers are older than 3.5
	}
	_, port, _ := net.SplitHostPort(all[0]) // withPort has added a port
	for _, server := range clientAddresses(string(text), port, s.access.UsesTLS()) {
		if !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	return all
}

// clientAddresses returns the client addresses in a dynamic configuration, whose lines are
// server.ID=HOST:PORT:PORT[:ROLE][|…][;[HOST:]PORT]. For a server that listens on all addresses
// it uses the host of the quorum port. usual is the port for a server without a client port. With
// TLS it is the port for all servers, because the configuration names the ports without TLS.
func clientAddresses(config, usual string, tls bool) []string {
	var all []string
	for line := range strings.Lines(config) {
		_, value, isServer := strings.Cut(strings.TrimSpace(line), "=")
		quorum, client, named := strings.Cut(value, ";")
		if !isServer || !strings.HasPrefix(strings.TrimSpace(line), "server.") {
			continue
		}
		if !named {
			client = usual
		}
		host, port, err := net.SplitHostPort(client)
		if err != nil {
			host, port = "", client
		}
		if host == "" || net.ParseIP(host).IsUnspecified() {
			host = quorumHost(quorum)
		}
		if tls {
			port = usual
		}
		if n, err := strconv.Atoi(port); err == nil && n > 0 && host != "" {
			all = append(all, net.JoinHostPort(host, port))
		}
	}
	return all
}

// quorumHost returns the host of HOST:PORT:PORT[:ROLE] or [HOST]:PORT:PORT[:ROLE].
func quorumHost(address string) string {
	if rest, ok := strings.CutPrefix(address, "["); ok {
		host, _, _ := strings.Cut(rest, "]")
		return host
	}
	host, _, _ := strings.Cut(address, ":")
	return host
}

// ask asks one server by four-letter words or, if it does not answer them, through its
// AdminServer.
func (t *clientList) ask(ctx context.Context, a *app, server string, timeout time.Duration, adminPort int) {
	cons, consErr := a.word(ctx, server, "cons", timeout)
	dump, dumpErr := a.word(ctx, server, "dump", timeout)
	refused := func(text string, err error) bool { return err != nil || strings.Contains(text, "not in the whitelist") }
	var admin adminAnswer
	if host, _, err := net.SplitHostPort(server); err == nil && adminPort != 0 && (refused(cons, consErr) || refused(dump, dumpErr)) {
		for _, command := range []string{"connections", "dump"} {
			askAdmin(ctx, "http://"+net.JoinHostPort(host, strconv.Itoa(adminPort))+"/commands/"+command, timeout, &admin)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	parseCons(cons, t.addresses)
	parseDump(dump, t.known)
	for _, c := range slices.Concat(admin.Connections, admin.Secure) {
		if c.Session != 0 {
			t.addresses[c.Session] = strings.TrimPrefix(c.Address, "/")
		}
	}
	for _, sessions := range admin.Expiries {
		for _, id := range sessions {
			t.known[id] = true
		}
	}
}

// adminAnswer is the answer of ZooKeeper's AdminServer about its clients.
type adminAnswer struct {
	Connections []adminClient               `json:"connections"`
	Secure      []adminClient               `json:"secure_connections"`
	Expiries    map[string][]wire.SessionID `json:"expiry_time_to_session_ids"`
}

type adminClient struct {
	Address string         `json:"remote_socket_address"`
	Session wire.SessionID `json:"session_id"`
}

// directly asks a server without a proxy and without keeping connections.
var directly = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// adminMax is how much of an AdminServer's answer is read, in bytes.
const adminMax = 1 << 20

// askAdmin adds the answer of an AdminServer, if there is one.
func askAdmin(ctx context.Context, url string, timeout time.Duration, into *adminAnswer) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	r, err := directly.Do(q)
	if err != nil {
		return
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusOK {
		_ = json.NewDecoder(io.LimitReader(r.Body, adminMax)).Decode(into) // ignore other pages at this port
	}
}

// parseSession parses a session id in the form that servers print.
func parseSession(text string) (wire.SessionID, bool) {
	hex, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(hex, 16, 64)
	return wire.SessionID(n), ok && err == nil && n != 0
}

// parseCons adds the address of each session in an answer to cons.
func parseCons(text string, addresses map[wire.SessionID]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "/")
		from, rest, ok := strings.Cut(line, "(")
		from = from[:max(strings.LastIndexByte(from, '['), 0)] // the last bracket, because an IPv6 address contains one too
		_, id, found := strings.Cut(rest, "sid=")
		id, _, _ = strings.Cut(id, ",")
		if session, valid := parseSession(id); ok && found && valid {
			addresses[session] = from
		}
	}
}

// parseDump adds each session in the first part of an answer to dump, which lists the
// sessions that the server tracks, one per line.
func parseDump(text string, known map[wire.SessionID]bool) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "ephemeral nodes dump") {
			return
		}
		if fields := strings.Fields(line); len(fields) > 0 {
			if session, ok := parseSession(fields[0]); ok {
				known[session] = true
			}
		}
	}
}
