package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bellwether/internal/ensemble"
	"bellwether/internal/fourletter"
	"bellwether/internal/member"
	"bellwether/zk"
)

// readMembers returns the members of the ensemble, as they are after all that is committed now.
func readMembers(ctx context.Context, zc *zk.Client) (*ensemble.Membership, error) {
	if err := zc.Sync(ctx, "/"); err != nil {
		return nil, err
	}
	text, _, err := zc.Config(ctx)
	if err != nil {
		return nil, err
	}
	m, err := ensemble.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s does not contain a list of members: %w", configNode, err)
	}
	if len(m.Servers()) == 0 {
		return nil, fmt.Errorf("the server runs standalone, so it has no list of members: docs/operate.md, From one server to three, says how an ensemble begins")
	}
	return m, nil
}

// look asks all members and the newcomers at the same time, by four-letter words. Then it reads the list of members
// that each of them has, in a session with each one. Each new session is a transaction, with which a server compares its
// tree with the leader's. So look asks again after that.
func (m *members) look(ctx context.Context, now *ensemble.Membership, newcomers []ensemble.Server) (member.View, error) {
	before, err := m.ask(ctx, now, newcomers)
	if err != nil {
		return before, err
	}
	lists := m.lists(ctx, before)
	v, err := m.ask(ctx, now, newcomers)
	for id, list := range lists {
		seen := v.Servers[id]
		seen.Members = list
		v.Servers[id] = seen
	}
	return v, err
}

// lists returns the lists of members that the servers of a view have; nil: it cannot be read.
func (m *members) lists(ctx context.Context, v member.View) map[ensemble.ServerID]*ensemble.Membership {
	ids := slices.Collect(maps.Keys(v.Servers))
	lists := make([]*ensemble.Membership, len(ids))
	var asked sync.WaitGroup
	for i, id := range ids {
		if seen := v.Servers[id]; slices.Contains([]string{"leader", "follower", "observer"}, seen.Role) {
			asked.Go(func() { lists[i] = m.listOf(ctx, seen.Address) })
		}
	}
	asked.Wait()
	all := make(map[ensemble.ServerID]*ensemble.Membership, len(ids))
	for i, id := range ids {
		all[id] = lists[i]
	}
	return all
}

// ask is like look, without the lists of members. It opens no session.
func (m *members) ask(ctx context.Context, now *ensemble.Membership, newcomers []ensemble.Server) (member.View, error) {
	v := member.View{Servers: map[ensemble.ServerID]member.Seen{}, BehindMax: m.behind}
	lines := append([]ensemble.Server{}, newcomers...)
	for _, s := range now.Servers() {
		v.Servers[s.ID] = member.Seen{}
		lines = append(lines, s)
	}
	if slices.ContainsFunc(lines, func(s ensemble.Server) bool { return s.Client.IsZero() }) {
		m.identify(ctx)
	}
	all := make([]member.Seen, len(lines))
	var asked sync.WaitGroup
	for i, s := range lines {
		address, err := m.addressOf(s)
		if err != nil {
			return v, err
		}
		asked.Go(func() { all[i] = m.askMember(ctx, address) })
	}
	asked.Wait()
	for i, s := range lines { // what a newcomer's line says does not replace that of a member
		v.Servers[s.ID] = all[i]
	}
	compareMembers(v)
	return v, nil
}

// identify asks the servers of --server for their ids, once: some lines have no client address.
func (m *members) identify(ctx context.Context) {
	if m.known != nil {
		return
	}
	m.known = map[ensemble.ServerID]string{}
	servers := m.serverList()
	ids := make([]ensemble.ServerID, len(servers))
	said := make([]bool, len(servers))
	var asked sync.WaitGroup
	for i, address := range servers {
		asked.Go(func() { ids[i], said[i] = m.idOf(ctx, address) })
	}
	asked.Wait()
	for i, address := range servers {
		if said[i] {
			m.known[ids[i]] = address
		}
	}
}

