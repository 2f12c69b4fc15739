package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/audit"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/notice"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Options are the parameters of a server.
type Options struct {
	// Config is the operator's configuration. It is required and must not be changed
	// afterwards; see [Server.Reload].
	Config *config.Config
	// FS holds the data; nil: the operating system's file system.
	FS store.FS
	// Log receives messages for the operator; nil: nothing is logged.
	Log *slog.Logger
	// FourLetterWords answers a four-letter word. known is false for an unknown word. nil: no word
	// is known.
	FourLetterWords func(s *Server, w FourLetterWord) (text string, known bool)
	// Seed seeds the random source; 0: a random seed.
	Seed uint64
	// OutputMax is the most bytes of events and replies that may wait for a client that
	// does not read. Beyond it its connection is closed; 0: 64 MiB.
	OutputMax int
	// DiskQueueMax is how many bytes may wait for the disk; 0: 128 MiB. Above it clients
	// wait and, on a leader, the requests of learners. See inbox.
	DiskQueueMax int
	// Hooks replace parts of the server's environment, such as its network.
	Hooks Hooks
}

// Server is one server, standalone or of an ensemble. The package comment lists its
// goroutines.
type Server struct {
	opt          Options
	cfg          atomic.Pointer[config.Config]
	cfgMu        sync.Mutex // held while cfg is replaced
	log          *slog.Logger
	start        time.Time
	wall         int64 // ms since 1970 at start
	tree         atomic.Pointer[tree.Tree]
	store        *store.Store
	bytesRead    atomic.Int64 // read from the files of the store
	disk         *diskWatch
	busy         *busyWatch
	member       *member         // nil: the server is standalone
	audit        *audit.Log      // nil: there is no audit log
	secrets      replica.Secrets // the session secrets of the configuration at the start
	clientMu     sync.Mutex      // held while the client port moves
	client       net.Listener    // nil: no client port is configured
	secureClient net.Listener    // nil: no client port with TLS is configured
	certs        certificates
	logins       *clientLogins // nil: clients cannot log in by SASL
	attempts     *attempts
	connThrottle atomic.Pointer[connThrottle] // nil: off
	peerAuth     *peerAuth                    // nil: servers do not log in to each other
	rates        atomic.Pointer[rateLimits]   // nil: none is configured

	fanOuts      fanOuts
	inbox        *inbox
	journal      *journal
	historyLock  historyLock
	pendingFlush pendingFlush
	conns        *connTable
	stats        *stats
	milestones   *milestones
	tracer       *tracer
	notices      *notice.Log // limits log messages about mistakes of clients and other servers
	budget       budget
	turns        *turns

	inProcess      atomic.Int64 // number of requests with the loop
	inProcessBytes atomic.Int64
	large          atomic.Int64 // bytes of the large requests among them
	hasLeader      atomic.Bool  // there is a leader: readers carry out reads
	lease          atomic.Int64 // the last Mono time at which readers may answer pings
	leaseWall      atomic.Int64 // the last Wall time at which readers may answer pings
	serving        atomic.Bool  // the data is loaded, and the server is not stopping
	stopping       atomic.Bool
	readOnly       atomic.Bool // standalone: there is no space for the log
	space          atomic.Pointer[diskSpace]

	replayed int // number of transactions replayed from the log at the start

	lastSnapshot atomic.Pointer[SnapshotInfo] // nil: there is none
	loaded       atomic.Bool                  // the data has been loaded
	wanted       chan snapshotRequest         // to the snapshotter
	restores     chan restoreRequest          // from the loop to the log writer
	restoring    atomic.Bool                  // a command restore is in process

	reloaded    chan struct{} // capacity 1; the interval between purges has changed
	ready       chan struct{} // closed when clients are served
	firstServes sync.Once
	stop        chan struct{} // closed when stopping is set
	loopEnded   chan struct{} // closed by the loop when it ends
	dead        chan struct{} // closed when everything must end at once
	failOnce    sync.Once
	failure     error // why the server has ended; read it only after dead is closed

	readers sync.WaitGroup // readers of connections, and accept loops
	writers sync.WaitGroup // flushers and other short-lived goroutines
}

