package admin

import (
	"strconv"

	"bellwether/internal/server"
	"bellwether/internal/tree"
)

func listConnections(_ *Admin, c *call) object {
	plain, secure := describeConnections(c.server, fullJSON)
	return object{{"connections", plain}, {"secure_connections", secure}}
}

// describeConnections lists the connections of the client port, and those of the client port with TLS.
func describeConnections(s *server.Server, describe func(*server.Connection) object) (plain, secure list) {
	plain, secure = list{}, list{}
	for _, c := range s.Connections() {
		if c.Secure {
			secure = append(secure, describe(&c))
		} else {
			plain = append(plain, describe(&c))
		}
	}
	return plain, secure
}

func briefJSON(c *server.Connection) object {
	return object{
		{"remote_socket_address", c.Addr.String()}, {"interest_ops", interest(c)}, {"outstanding_requests", c.Queued},
		{"packets_received", c.Received}, {"packets_sent", c.Sent},
	}
}

// fullJSON describes a connection as cons does. A connection without a session has fewer fields.
func fullJSON(c *server.Connection) object {
	o := briefJSON(c)
	if c.Session == 0 {
		return o
	}
	o = append(o, field{"session_id", int64(c.Session)}, field{"last_operation", opName(c)},
		field{"established", c.Established.UnixMilli()}, field{"session_timeout", c.Timeout.Milliseconds()})
	return append(o, field{"last_cxid", int64(c.LastXid)}, field{"last_zxid", int64(c.LastZxid)}, field{"last_response_time", c.LastReply.Milliseconds()}, field{"last_latency", c.LastLatency},
		field{"min_latency", c.MinLatency}, field{"avg_latency", c.AverageLatency}, field{"max_latency", c.MaxLatency})
}

// dumpSessions returns the ephemerals of each session and, on a leader or a standalone server,
// which decide it, when sessions expire. The times are in ms since 1970; ZooKeeper's times are
// those of a clock of the JVM.
func dumpSessions(_ *Admin, c *call) object {
	s := c.server
	sets := s.Sessions()
	if conf := s.Config(); !conf.Standalone() && conf.Ensemble.LocalSessions {
		sets = append(sets, s.LocalSessions()...)
	}
	expiry := map[int64]list{}
	var order []int64
	for _, e := range sets {
		at := e.At.UnixMilli()
		if expiry[at] == nil {
			order = append(order, at)
		}
		for _, id := range e.Sessions {
			expiry[at] = append(expiry[at], int64(id))
		}
	}
	return object{
		{"expiry_time_to_session_ids", entries(func(yield func(string, any) bool) {
			for _, at := range order {
				if !yield(strconv.FormatInt(at, 10), expiry[at]) {
					return
				}
			}
		})},
		{"session_id_to_ephemeral_paths", pathsOf(s.Tree().EphemeralsBySession())},
	}
}

// pathsOf returns the paths of each session.
func pathsOf(owners []tree.SessionPaths) entries {
	return func(yield func(string, any) bool) {
		for _, o := range owners {
			if !yield(strconv.FormatInt(int64(o.Session), 10), texts(o.Paths)) {
				return
			}
		}
	}
}

func watchSummary(_ *Admin, c *call) object {
	watches, paths, sessions := c.server.Tree().DataWatches()
	return object{{"num_connections", sessions}, {"num_paths", paths}, {"num_total_watches", watches}}
}

func watches(_ *Admin, c *call) object {
	return object{{"session_id_to_watched_paths", pathsOf(c.server.Tree().WatchesBySession())}}
}

func watchesByPath(_ *Admin, c *call) object {
	all := c.server.Tree().WatchesByPath()
	return object{{"path_to_session_ids", entries(func(yield func(string, any) bool) {
		for _, p := range all {
			ids := make(list, len(p.Sessions))
			for i, id := range p.Sessions {
				ids[i] = int64(id)
			}
			if !yield(p.Path, ids) {
				return
			}
		}
	})}}
}
