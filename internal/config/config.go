package config

import (
	"crypto"
	"path/filepath"
	"slices"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/secure"

	_ "crypto/md5"    // a value of digestAlg
	_ "crypto/sha1"   // the default of digestAlg
	_ "crypto/sha256" // values of digestAlg
	_ "crypto/sha3"   // values of digestAlg
	_ "crypto/sha512" // values of digestAlg
)

// Config holds every setting of a server. [Load] and [Default] return one.
type Config struct {
	// File is the path that was read, or empty for [Default].
	File string

	DataDir    string // snapshots and myid
	DataLogDir string // transaction logs; equals DataDir unless set separately

	// Client is the address for client connections without TLS. The zero value means that no
	// client port is open, which is allowed. Its port may be 0 (any free one).
	Client ensemble.HostPort

	TickTime          time.Duration
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration

	// FourLetterWords are the words of 4lw.commands.whitelist; "*" stands for all words.
	// AllowsWord interprets them.
	FourLetterWords []string
	// ReadOnlyMode lets a server that has no quorum answer reads of clients that accept a
	// read-only server. It also allows the word isro.
	ReadOnlyMode bool
	// ReadUncommitted lets a read-only server show its log even if it has not served in a
	// quorum since its start.
	ReadUncommitted bool

	Limits    Limits
	Storage   Storage
	Tree      Tree
	Access    Access
	TLS       TLS
	SASL      SASL
	Admin     Admin
	Metrics   Metrics
	Tracing   Tracing
	Audit     Audit
	Ensemble  Ensemble
	Autopurge Autopurge

	// Notices describe settings that were written but have no effect, in order of the lines.
	Notices []Notice
	// Warnings describe settings that are allowed but unwise.
	Warnings []Notice

	// text is the text of File, without its secrets.
	text string

	// given holds the written text of each key, of server, group and weight lines, and of myid.
	given map[string]string
}

// Limits bound the resources that clients can use.
type Limits struct {
	ClientCnxns    int           // connections from one source address; 0 or less: no limit
	Cnxns          int           // connections in total; 0 or less: no limit
	Backlog        int           // as configured; used only by the word conf
	Outstanding    int           // requests in progress above which the server stops reading from clients
	FrameBytes     int           // size of the largest request, without its four bytes of length
	LargeBytes     int           // total size of the large requests in progress
	LargeThreshold int           // a request above this size is large; 0 or less: none is
	ReplyMemoryMB  int           // MiB for replies that wait for clients; -1: a quarter of the machine's memory
	Sessionless    time.Duration // a connection without a session is closed after this time
	KeepAlive      bool          // TCP keep-alive on client connections
	IPv6Bits       int           // IPv6 addresses that agree in this many leading bits are one client
	LoginDelay     time.Duration // longest delay of a login after others have failed; 0: none
	Throttle       Throttle
	Connections    ConnectionThrottle
	Rates          Rates
}

// Rates are the limits on requests and their bytes in a second; 0: no limit.
type Rates struct {
	Requests, Bytes         int        // for each client address
	PathRequests, PathBytes []PathRate // for znodes and what is below them, longest path first
}

// Limited reports whether there is any such limit.
func (r *Rates) Limited() bool {
	return r.Requests > 0 || r.Bytes > 0 || len(r.PathRequests)+len(r.PathBytes) > 0
}

// ConnectionThrottle holds the settings of the connection throttle.
type ConnectionThrottle struct {
	Tokens        int           // size of the bucket, in connections; 0: no throttle
	FillTime      time.Duration // time between refills
	FillCount     int           // connections for which each refill has tokens
	Freeze        time.Duration // time between changes of the drop probability; negative: it stays 0
	DropIncrease  float64       // step by which the drop probability rises; DropDecrease: by which it falls
	DropDecrease  float64
	DecreaseRatio float64 // share of missing tokens up to which the probability falls
	Weighted      bool    // connections cost the following tokens, otherwise one each
	Global        int     // a new session; Tokens and FillCount count such connections
	Local         int     // a new local session
	Renewed       int     // a session that continues
}

// Throttle holds the settings of the request throttler.
type Throttle struct {
	MaxRequests  int           // requests that may be in progress; 0 or less: no throttling
	Stall        time.Duration // how long a held request waits before the next check
	DropStale    bool          // drop stale requests and close their connections
	StaleLatency bool          // a request older than its session's timeout is stale
	OpWait       time.Duration // a request queued for longer fails with Throttledop; 0: off
}

