package admin

import (
	"math"
	"net"
	"strconv"

	"bellwether/internal/server"
)

func configuration(_ *Admin, c *call) object {
	s := c.server
	conf := s.Config()
	port := -1
	if a, ok := s.Addr().(*net.TCPAddr); ok {
		port = a.Port
	}
	return object{
		{"client_port", port},
		{"data_dir", version2(conf.DataDir)}, {"data_log_dir", version2(conf.DataLogDir)},
		{"tick_time", conf.TickTime.Milliseconds()}, {"max_client_cnxns", conf.Limits.ClientCnxns},
		{"min_session_timeout", conf.MinSessionTimeout.Milliseconds()}, {"max_session_timeout", conf.MaxSessionTimeout.Milliseconds()},
		{"server_id", serverID(s)}, {"client_port_listen_backlog", conf.Limits.Backlog},
	}
}

// serverID returns the id of a server. The id of a standalone server is 0, whatever myid
// contains.
func serverID(s *server.Server) int64 {
	if c := s.Config(); !c.Standalone() {
		return int64(c.Ensemble.ID)
	}
	return 0
}

func dirSizes(_ *Admin, c *call) object {
	sizes, err := c.server.Sizes()
	if err != nil {
		return fail("sizes are not known: " + err.Error())
	}
	return object{{"datadir_size", sizes.Snapshots}, {"logdir_size", sizes.Logs}}
}

func environment(a *Admin, _ *call) object {
	var o object
	for _, l := range a.environment() {
		o = append(o, field{l[0], l[1]})
	}
	return o
}

func getTraceMask(a *Admin, _ *call) object { return object{{"tracemask", a.traceMask()}} }

// setTraceMask sets the trace mask, which has no effect.
func setTraceMask(a *Admin, c *call) object {
	const need = "setTraceMask requires long traceMask argument"
	text, given := c.argument("traceMask")
	if !given {
		return fail(need)
	}
	mask, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fail(need + ", got " + text)
	}
	a.mask.Store(&mask)
	return object{{"tracemask", mask}}
}

func digests(_ *Admin, c *call) object {
	all := list{}
	for _, e := range c.server.Tree().DigestHistory() {
		all = append(all, object{{"zxid", int64(e.Zxid)}, {"digest", int64(e.Digest)}, {"digest_version", digestVersion}})
	}
	return object{{"digests", all}}
}

// digestVersion is the version of the digest of trees that ZooKeeper and this server compute.
const digestVersion = 2

func initialConfiguration(_ *Admin, c *call) object {
	return object{{"initial_configuration", c.server.Config().Text()}}
}

func isReadOnly(_ *Admin, c *call) object {
	_, readOnly := c.server.Service()
	return object{{"read_only", readOnly}}
}

func lastSnapshot(_ *Admin, c *call) object {
	last, ok := c.server.LastSnapshot()
	if !ok {
		return object{{"zxid", strconv.FormatUint(math.MaxUint64, 16)}, {"timestamp", -1}}
	}
	return object{{"zxid", strconv.FormatUint(uint64(last.Zxid), 16)}, {"timestamp", last.At.Unix()}}
}

// monitor returns the lines of mntr.
func monitor(a *Admin, c *call) object { return a.monitored(c.server) }

// serverStats returns the figures of srvr. Bellwether's own fields are at the end.
func serverStats(a *Admin, c *call) object {
	s := c.server
	st := s.Status()
	sizes, err := s.Sizes()
	if err != nil {
		sizes.Snapshots, sizes.Logs = -1, -1
	}
	o := object{
		{"version", a.version}, {"read_only", st.ReadOnly},
		{"server_stats", object{
			{"packets_sent", st.Sent}, {"packets_received", st.Received}, {"fsync_threshold_exceed_count", st.SlowSyncs},
			{"client_response_stats", bufferSizes(st.Responses)},
			{"data_dir_size", sizes.Snapshots}, {"log_dir_size", sizes.Logs}, {"provider_null", false},
			{"server_state", state(&st)}, {"last_processed_zxid", int64(st.Zxid)}, {"outstanding_requests", st.Outstanding},
			{"avg_latency", rounded(st.LatencyAverage)}, {"max_latency", int64(st.LatencyMax)}, {"min_latency", int64(st.LatencyMin)},
			{"num_alive_client_connections", st.Connections}, {"uptime", st.Uptime.Milliseconds()}, {"auth_failed_count", st.AuthFailed},
			{"non_mtlsremote_conn_count", sample(s, "non_mtls_remote_conn_count")}, {"non_mtlslocal_conn_count", sample(s, "non_mtls_local_conn_count")},
		}},
		{"client_response", bufferSizes(st.Responses)},
	}
	if p := st.Proposals; p != nil {
		o = append(o, field{"proposal_stats", bufferSizes(*p)})
	}
	return append(o, field{"node_count", st.Nodes})
}

// state returns a server's role in ZooKeeper's words.
func state(st *server.Status) string {
	if st.ReadOnly {
		return "read-only"
	}
	return st.Mode
}

func bufferSizes(p server.ProposalSizes) object {
	return object{{"last_buffer_size", p.Last}, {"min_buffer_size", p.Min}, {"max_buffer_size", p.Max}}
}

// sample returns the current value of a metric; 0: there is none.
func sample(s *server.Server, name string) int64 {
	for _, m := range s.Metrics().Samples() {
		if m.Name == name {
			return int64(m.Value)
		}
	}
	return 0
}

// stats returns the figures of stat: those of srvr, and the connections in brief.
func stats(a *Admin, c *call) object {
	plain, secure := describeConnections(c.server, briefJSON)
	return append(serverStats(a, c), field{"connections", plain}, field{"secure_connections", secure})
}

// systemProperties returns the settings that this server was given, under the names of the
// Java properties that ZooKeeper would set.
func systemProperties(_ *Admin, c *call) object {
	var o object
	for _, p := range c.server.Config().Properties() {
		o = append(o, field{p[0], p[1]})
	}
	return o
}
