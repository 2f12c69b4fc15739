package config

import (
	"crypto"
	"slices"
	"time"

	"bellwether/internal/ensemble"

	_ "crypto/md5"    // a value of digestAlg
	_ "crypto/sha1"   // the default of digestAlg
	_ "crypto/sha256" // values of digestAlg
	_ "crypto/sha3"   // values of digestAlg
	_ "crypto/sha512" // values of digestAlg
)

// Config holds every setting of a server. [Load] and [Default] make one.
type Config struct {
	// File is the path that was read, empty for [Default].
	File string

	DataDir    string // snapshots and myid
	DataLogDir string // transaction logs; equals DataDir if not set apart

	// Client is where plain clients connect. The zero value means that no
	// client port is open, which is allowed. Its port may be 0 (any free one).
	Client ensemble.HostPort

	TickTime          time.Duration
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration

	// FourLetterWords are the words of 4lw.commands.whitelist, "*" among them
	// for all. Ask AllowsWord.
	FourLetterWords []string
	// ReadOnlyMode lets a server of an ensemble that has no quorum answer the
	// reads of clients that accept that, and allows the word isro.
	ReadOnlyMode bool
	// ReadUncommitted lets such a server show its log before it has served in a
	// quorum since its start.
	ReadUncommitted bool

	Limits    Limits
	Storage   Storage
	Tree      Tree
	Access    Access
	Admin     Admin
	Metrics   Metrics
	Ensemble  Ensemble
	Autopurge Autopurge

	// Notices name what was written and has no effect, in order of the lines.
	Notices []Notice
	// Warnings name what is allowed but unwise.
	Warnings []Notice

	// given is what was written, by key; of server, group and weight lines and of myid too.
	given map[string]string
}

// Limits bound what clients can ask for.
type Limits struct {
	ClientCnxns    int           // connections of one source address; 0 or less: no limit
	Cnxns          int           // connections in all; 0 or less: no limit
	Backlog        int           // as configured; for the word conf only
	Outstanding    int           // requests in process before clients are no longer read
	FrameBytes     int           // largest request, its four bytes of length not counted
	LargeBytes     int           // large requests in process, in all
	LargeThreshold int           // a request above this is large; 0 or less: none is
	ReplyMemoryMB  int           // MiB of memory for replies that wait for clients; -1: a quarter of what the machine has
	Sessionless    time.Duration // until a connection without session is closed
	KeepAlive      bool          // TCP keep-alive on client connections
	Throttle       Throttle
}

// Throttle is the request throttler.
type Throttle struct {
	MaxRequests  int           // requests past the throttler at a time; 0 or less: off
	Stall        time.Duration // wait before it looks again
	DropStale    bool          // stale requests are dropped and their connection closed
	StaleLatency bool          // stale if older than its session's timeout
	OpWait       time.Duration // longer in the queue: error Throttledop; 0: off
}

// Storage is how transactions and snapshots are kept.
type Storage struct {
	PreAllocBytes     int64 // log padding
	SnapCount         int   // transactions between snapshots, at least 2
	SnapSizeBytes     int64 // log bytes between snapshots; 0 or less: no limit
	LogSizeBytes      int64 // size at which a log is rolled; 0 or less: no limit
	ForceSync         bool  // false: acknowledge without fsync
	SyncWarning       time.Duration
	StallLimit        time.Duration // a disk that does not answer a call for longer stalls
	Compression       string        // of snapshots: "", "gz" or "snappy"
	TrustEmpty        bool          // logs without a snapshot are no error
	Digest            bool          // tree digests are kept and compared
	LastProcessedZxid bool          // snapshots carry the block that 3.9 added
	AutocreateDir     bool          // missing data directories are made
	AutocreateDB      bool          // an empty history may vote
}

// Autopurge removes old snapshots and logs.
type Autopurge struct {
	Retain   int           // snapshots kept, at least 3
	Interval time.Duration // 0: off
}