// New opens the data directory and the client port. Clients wait in the backlog until Run
// serves them. If Run will not be called, the caller must call Close.
func New(o Options) (*Server, error) {
	o.fill()
	s := &Server{opt: o, log: o.Log, start: time.Now(), inbox: newInbox(cmp.Or(o.DiskQueueMax, diskQueueMax)), conns: newConnTable(maxFiles()), stats: newStats(),
		notices: notice.New(o.Log), turns: newTurns(), attempts: newAttempts(),
		wanted: make(chan snapshotRequest), restores: make(chan restoreRequest),
		ready: make(chan struct{}), dead: make(chan struct{}), loopEnded: make(chan struct{}), stop: make(chan struct{})}
	s.budget.each = cmp.Or(o.OutputMax, outputMax)
	s.budget.limit.Store(replyMemoryOf(o.Config))
	s.wall = s.start.UnixMilli()
	s.cfg.Store(o.Config)
	s.reloadConnThrottle(o.Config)
	s.reloadRates(o.Config)
	s.milestones, s.tracer = newMilestones(), newTracer(s)
	s.tracer.configure(o.Config)
	s.tree.Store(s.newTree())
	s.member = newMember(s)
	s.journal = newJournal(s.member == nil)
	s.lease.Store(replica.Never)
	s.hasLeader.Store(true)
	if s.member != nil {
		s.lease.Store(-1)
		s.hasLeader.Store(false)
	}
	s.gauges()
	s.disk, s.busy = newDiskWatch(s), newBusyWatch(s)
	var err error
	if s.store, err = s.openStore(); err != nil {
		return nil, err
	}
	if err = s.openSecurity(o.Config); err == nil {
		err = s.openClientPorts()
	}
	if err != nil {
		s.peerAuth.end()
		s.closeAudit()
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

// fill replaces the zero values of options by their defaults.
func (o *Options) fill() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = store.OS()
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
}

// openSecurity reads the secrets and certificates, opens the audit log, and prepares the
// logins. After an error, the caller must call peerAuth.end and closeAudit.
func (s *Server) openSecurity(c *config.Config) (err error) {
	if s.secrets, err = readSecrets(c); err != nil {
		return err
	}
	if s.audit, err = s.openAudit(c); err != nil {
		return err
	}
	if s.certs, err = openCertificates(&c.TLS); err != nil {
		return err
	}
	if s.logins, err = openLogins(c); err != nil {
		return err
	}
	s.peerAuth, err = openPeerAuth(c, s.members, s.log, s.notices)
	return err
}

// lockTimeout is how long a start waits until an earlier process releases the lock on
// the data. After a process is killed, the system takes a moment to free its memory.
const lockTimeout = 3 * time.Second

// openStore opens the data directory and waits up to lockTimeout for its lock. A timer reports a
// disk that does not answer, because the goroutine of the disk watch does not run yet.
func (s *Server) openStore() (*store.Store, error) {
	opening := time.AfterFunc(s.disk.limit()+stallPollMax, s.disk.check)
	defer opening.Stop()
	counted := store.CountReads(s.opt.FS, func(n int64) { s.bytesRead.Add(n) })
	fs, o := store.Observe(counted, s.disk), storeOptions(s.config())
	retry := time.NewTicker(lockTimeout / 100)
	defer retry.Stop()
	for end := time.Now().Add(lockTimeout); ; <-retry.C {
		st, err := store.Open(fs, o)
		var busy *store.BusyError
		if !errors.As(err, &busy) || time.Now().After(end) {
			return st, err
		}
	}
}

// Close releases a server that was never run.
func (s *Server) Close() error {
	s.closeClientPorts()
	s.peerAuth.end()
	s.notices.Close()
	s.closeAudit()
	return s.store.Close()
}

// Addr returns the address of the client port; nil if none is configured.
func (s *Server) Addr() net.Addr {
	ln := s.clientPort()
	if ln == nil {
		return nil
	}
	return ln.Addr()
}

// SecureAddr returns the address of the client port with TLS; nil if none is configured.
func (s *Server) SecureAddr() net.Addr {
	if s.secureClient == nil {
		return nil
	}
	return s.secureClient.Addr()
}

// Ready returns a channel that is closed when the server has started to serve clients.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Reload applies the keys that may change while the server runs, and reads the files with
// certificates and session secrets again. It returns which keys those are, which others differ, and which
// certificates were replaced: see config.Changes.
func (s *Server) Reload(c *config.Config) config.Changes {
	s.cfgMu.Lock()
	now, changes := s.config().Reloaded(c)
	s.cfg.Store(now)
	s.cfgMu.Unlock()
	s.budget.limit.Store(replyMemoryOf(now))
	s.reloadConnThrottle(now)
	s.reloadRates(now)
	s.tracer.configure(now)
	s.reloadSecrets(now)
	s.reloadCertificates(&changes)
	if slices.Contains(changes.Taken, "autopurge.purgeInterval") {
		select {
		case s.reloaded <- struct{}{}:
		default: // the snapshotter has not seen the last change yet, and will see this one too
		}
	}
	return changes
}

func (s *Server) config() *config.Config { return s.cfg.Load() }

// members returns the committed membership; nil if the server is standalone.
func (s *Server) members() *ensemble.Membership { return s.config().Ensemble.Members }

// clock returns the monotonic time since the start, in ns.
func (s *Server) clock() int64 { return int64(time.Since(s.start)) }

// times returns the current time for the replica.
func (s *Server) times() replica.Time {
	now := time.Now()
	return replica.Time{Mono: int64(now.Sub(s.start)) / 1e6, Wall: s.skewed(now).UnixMilli()}
}

// fail ends the server at once. Run returns err.
func (s *Server) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = err
		s.serving.Store(false)
		close(s.dead)
	})
}

