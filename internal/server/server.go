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

	"bellwether/internal/config"
	"bellwether/internal/notice"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/tree"
)

// Options say what a server is made of.
type Options struct {
	// Config is what the operator wrote. Required; it must not change
	// afterwards, see [Server.Reload].
	Config *config.Config
	// FS holds the data; nil: the operating system's file system.
	FS store.FS
	// Log gets what operators should know; nil: nothing is logged.
	Log *slog.Logger
	// Words answers a four-letter word; known is false for a text that is
	// none. nil: no word is known.
	Words func(s *Server, w Word) (text string, known bool)
	// Seed of everything random; 0: a random one.
	Seed uint64
	// OutputMax is how many bytes of events and replies of writes may wait for
	// a client that does not read, before its connection is closed; 0: 64 MiB.
	OutputMax int
	// DiskQueueMax is how many bytes may wait for the disk before clients and, on
	// a leader, learners' requests wait; 0: 128 MiB. See inbox.
	DiskQueueMax int
	// Seams replace what surrounds the server.
	Seams Seams
}

// Server is one server, alone or of an ensemble. See the package comment for its goroutines.
type Server struct {
	opt    Options
	cfg    atomic.Pointer[config.Config]
	log    *slog.Logger
	start  time.Time
	wall   int64 // ms since 1970 at start
	tree   atomic.Pointer[tree.Tree]
	store  *store.Store
	disk   *diskWatch
	member *member      // nil: it is alone
	client net.Listener // nil: no client port is configured

	inbox   *inbox
	journal *journal
	archive archive
	dirty   dirty
	crowd   *crowd
	stats   *stats
	notices *notice.Log // of what clients and other servers do wrong
	budget  budget
	turns   *turns

	inProcess      atomic.Int64 // requests with the loop
	inProcessBytes atomic.Int64
	large          atomic.Int64 // bytes of the large ones among them
	led            atomic.Bool  // there is a leader: readers carry out reads
	lease          atomic.Int64 // the last Mono at which readers answer pings
	leaseWall      atomic.Int64 // the last Wall at which they do
	serving        atomic.Bool  // loaded, and not stopping
	stopping       atomic.Bool
	readOnly       atomic.Bool // alone: the log has no room

	replayed int // transactions read from the log at the start

	reloaded    chan struct{} // of one: the interval of purges is another one
	ready       chan struct{} // closed when clients are served
	firstServes sync.Once
	loopEnded   chan struct{} // closed by the loop when it ends
	dead        chan struct{} // closed when everything must end at once
	failOnce    sync.Once
	failure     error // why, read after dead is closed

	readers sync.WaitGroup // connections' readers and the accept loops
	writers sync.WaitGroup // flushing goroutines
}

// New opens the data directory and the client port. Run serves; until then
// clients wait in the backlog. A server that is not to be run is to be closed.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS = store.OS()
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	s := &Server{opt: o, log: o.Log, start: time.Now(), inbox: newInbox(cmp.Or(o.DiskQueueMax, diskQueueMax)), crowd: newCrowd(), stats: newStats(),
		notices: notice.New(o.Log), turns: newTurns(),
		ready: make(chan struct{}), dead: make(chan struct{}), loopEnded: make(chan struct{})}
	s.budget.each = cmp.Or(o.OutputMax, outputMax)
	s.budget.limit.Store(replyMemoryOf(o.Config))
	s.wall = s.start.UnixMilli()
	s.cfg.Store(o.Config)
	s.tree.Store(s.newTree())
	s.member = newMember(s)
	s.journal = newJournal(s.member == nil)
	s.lease.Store(replica.Never)
	s.led.Store(true)
	if s.member != nil {
		s.lease.Store(-1)
		s.led.Store(false)
	}
	s.gauges()
	s.disk = newDiskWatch(s)
	var err error
	if s.store, err = s.openStore(); err != nil {
		return nil, err
	}
	if s.client, err = s.openClients(); err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

// lockPatience is how long a start waits for a process before it to let go of
// the data: the memory of one that was killed takes a moment to be taken down.
const lockPatience = 3 * time.Second

// openStore opens the data directory, waiting a little for its lock. A disk that
// does not answer is reported, although the server cannot start then.
func (s *Server) openStore() (*store.Store, error) {
	opening := time.AfterFunc(s.disk.limit()+stallPollMax, s.disk.check)
	defer opening.Stop()
	fs, o := store.Observe(s.opt.FS, s.disk), storeOptions(s.config())
	retry := time.NewTicker(lockPatience / 100)
	defer retry.Stop()
	for end := time.Now().Add(lockPatience); ; <-retry.C {
		st, err := store.Open(fs, o)
		var busy *store.BusyError
		if !errors.As(err, &busy) || time.Now().After(end) {
			return st, err
		}
	}
}

// Close gives up a server that was never run.
func (s *Server) Close() error {
	if s.client != nil {
		s.client.Close()
	}
	s.notices.Close()
	return s.store.Close()
}

// Addr is the address of the client port, nil if none is configured.
func (s *Server) Addr() net.Addr {
	if s.client == nil {
		return nil
	}
	return s.client.Addr()
}

// Ready is closed when clients are served.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Reload takes over what may change while the server runs, and says which keys
// those are and which others differ: see config.Reloaded.
func (s *Server) Reload(c *config.Config) config.Changes {
	now, changes := s.config().Reloaded(c)
	s.cfg.Store(now)
	s.budget.limit.Store(replyMemoryOf(now))
	if slices.Contains(changes.Taken, "autopurge.purgeInterval") {
		select {
		case s.reloaded <- struct{}{}:
		default: // the keeper has not looked yet, and will see this one
		}
	}
	return changes
}

