package server

import (
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"bellwether/internal/metrics"
	"bellwether/internal/store"
	"bellwether/wire"
)

// stats holds the figures of a server, under the names that dashboards for ZooKeeper use.
// All goroutines may update them; every update is atomic.
type stats struct {
	registry *metrics.Registry

	packetsReceived, packetsSent                   metrics.Counter
	bytesReceived, bytesSent                       *metrics.Counter
	connectRequests, reattached, dropped, rejected *metrics.Counter
	sessionlessGone, expired, notServing           *metrics.Counter
	proposals, commits, broken                     *metrics.Counter
	snapSyncs                                      *metrics.Counter // on a leader: snapshots sent to learners
	large, throttled, throttleWaits                *metrics.Counter
	heavyHeld                                      *metrics.Counter // requests that waited for heavy ones (heavyqueue.go)
	staleRequests, staleDropped                    *metrics.Counter
	watchBytes                                     *metrics.Counter
	authFailed, slowSyncs                          metrics.Counter
	connsThrottled                                 *metrics.Counter             // refused by connThrottle
	tokensMissing                                  *metrics.Summary             // tokens missing from connThrottle after each admitted connection
	limited                                        [limitKinds]*metrics.Counter // requests that waited for each kind of limit
	limitRefused                                   *metrics.Counter             // requests that the limits of rates refused
	loginFailures, loginDelays                     *metrics.Counter             // attempts.go
	loginsMissing                                  *metrics.Counter             // requests refused because their client had not logged in
	handshakesFailed                               *metrics.Counter             // TLS handshakes with clients that failed
	slow                                           *metrics.Counter             // requests that took longer than operation.warningthresholdms

	readLatency, updateLatency        *metrics.Summary
	syncTime, snapshotTime, batchSize *metrics.Summary
	loadTime, loadTxns                *metrics.Summary
	loadSnapshot, loadLog             *metrics.Summary
	inboxTime, logTime                *metrics.Summary // until a write is prepared, and until it is durable
	throttleTime                      *metrics.Summary // how long requests were held back
	pause                             *metrics.Summary // how late ticks came
	loopTime                          *metrics.Summary // time that one batch of the loop takes

	onDemand OnDemand
	response lastMinMax   // bytes of replies
	locals   atomic.Int64 // number of local sessions
	// mismatches counts the digests that did not match in trees that were replaced since.
	mismatches atomic.Int64
	stages
	quorum quorumStats
}

// newStats registers the figures that the server counts itself.
func newStats() *stats {
	r := metrics.New()
	t := &stats{
		registry:      r,
		bytesReceived: r.Counter("bytes_received_count"), bytesSent: r.Counter("response_bytes"),
		connectRequests: r.Counter("connection_request_count"), reattached: r.Counter("connection_revalidate_count"),
		dropped: r.Counter("connection_drop_count"), rejected: r.Counter("connection_rejected"),
		sessionlessGone: r.Counter("sessionless_connections_expired"), expired: r.Counter("stale_sessions_expired"),
		notServing: r.Counter("cnxn_closed_without_zk_server_running"),
		proposals:  r.Counter("proposal_count"), commits: r.Counter("commit_count"),
		snapSyncs: r.Counter("snap_count"), broken: r.Counter("unrecoverable_error_count"),
		large: r.Counter("large_requests_rejected"), throttled: r.Counter("throttled_ops"),
		throttleTime:  r.Advanced("request_throttle_queue_time_ms"),
		throttleWaits: r.Counter("request_throttle_wait_count"), staleRequests: r.Counter("stale_requests"),
		handshakesFailed: r.Counter("unsuccessful_handshake"), slow: r.Counter("slow_operations"),
		connsThrottled: r.Counter("connection_throttled"), tokensMissing: r.Basic("connection_token_deficit"),
		limited: [limitKinds]*metrics.Counter{r.Counter("client_requests_delayed"), r.Counter("client_bytes_delayed"),
			r.Counter("path_requests_delayed"), r.Counter("path_bytes_delayed")},
		limitRefused:  r.Counter("limited_requests_refused"),
		loginFailures: r.Counter("login_failures"), loginDelays: r.Counter("login_delays"), loginsMissing: r.Counter("login_required_count"),
		staleDropped: r.Counter("stale_requests_dropped"), watchBytes: r.Counter("watch_bytes"),
		readLatency: r.Advanced("readlatency"), updateLatency: r.Advanced("updatelatency"),
		inboxTime: r.Advanced("prep_processor_queue_time_ms"),
		logTime:   r.Advanced("sync_processor_queue_and_flush_time_ms"),
		pause:     r.Advanced("jvm_pause_time_ms"),
		loopTime:  r.Basic("loop_time_ms"),
		heavyHeld: r.Counter("heavy_requests_held"),
		syncTime:  r.Basic("fsynctime"), snapshotTime: r.Basic("snapshottime"), batchSize: r.Basic("sync_processor_batch_size"),
		loadTime: r.Basic("dbinittime"), loadTxns: r.Basic("startup_txns_loaded"),
		loadSnapshot: r.Basic("startup_snap_load_time"), loadLog: r.Basic("startup_txns_load_time"),
		stages: newStages(r), quorum: newQuorumStats(r),
	}
	t.onDemand = onDemand(r)
	t.response.reset()
	return t
}