// Storage says how transactions and snapshots are stored.
type Storage struct {
	PreAllocBytes     int64 // how far a log is extended ahead of its records
	SnapCount         int   // transactions between snapshots, at least 2
	SnapSizeBytes     int64 // log bytes between snapshots; 0 or less: no limit
	LogSizeBytes      int64 // size at which a new log is started; 0 or less: no limit
	ForceSync         bool  // false: writes are acknowledged without fsync
	SyncWarning       time.Duration
	StallLimit        time.Duration // the disk counts as stalled if a call takes longer
	Compression       string        // method for snapshots: "", "gz" or "snappy"
	TrustEmpty        bool          // logs without a snapshot are accepted
	Digest            bool          // tree digests are computed and compared
	LastProcessedZxid bool          // snapshots contain the block that ZooKeeper 3.9 added
	AutocreateDir     bool          // missing data directories are created
	AutocreateDB      bool          // a server with an empty history may vote
}

// Autopurge says which old snapshots and logs are deleted.
type Autopurge struct {
	Retain   int           // snapshots kept, at least 3
	Interval time.Duration // 0: off
}

// Tree says which features znodes have.
type Tree struct {
	ExtendedTypes      bool // TTL znodes
	Emulate353TTL      bool // TTLs in the layout of ZooKeeper 3.5.3 are recognised as well
	EnforceQuota       bool // writes above a hard quota are refused
	ContainerInterval  time.Duration
	ContainerPerMinute int
	ContainerNeverUsed time.Duration // 0: containers that never had a child are kept
	Reconfig           bool          // reconfigEnabled
}

// Access holds the settings of access control.
type Access struct {
	SkipACL bool
	// SessionSecretFile holds the secrets that make the passwords of sessions; empty: they
	// are ZooKeeper's checksums.
	SessionSecretFile string
	X509Super         string      // subject of the certificate of a super user; empty: none
	SuperDigest       string      // name:<base64 of the hash>; empty: no super user
	DigestHash        crypto.Hash // the hash of the scheme digest; the program links it in

	SASLScheme      bool     // ACLs may have entries of the scheme sasl
	SASLSuper       string   // superUser
	SASLSupers      []string // the SASL ids of all super users, SASLSuper included
	LetAnySASLUser  string   // the id in ACLs that every SASL user satisfies; empty: none
	RequireSASL     bool     // clients must log in by SASL
	EnforceAuth     bool     // clients must have an id of one of AuthSchemes
	AuthSchemes     []string
	AllowSASLFailed bool // clients whose SASL login failed may stay, unless it is required
}

// RequiredSchemes returns the schemes of which a client must have an id before it is served;
// nil: it need not have any.
func (a *Access) RequiredSchemes() []string {
	switch {
	case a.RequireSASL:
		return []string{schemeSASL}
	case a.EnforceAuth:
		return a.AuthSchemes
	}
	return nil
}

// Admin holds the settings of the HTTP admin server.
type Admin struct {
	Enabled        bool
	Address        ensemble.HostPort
	CommandURL     string        // path of ZooKeeper's commands, which begins with /
	IdleTimeout    time.Duration // 0 or less: connections stay open
	HTTPVersion    int           // 20: HTTP/2 is accepted over TLS
	Unified        bool          // accepts HTTP and HTTPS
	ForceHTTPS     bool          // accepts only HTTPS
	NeedClientAuth bool          // clients with TLS must show a certificate
	ForwardedFor   bool          // the header X-Forwarded-For gives the address of clients that authenticate by ip
	RateInterval   time.Duration // shortest time between two restores; a thousandth of it: between two snapshots
	Snapshot       bool          // the command snapshot is enabled
	Restore        bool          // the command restore is enabled
	// TokenFile and CertificateFile hold the operators who may sign in; empty: none.
	TokenFile, CertificateFile string
	Connections                int // greatest number of connections
	EventStreams               int // greatest number of event streams
}

// TLS reports whether the admin server accepts HTTPS.
func (a *Admin) TLS() bool { return a.Enabled && (a.Unified || a.ForceHTTPS) }

// Metrics says how metrics are exported.
type Metrics struct {
	Provider string            // Java class name
	Address  ensemble.HostPort // of the port of the provider for Prometheus
	Process  bool              // export metrics of the process too
}

// OwnPort reports whether metrics have a port of their own: the provider is that for Prometheus.
func (m *Metrics) OwnPort() bool { return m.Provider == prometheusMetric }