// Tree is what znodes can do.
type Tree struct {
	ExtendedTypes      bool // TTL znodes
	Emulate353TTL      bool // TTLs in the layout of 3.5.3 are read as well
	EnforceQuota       bool // quotas refuse writes
	ContainerInterval  time.Duration
	ContainerPerMinute int
	ContainerNeverUsed time.Duration // 0: containers that never had a child stay
	Reconfig           bool          // reconfigEnabled
}

// Access says who may do what.
type Access struct {
	SkipACL     bool
	SuperDigest string      // name:<base64 of the hash>; empty: no super user
	DigestHash  crypto.Hash // of the scheme digest; available
}

// Admin is the HTTP admin server. This version has none.
type Admin struct {
	Enabled     bool
	Address     ensemble.HostPort
	CommandURL  string
	IdleTimeout time.Duration
}

// Metrics is the metrics page. This version has none.
type Metrics struct {
	Provider string // Java class name
	Address  ensemble.HostPort
}

// Ensemble is what a server knows of the others.
type Ensemble struct {
	// Members are the servers of the file or the dynamic file; nil if it
	// names none.
	Members *ensemble.Membership
	// ID is this server's number from myid; HasID tells whether there is one.
	ID    ensemble.ServerID
	HasID bool

	PeerType          ensemble.Role
	StandaloneEnabled bool   // one participant means standalone
	DynamicFile       string // as written; empty: members stand in zoo.cfg
	InitLimit         int    // ticks
	SyncLimit         int    // ticks
	ListenOnAllIPs    bool
	LeaderServes      bool
	KeepClients       bool // client connections outlive a change of leaders
	LocalSessions     bool // new sessions live on one server alone
	UpgradeLocal      bool // ... until they create an ephemeral
	ElectionConnect   time.Duration
	ElectionRead      time.Duration // until the first message between two servers; 0 or less: SyncLimit ticks
	CommitLogCount    int
	SnapshotFactor    float64
	MultiAddress      bool
}

// Standalone reports whether the server runs alone: it knows no participants,
// or one and standaloneEnabled.
func (c *Config) Standalone() bool {
	m := c.Ensemble.Members
	return m == nil || len(m.Voters()) == 1 && c.Ensemble.StandaloneEnabled
}

// AllowsWord reports whether the whitelist allows a four-letter word. srvr
// and our elog always are, isro while read-only mode is on and in an ensemble,
// where a member with a full disk is read-only in any case and its clients look
// for another with this word.
func (c *Config) AllowsWord(word string) bool {
	return word == "srvr" || word == "elog" || word == "isro" && (c.ReadOnlyMode || !c.Standalone()) ||
		slices.Contains(c.FourLetterWords, "*") || slices.Contains(c.FourLetterWords, word)
}

// Default returns the settings of a server that nobody configured: ZooKeeper's
// defaults with the tick of its sample file (2 s), but only on loopback and
// with the data in ./bellwether-data.
func Default() *Config {
	c := defaults()
	c.DataDir, c.DataLogDir = "bellwether-data", "bellwether-data"
	c.TickTime = 2 * time.Second
	c.Client = ensemble.HostPort{Host: "127.0.0.1", Port: 2181}
	c.Admin.Enabled = false
	c.derive()
	return c
}

// derive fills in what follows from other settings.
func (c *Config) derive() {
	if c.DataLogDir == "" {
		c.DataLogDir = c.DataDir
	}
	if c.MinSessionTimeout < 0 {
		c.MinSessionTimeout = 2 * c.TickTime
	}
	if c.MaxSessionTimeout < 0 {
		c.MaxSessionTimeout = 20 * c.TickTime
	}
	c.Storage.SnapCount = max(c.Storage.SnapCount, snapCountMin)
	c.Autopurge.Retain = max(c.Autopurge.Retain, retainMin)
}

// The least values that ZooKeeper raises smaller ones to.
const (
	snapCountMin = 2
	retainMin    = 3
)