// newTree returns the tree of an empty server.
func (s *Server) newTree() *tree.Tree {
	o := treeOptions(s.config(), s.opt.Seed)
	o.Fired = s.fired
	var t *tree.Tree
	if s.config().Audit.Enable {
		o.SessionDeleted = func(session wire.SessionID, path string) { s.auditEphemeral(t, session, path) }
	}
	t = tree.New(o)
	return t
}

// treeOptions returns the part of the configuration that concerns the tree.
func treeOptions(c *config.Config, seed uint64) tree.Options {
	return tree.Options{
		ExtendedTypes: c.Tree.ExtendedTypes, Emulate353TTL: c.Tree.Emulate353TTL,
		EnforceQuota: c.Tree.EnforceQuota, SkipACL: c.Access.SkipACL,
		SchemeX509: c.TLS.ForClients(), X509Super: c.Access.X509Super,
		SchemeSASL: c.Access.SASLScheme, LetAnySASLUser: c.Access.LetAnySASLUser,
		DigestOff: !c.Storage.Digest, Reconfig: c.Tree.Reconfig,
		ContainerMaxNeverUsedMS: c.Tree.ContainerNeverUsed.Milliseconds(), Seed: seed,
	}
}

// storeOptions returns the part of the configuration that concerns the store.
func storeOptions(c *config.Config) store.Options {
	o := store.Options{
		DataDir: c.DataDir, LogDir: c.DataLogDir, PreallocBytes: c.Storage.PreAllocBytes,
		NoSync: !c.Storage.ForceSync, Compression: store.Compression(c.Storage.Compression),
		OmitDigest: !c.Storage.Digest, OmitLastZxid: !c.Storage.LastProcessedZxid,
		TrustEmpty: c.Storage.TrustEmpty, NoDirCreate: !c.Storage.AutocreateDir, NoDBCreate: !c.Storage.AutocreateDB,
	}
	if o.PreallocBytes == 0 {
		o.PreallocBytes = -1
	}
	return o
}

// aloneID is the server id of a standalone server, whatever myid contains, as with
// ZooKeeper. Its session ids start with it.
const aloneID = 1

// replicaOptions returns the part of the configuration that concerns the replica.
func (s *Server) replicaOptions() replica.Options {
	c := s.config()
	o := replica.Options{
		ServerID: aloneID, TickMS: c.TickTime.Milliseconds(),
		SessionMinMS: int32(c.MinSessionTimeout.Milliseconds()), SessionMaxMS: int32(c.MaxSessionTimeout.Milliseconds()),
		ContainerCheckMS: c.Tree.ContainerInterval.Milliseconds(), ContainersPerMinute: int64(c.Tree.ContainerPerMinute),
	}
	o.ReportAbandoned, o.Secrets = s.audit != nil, s.secrets
	if s.member != nil {
		o.ServerID, o.Member = c.Ensemble.ID, s.member.core
	}
	return o
}

// Run serves clients until ctx is cancelled, then ends cleanly: a leader transfers
// leadership first, if that is possible soon; requests in process are answered; the log
// is made durable; sessions stay alive for the next start. Any other end is an error. Run
// returns when all goroutines have ended. It waits only for a limited time for those that
// are blocked by a disk that does not answer.
func (s *Server) Run(ctx context.Context) error {
	if ln := s.clientPort(); ln != nil {
		s.readers.Go(func() { s.accept(ln, s.config().TLS.ClientUnified, true) })
	}
	if s.secureClient != nil {
		s.readers.Go(func() { s.accept(s.secureClient, true, false) })
	}
	var watch sync.WaitGroup
	watching := make(chan struct{})
	watch.Go(func() { s.disk.run(watching, s.busy.check) })
	defer watch.Wait()
	defer close(watching)
	watchCtx, endWatch := context.WithCancel(ctx)
	defer endWatch()
	loaded, err := s.loadUnless(ctx)
	if err == nil && s.member != nil {
		err = s.member.open()
	}
	stop := func() <-chan struct{} { return loaded }
	if err != nil {
		s.auditServer(audit.OpStart, audit.Failure)
		s.fail(err)
	} else {
		s.auditServer(audit.OpStart, audit.Success)
		s.loaded.Store(true)
		stop = s.serveUntil(ctx, watchCtx)
	}
	endWatch()
	s.peerAuth.end()
	s.shutdown()
	s.closeStore(stop())
	s.notices.Close()
	s.closeAudit()
	return s.failure
}