// addressOf returns where clients reach a server: as --address says, or at the client address of its line. If the line
// has none, it is the server of --server with this id, or the server is taken to have the port of the first one of --server.
func (m *members) addressOf(s ensemble.Server) (string, error) {
	for _, text := range m.addresses {
		id, address, ok := strings.Cut(text, "=")
		n, err := strconv.ParseInt(id, 10, 64)
		if _, _, bad := net.SplitHostPort(address); !ok || err != nil || bad != nil {
			return "", usagef("--address %q: want ID=HOST:PORT, as in 4=zk4:2181", text)
		}
		if ensemble.ServerID(n) == s.ID {
			return address, nil
		}
	}
	client := s.Client
	if address, ok := m.known[s.ID]; ok && client.IsZero() {
		return address, nil
	}
	if client.IsZero() {
		_, port, _ := net.SplitHostPort(m.serverList()[0])
		client.Port, _ = strconv.Atoi(port)
		client.Host = ensemble.Wildcard
	}
	if client.IsWildcard() {
		client.Host = s.Addresses[0].Host
	}
	return client.String(), nil
}

// askMember asks one server. Behind is -1, because only compareMembers knows it.
func (m *members) askMember(ctx context.Context, address string) member.Seen {
	seen := member.Seen{Address: address, Behind: -1}
	text, err := m.word(ctx, address, "srvr", m.app.timeout)
	srvr := fourletter.ParseSrvr(text)
	switch {
	case err != nil:
		seen.Error = err.Error()
		return seen
	case strings.Contains(text, "is not in the whitelist"):
		seen.Error = "the server does not answer srvr (4lw.commands.whitelist)"
		return seen
	case srvr.Version == "" && !strings.Contains(text, "not currently serving"):
		seen.Error = "the answer to srvr is not that of a server: " + fourletter.Clip(fourletter.Clean(strings.TrimSpace(text)), fourletter.ValueMax) + m.withoutTLS()
		return seen
	}
	seen.Role, seen.Version, seen.Zxid = srvr.Mode, srvr.Version, srvr.Zxid
	seen.Differs, seen.ClosedPort = srvr.Differs, srvr.ClosedPort
	seen.ID, seen.HasID = m.idOf(ctx, address)
	return seen
}

// idOf asks a server for its id: by elog, which Bellwether always answers, or by conf.
func (m *members) idOf(ctx context.Context, address string) (id ensemble.ServerID, ok bool) {
	if text, err := m.word(ctx, address, "elog", m.app.timeout); err == nil {
		raws, err := fourletter.ParseElog(text)
		if err == nil {
			var e electionJSON
			err = json.Unmarshal(raws[len(raws)-1], &e)
			return ensemble.ServerID(e.Server), err == nil
		}
	}
	text, err := m.word(ctx, address, "conf", m.app.timeout)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), "serverId="); found {
			n, err := strconv.ParseInt(value, 10, 64)
			return ensemble.ServerID(n), err == nil
		}
	}
	return 0, false
}

// compareMembers computes how far each server is behind the leader.
func compareMembers(v member.View) {
	leader := int64(-1)
	for _, seen := range v.Servers {
		if n, err := strconv.ParseInt(seen.Zxid, 0, 64); err == nil && seen.Role == "leader" {
			leader = max(leader, n)
		}
	}
	for id, seen := range v.Servers {
		own, err := strconv.ParseInt(seen.Zxid, 0, 64)
		if err != nil || leader < 0 || seen.Error != "" || seen.Role == "" {
			continue
		}
		seen.Empty = own == 0 && leader > 0
		switch leaderEpoch, ownEpoch := leader>>32, own>>32; {
		case leaderEpoch == ownEpoch:
			seen.Behind = max(leader-own, 0)
		case ownEpoch < leaderEpoch: // it follows, so it lacks at most what this epoch has
			seen.Behind = leader & (1<<32 - 1)
		}
		v.Servers[id] = seen
	}
}

// listOf returns the list of members that a server has; nil: it cannot be read.
func (m *members) listOf(ctx context.Context, address string) *ensemble.Membership {
	o, err := m.options()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.app.timeout)
	defer cancel()
	zc, err := zk.Connect(ctx, address, o)
	if err != nil {
		return nil
	}
	defer endSession(ctx, zc)
	list, err := readMembers(ctx, zc)
	if err != nil {
		return nil
	}
	return list
}