// OnDemand holds the figures of the admin server's commands snapshot and restore.
type OnDemand struct {
	SnapshotErrors, SnapshotLimited *metrics.Counter
	RestoreErrors, RestoreLimited   *metrics.Counter
	RestoreTime                     *metrics.Summary
}

// OnDemand returns the figures of snapshot and restore, which the admin server counts.
func (s *Server) OnDemand() *OnDemand { return &s.stats.onDemand }

func onDemand(r *metrics.Registry) OnDemand {
	return OnDemand{
		SnapshotErrors: r.Counter("snapshot_error_count"), SnapshotLimited: r.Counter("snapshot_rate_limited_count"),
		RestoreErrors: r.Counter("restore_error_count"), RestoreLimited: r.Counter("restore_rate_limited_count"),
		RestoreTime: r.Basic("restore_time"),
	}
}

// gauges registers the figures that are computed when they are read.
func (s *Server) gauges() {
	r := s.stats.registry
	num := func(name string, f func() int64) { r.Gauge(name, func() float64 { return float64(f()) }) }
	r.Gauge("avg_latency", func() float64 { return s.stats.latency().Average })
	r.Gauge("connection_drop_probability", s.dropProbability)
	r.Gauge("max_latency", func() float64 { return s.stats.latency().Max })
	r.Gauge("min_latency", func() float64 { return s.stats.latency().Min })
	num("packets_received", s.stats.packetsReceived.Value)
	num("packets_sent", s.stats.packetsSent.Value)
	num("num_alive_connections", func() int64 { return int64(s.conns.len()) })
	num("outstanding_requests", s.inProcess.Load)
	num("uptime", func() int64 { return s.clock() / int64(time.Millisecond) })
	num("znode_count", func() int64 { return s.Tree().Counts().Nodes })
	num("watch_count", func() int64 { return s.Tree().Counts().Watches })
	num("ephemerals_count", func() int64 { return s.Tree().Counts().Ephemerals })
	num("approximate_data_size", func() int64 { return s.Tree().Counts().DataBytes })
	num("global_sessions", func() int64 { return s.Tree().Counts().Sessions })
	num("local_sessions", s.stats.locals.Load)
	num("open_file_descriptor_count", openFiles)
	num("max_file_descriptor_count", maxFiles)
	num("last_client_response_size", s.stats.response.last.Load)
	num("max_client_response_size", s.stats.response.most)
	num("min_client_response_size", s.stats.response.least)
	num("auth_failed_count", s.stats.authFailed.Value)
	num("non_mtls_remote_conn_count", func() int64 { return s.conns.count(false) })
	num("non_mtls_local_conn_count", func() int64 { return s.conns.count(true) })
	num("digest_mismatches_count", func() int64 { n, _ := s.Tree().DigestMismatches(); return n + s.stats.mismatches.Load() })
	r.Gauge("disk_free_bytes", func() float64 { return s.diskBytes().free })
	r.Gauge("disk_size_bytes", func() float64 { return s.diskBytes().size })
	s.certificateGauges()
	s.auditGauges()
}

