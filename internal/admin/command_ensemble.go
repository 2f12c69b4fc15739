package admin

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/server"
	"bellwether/internal/zab"
)

// leader says who leads.
func leader(_ *Admin, c *call) object {
	s := c.server
	st := s.ReplicaStatus()
	if st == nil {
		return fail("server is not initialized")
	}
	return object{{"is_leader", leads(st)}, {"leader_id", int64(st.Leader)}, {"leader_ip", c.leaderIP(s, st)}}
}

func leads(st *replica.Status) bool { return st.Serving && st.Role == peerwire.Leading }

// resolveMax is how long the name of a leader may take to be resolved.
const resolveMax = time.Second

// leaderIP returns the address of the leader, without its port. A name that cannot be
// resolved is returned as it is.
func (c *call) leaderIP(s *server.Server, st *replica.Status) string {
	self, ok := s.Config().Ensemble.Members.Server(st.Leader)
	if !ok {
		return ""
	}
	host := self.Addresses[0].Host
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	ctx, cancel := context.WithTimeout(c.http.Context(), resolveMax)
	defer cancel()
	if found, err := net.DefaultResolver.LookupHost(ctx, host); err == nil && len(found) > 0 {
		return found[0]
	}
	return host
}

// observers describes the observers of a leader, or of a follower that serves observers, with the traffic of their links.
func observers(_ *Admin, c *call) object {
	synced, all := 0, list{}
	for _, l := range c.server.Learners() {
		if !l.Observer {
			continue
		}
		if l.Synced {
			synced++
		}
		all = append(all, observer(c.server, &l))
	}
	return object{{"synced_observers", synced}, {"observers", all}}
}

func observer(s *server.Server, l *zab.LearnerStatus) object {
	t := s.LinkTraffic(l.Link)
	return object{
		{"remote_socket_address", "/" + s.PeerAddress(l.Link)}, {"sid", int64(l.Server)}, {"established", t.BeganMS},
		{"queued_packets", t.Queued}, {"queued_packets_size", t.QueuedBytes},
		{"packets_received", t.Received}, {"packets_sent", t.Sent}, {"requests", t.Requests}, {"last_zxid", int64(l.Acked)},
	}
}

// resetObservers sets the counters of the observers' links to 0.
func resetObservers(_ *Admin, c *call) object {
	for _, l := range c.server.Learners() {
		if l.Observer {
			c.server.ResetLinkTraffic(l.Link)
		}
	}
	return nil
}

// votingView lists the voters of an ensemble; none on a standalone server.
func votingView(_ *Admin, c *call) object {
	view := object{}
	if conf := c.server.Config(); !conf.Standalone() {
		for _, id := range conf.Ensemble.Members.Voters() {
			voter, _ := conf.Ensemble.Members.Server(id)
			var quorum, election texts
			for _, a := range voter.Addresses {
				quorum, election = append(quorum, a.Quorum()), append(election, a.Election())
			}
			view = append(view, field{strconv.FormatInt(int64(id), 10), object{
				{"server_addresses", quorum}, {"election_addresses", election},
				{"client_address", voter.Client.String()}, {"learner_type", "participant"},
			}})
		}
	}
	return object{{"current_config", view}}
}

// zabState describes a member of an ensemble.
func zabState(_ *Admin, c *call) object {
	s := c.server
	if s.ReplicaStatus() == nil || !s.Serving() {
		return object{{"voting", false}, {"zabstate", ""}}
	}
	conf, st := s.Config(), s.Status()
	self, _ := conf.Ensemble.Members.Server(conf.Ensemble.ID)
	o := object{
		{"myid", int64(self.ID)}, {"is_leader", leads(s.ReplicaStatus())},
		{"quorum_address", addresses(self.Addresses, ensemble.Address.Quorum, func(a ensemble.Address) int { return a.QuorumPort })},
		{"election_address", addresses(self.Addresses, ensemble.Address.Election, func(a ensemble.Address) int { return a.ElectionPort })},
		{"client_address", clientAddress(s, self)}, {"voting", conf.Ensemble.Members.IsVoter(self.ID)},
		{"last_zxid", st.Zxid.String()}, {"zab_epoch", int64(st.Zxid.Epoch())}, {"zab_counter", int64(st.Zxid.Counter())},
	}
	if st.ReadOnly {
		return append(o, field{"zabstate", "election"})
	}
	return append(o, field{"zabstate", "broadcast"})
}

// clientAddress returns the address for clients in the server line or, if there is none, that of clientPort.
func clientAddress(s *server.Server, self ensemble.Server) any {
	at := self.Client
	if at.IsZero() {
		at = s.Config().Client
	}
	if at.IsZero() {
		return nil
	}
	return at.String()
}

// addresses describes the addresses of a server for one kind of port. It lists all of them as
// reachable, without trying them.
func addresses(all []ensemble.Address, text func(ensemble.Address) string, port func(ensemble.Address) int) object {
	var each, wildcards, hosts texts
	var ports list
	for _, a := range all {
		each, hosts = append(each, text(a)), append(hosts, a.Host)
		wildcards = append(wildcards, ensemble.HostPort{Host: ensemble.Wildcard, Port: port(a)}.String())
		ports = append(ports, port(a))
	}
	return object{
		{"empty", false}, {"all_addresses", each}, {"all_reachable_addresses", each}, {"one", each[0]}, {"reachable_address", each[0]},
		{"wildcard_addresses", wildcards}, {"all_ports", ports}, {"all_host_strings", hosts}, {"all_reachable_addresses_or_all", each},
		{"reachable_or_one", each[0]},
	}
}