// serveUntil serves until ctx ends or the server fails. The certificates are watched until
// watchCtx ends. It returns the function that work has returned.
func (s *Server) serveUntil(ctx, watchCtx context.Context) (stop func() <-chan struct{}) {
	s.serving.Store(true) // set first, because a leader announces at once that it is ready
	stop = s.work()
	s.watchCertificates(watchCtx)
	if s.member == nil {
		s.firstServes.Do(func() { close(s.ready) })
	}
	select {
	case <-ctx.Done():
		s.auditServer(audit.OpStop, audit.Invoked)
		s.leave()
	case <-s.dead:
	}
	return stop
}

// errHung: the disk does not answer, so the end of the server did not wait for it.
var errHung = errors.New("the disk does not answer; the server ended without closing the data directory")

// loadUnless loads the data. If the server must end while the disk does not answer, it
// returns early; loaded is closed when nothing is read any more.
func (s *Server) loadUnless(ctx context.Context) (loaded <-chan struct{}, err error) {
	result, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		result <- s.load()
	}()
	select {
	case err := <-result:
		return done, err
	case <-ctx.Done():
	}
	if !s.disk.await(done) {
		return done, errHung
	}
	return done, <-result
}

// closeStore closes the data directory when ended is closed. If the disk does not answer,
// a goroutine does that and closeStore does not wait for it.
func (s *Server) closeStore(ended <-chan struct{}) {
	result, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		<-ended
		result <- s.store.Close()
	}()
	if !s.disk.await(done) {
		s.log.Error("the process ends without closing its files, because the disk does not answer; nothing that was acknowledged is lost", "disk", s.disk.slow())
		s.fail(errHung)
		return
	}
	if err := <-result; err != nil && s.failure == nil {
		s.failure = fmt.Errorf("data directory: %w", err)
	}
}

// work starts the loop, the log writer and the snapshotter. It returns a function that ends
// them, which must be called after the connections have ended. That function returns a channel
// that is closed when these goroutines and all short-lived ones have ended.
func (s *Server) work() (stop func() (ended <-chan struct{})) {
	k := &snapshotter{srv: s, due: make(chan struct{}, 1)}
	snaps := newSnapshots(s, s.opt.Seed, k.due)
	if s.replayed > s.config().Storage.SnapCount/2 {
		// This start had to replay much. With a snapshot the next start has less to replay.
		// ZooKeeper writes a snapshot at every start, even if nothing has changed.
		snaps.ask()
	}
	l := newLoop(s, snaps.ask)
	w := newLogWriter(s, snaps)
	var workers sync.WaitGroup
	quit := make(chan struct{})
	for _, run := range []func(<-chan struct{}){l.run, w.run, k.run} {
		workers.Go(func() { run(quit) })
	}
	return func() <-chan struct{} {
		close(quit)
		<-s.loopEnded
		if s.member != nil {
			s.member.close() // so that the other servers need not wait for this server's disk
		}
		ended := make(chan struct{})
		go func() {
			workers.Wait()
			s.writers.Wait()
			close(ended)
		}()
		return ended
	}
}

// shutdownMax is how long requests in process may take when the server ends cleanly.
const shutdownMax = 5 * time.Second

// shutdown ends all connections: their readers stop reading, wait for the requests in
// process, and flush the output.
func (s *Server) shutdown() {
	s.serving.Store(false)
	s.stopping.Store(true)
	close(s.stop)
	s.closeClientPorts()
	ended := make(chan struct{})
	go func() {
		s.readers.Wait()
		close(ended)
	}()
	for _, c := range s.conns.sockets() {
		c.stopReading()
	}
	if s.member != nil {
		s.inbox.ask(func(*loop) {}) // the loop calls dismiss at the end of the batch
	}
	limit := time.NewTimer(shutdownMax)
	defer limit.Stop()
	select {
	case <-ended:
		return
	case <-s.dead:
	case <-limit.C:
		s.fail(errors.New("shutdown: some requests could not be answered in time"))
	}
	for _, c := range s.conns.sockets() {
		c.out.mu.Lock()
		c.abort()
		c.out.mu.Unlock()
	}
	s.disk.await(ended) // a four-letter word may be asking for file sizes
}