// diskSpace is the space of a file system; NaN if it is not known.
type diskSpace struct{ free, size float64 }

var spaceUnknown = diskSpace{math.NaN(), math.NaN()}

// diskBytes returns the space of the file system that holds the transaction log, as the log
// writer has last seen it. The caller does not wait for the disk.
func (s *Server) diskBytes() diskSpace {
	if seen := s.space.Load(); seen != nil {
		return *seen
	}
	return spaceUnknown
}

// lookAtDisk measures the space of the file system that holds the transaction log. A file
// system in memory has none.
func (s *Server) lookAtDisk() {
	if free := s.opt.Hooks.Free; free != nil {
		s.space.Store(&diskSpace{free: free(), size: math.NaN()})
		return
	}
	if s.opt.FS == store.OS() {
		space := spaceOf(s.config().DataLogDir)
		s.space.Store(&space)
	}
}

// MemoryMax returns how many bytes of memory the process may use: what the operator allows (GOMEMLIMIT), or the memory of the
// machine or the container if that is less; 0: not known.
func MemoryMax() int64 {
	most := machineMemory()
	if os.Getenv("GOMEMLIMIT") == "" { // the limit, if there is one, is the program's own
		return most
	}
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 && (most == 0 || limit < most) {
		return limit
	}
	return most
}

// micro converts ns to thousandths of a ms, the unit that a summary of ms observes.
func micro(ns int64) int64 { return ns / 1000 }

// received counts n requests of bytes bytes in total.
func (t *stats) received(n, bytes int64) {
	t.packetsReceived.Add(n)
	t.bytesReceived.Add(bytes)
}

// latency returns the latencies of all requests: each request is a read or an update.
func (t *stats) latency() metrics.Figures { return metrics.Together(t.readLatency, t.updateLatency) }

// reads counts n requests that a reader has answered within ns.
func (t *stats) reads(n, ns int64) {
	t.readLatency.Observe(micro(ns), n)
}

// throughLoop counts a request that went through the loop.
func (t *stats) throughLoop(op wire.OpCode, ns int64) {
	if op.IsWrite() || op == wire.OpCreateSession || op == wire.OpCloseSession {
		t.updateLatency.Observe(micro(ns), 1)
	} else {
		t.readLatency.Observe(micro(ns), 1)
	}
}

// wrote counts one write to a client.
func (t *stats) wrote(b *buffer) {
	t.packetsSent.Add(b.packets)
	t.bytesSent.Add(b.replies)
	if b.max > 0 {
		t.response.note(b)
	}
}

// synced counts one fsync of n transactions.
func (t *stats) synced(took time.Duration, n int) {
	t.syncTime.Observe(took.Microseconds(), 1)
	t.flush.Observe(took.Microseconds(), 1)
	t.batchSize.Observe(int64(n)*metrics.Unit, 1)
}

// snapshot counts one snapshot.
func (t *stats) snapshot(took time.Duration) {
	t.snapshotTime.Observe(took.Microseconds(), 1)
}

// loaded records the times of a start: took in total, snapshot for reading the snapshot.
func (t *stats) loaded(took, snapshot time.Duration, txns int) {
	t.loadTime.Observe(took.Microseconds(), 1)
	t.loadTxns.Observe(int64(txns)*metrics.Unit, 1)
	t.loadSnapshot.Observe(snapshot.Microseconds(), 1)
	t.loadLog.Observe((took - snapshot).Microseconds(), 1)
}

// reset carries out the four-letter word srst. As with ZooKeeper it also resets the
// figures of mntr.
func (t *stats) reset() {
	t.registry.Reset()
	t.packetsReceived.Reset()
	t.packetsSent.Reset()
	t.response.reset()
}