func (s *Server) config() *config.Config { return s.cfg.Load() }

// clock is the time since the start in ns, monotonic.
func (s *Server) clock() int64 { return int64(time.Since(s.start)) }

// times is the moment for the replica.
func (s *Server) times() replica.Time {
	now := time.Now()
	return replica.Time{Mono: int64(now.Sub(s.start)) / 1e6, Wall: s.skewed(now).UnixMilli()}
}

// fail ends everything at once, for a reason that Run returns.
func (s *Server) fail(err error) {
	s.failOnce.Do(func() {
		s.failure = err
		s.serving.Store(false)
		close(s.dead)
	})
}

// newTree is the tree of an empty server.
func (s *Server) newTree() *tree.Tree {
	o := treeOptions(s.config(), s.opt.Seed)
	o.Fired = s.stats.fired
	return tree.New(o)
}

// treeOptions are the tree's part of the configuration.
func treeOptions(c *config.Config, seed uint64) tree.Options {
	return tree.Options{
		ExtendedTypes: c.Tree.ExtendedTypes, Emulate353TTL: c.Tree.Emulate353TTL,
		EnforceQuota: c.Tree.EnforceQuota, SkipACL: c.Access.SkipACL,
		DigestOff: !c.Storage.Digest, Reconfig: c.Tree.Reconfig && c.Standalone(),
		ContainerMaxNeverUsedMS: c.Tree.ContainerNeverUsed.Milliseconds(), Seed: seed,
	}
}

// storeOptions are the store's part of the configuration.
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

// aloneID is the server id of a standalone server, whatever myid says, as with
// ZooKeeper: session ids begin with it.
const aloneID = 1

// replicaOptions are the replica's part of the configuration.
func (s *Server) replicaOptions() replica.Options {
	c := s.config()
	o := replica.Options{
		ServerID: aloneID, TickMS: c.TickTime.Milliseconds(),
		SessionMinMS: int32(c.MinSessionTimeout.Milliseconds()), SessionMaxMS: int32(c.MaxSessionTimeout.Milliseconds()),
		ContainerCheckMS: c.Tree.ContainerInterval.Milliseconds(), ContainersPerMinute: int64(c.Tree.ContainerPerMinute),
	}
	if s.member != nil {
		o.ServerID, o.Member = c.Ensemble.ID, s.member.mind
	}
	return o
}

// Run serves until ctx is cancelled, then ends cleanly: a leader transfers
// leadership first, if that can be done soon; requests in process are
// answered, the log is synced, sessions stay alive for the next start. Any other
// end is an error. It returns when all goroutines have ended, but for those that
// wait for a disk that does not answer: for them it waits a bounded time.
func (s *Server) Run(ctx context.Context) error {
	if s.client != nil {
		s.readers.Go(func() { s.accept(s.client) })
	}
	var watch sync.WaitGroup
	watching := make(chan struct{})
	watch.Go(func() { s.disk.run(watching) })
	defer watch.Wait()
	defer close(watching)
	loaded, err := s.loadUnless(ctx)
	if err == nil && s.member != nil {
		err = s.member.open()
	}
	stop := func() <-chan struct{} { return loaded }
	if err != nil {
		s.fail(err)
	} else {
		s.serving.Store(true) // first: who leads at once says that it is ready
		stop = s.work()
		if s.member == nil {
			s.firstServes.Do(func() { close(s.ready) })
		}
		select {
		case <-ctx.Done():
			s.leave()
		case <-s.dead:
		}
	}
	s.shutdown()
	s.closeStore(stop())
	s.notices.Close()
	return s.failure
}

// errHung: the disk does not answer, so the end of the server does not wait for it.
var errHung = errors.New("the disk does not answer; the server ended without closing the data directory")

// loadUnless loads the data. It gives up when the server is to end and the disk
// does not answer; loaded is closed when nothing is read any more.
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

// closeStore closes the data directory once its users have ended. Where the disk
// does not answer that is left to a goroutine.
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

// work starts the goroutines behind the connections. The function returned ends
// them once the connections have ended; what it returns is closed when they have.
func (s *Server) work() (stop func() (ended <-chan struct{})) {
	k := &keeper{srv: s, due: make(chan struct{}, 1)}
	snaps := newSnapshots(s, s.opt.Seed, k.due)
	if s.replayed > s.config().Storage.SnapCount/2 {
		// After a start that had to replay much, so that the next has less to
		// do. (ZooKeeper writes one at every start, even if nothing changed.)
		snaps.ask()
	}
	l := newLoop(s)
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
			s.member.close() // the others need not wait for our disk
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

// shutdownMax is how long requests in process may take at a clean end.
const shutdownMax = 5 * time.Second

// shutdown ends all connections: their readers stop reading, wait for what
// is in process, and flush.
func (s *Server) shutdown() {
	s.serving.Store(false)
	s.stopping.Store(true)
	if s.client != nil {
		s.client.Close()
	}
	ended := make(chan struct{})
	go func() {
		s.readers.Wait()
		close(ended)
	}()
	for _, c := range s.crowd.sockets() {
		c.stopReading()
	}
	if s.member != nil {
		s.inbox.ask(func(*loop) {}) // the batch ends with dismiss
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
	for _, c := range s.crowd.sockets() {
		c.out.mu.Lock()
		c.close()
		c.out.mu.Unlock()
	}
	s.disk.await(ended) // a four-letter word may ask for the sizes of files
}