// Off reports whether no metrics are exported.
func (m *Metrics) Off() bool { return m.Provider == nullMetric }

// Tracing says which requests the server logs or keeps with the times of their stages.
type Tracing struct {
	SlowAfter time.Duration // operations that take longer are logged; 0: none is
	Enabled   bool          // the last requests are kept
	Kept      int           // how many
}

// TLS says which ports use TLS, and with what certificates.
type TLS struct {
	// Client is the address for client connections with TLS. The zero value means that no
	// such port is open.
	Client        ensemble.HostPort
	ClientUnified bool // the port without TLS accepts TLS too
	ClientReload  bool // the files of Clients are read again when they change
	Quorum        bool // this server dials others with TLS
	QuorumUnified bool // the port accepts connections of both kinds
	QuorumReload  bool // the files of Servers are read again when they change

	Clients secure.Settings // the keys ssl.*, for connections of clients
	Servers secure.Settings // the keys ssl.quorum.*, for connections between servers
}

// ForClients reports whether a client port uses TLS.
func (t *TLS) ForClients() bool { return t.ClientUnified || !t.Client.IsZero() }

// ForServers reports whether connections between servers use TLS.
func (t *TLS) ForServers() bool { return t.Quorum || t.QuorumUnified }

// Audit holds the settings of the audit log.
type Audit struct {
	Enable bool
	File   string // never empty if Enable is set
	Format string // text or json
}

// Ensemble holds the membership and the settings that concern other servers.
type Ensemble struct {
	// Members are the servers of zoo.cfg or of the dynamic file; nil if there are none.
	Members *ensemble.Membership
	// ID is this server's number from myid; HasID reports whether myid gave one.
	ID    ensemble.ServerID
	HasID bool

	PeerType          ensemble.Role
	StandaloneEnabled bool   // a server that is the only participant runs standalone
	DynamicFile       string // path as written; empty: the members are in zoo.cfg
	InitLimit         int    // in ticks
	SyncLimit         int    // in ticks
	ListenOnAllIPs    bool
	LeaderServes      bool
	KeepClients       bool // client connections survive a change of leaders
	LocalSessions     bool // new sessions are known to one server only
	UpgradeLocal      bool // a local session that creates an ephemeral becomes global
	ElectionConnect   time.Duration
	ElectionRead      time.Duration // time for the first message between two servers; 0 or less: SyncLimit ticks
	CommitLogCount    int
	// ObserverMasterPort is the port on which followers accept observers; 0 or less: none.
	// ObserverQueueMax bounds what waits for one observer there, in bytes.
	ObserverMasterPort, ObserverQueueMax int
	SnapshotFactor                       float64
	MultiAddress                         bool
	Priorities                           map[ensemble.ServerID]int // leaderPriority.N; 0 for other servers
}

// Standalone reports whether the server runs standalone: it has no participants, or one
// participant and standaloneEnabled.
func (c *Config) Standalone() bool {
	m := c.Ensemble.Members
	return m == nil || len(m.Voters()) == 1 && c.Ensemble.StandaloneEnabled
}

// AllowsWord reports whether the whitelist allows a four-letter word. srvr and elog are
// always allowed. isro is allowed in read-only mode and in every ensemble: a member with a
// full disk is read-only in any case, and its clients use isro to look for another server.
func (c *Config) AllowsWord(word string) bool {
	return word == "srvr" || word == "elog" || word == "isro" && (c.ReadOnlyMode || !c.Standalone()) ||
		slices.Contains(c.FourLetterWords, "*") || slices.Contains(c.FourLetterWords, word)
}

// Default returns the settings of a server without a configuration file: ZooKeeper's
// defaults with the tick of its sample file (2 s), but only on the loopback address and
// with the data in ./bellwether-data.
func Default() *Config {
	c := defaults()
	c.DataDir, c.DataLogDir = "bellwether-data", "bellwether-data"
	c.TickTime = 2 * time.Second
	c.Client = ensemble.HostPort{Host: "127.0.0.1", Port: 2181}
	c.Admin.Address.Host = "127.0.0.1"
	c.derive()
	return c
}

// derive sets the settings that follow from other settings.
func (c *Config) derive() {
	if c.DataLogDir == "" {
		c.DataLogDir = c.DataDir
	}
	if c.Audit.Enable && c.Audit.File == "" {
		c.Audit.File = filepath.Join(c.DataDir, "zookeeper_audit.log")
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

// The minimums to which ZooKeeper raises smaller values.
const (
	snapCountMin = 2
	retainMin    = 3
)
