package check

import (
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/claim/commit"
	"bellwether/internal/claim/registry"
	"bellwether/internal/claim/value"
	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Request is a request of a client.
type Request struct {
	N       int64 // number among all requests of a run
	Client  int
	Session wire.SessionID
	Xid     int32
	Op      wire.OpCode
	Path    string
	Value   string // the value that the request writes
	Body    []byte
	Synced  bool  // a read behind a sync that was sent at the same time
	Issued  int64 // µs at which it was sent
}

// Watching holds what a client watches. Its slices are valid only during See.
type Watching struct {
	Watches []Watch
	Trees   []TreeWatch
}

// Observations of requests and connections.
type (
	// Issued says that a client sends a request.
	Issued struct{ Request }
	// Answered says that a client gets the answer to a request.
	Answered struct {
		Request
		Watching
		At       int64 // µs
		Header   wire.ReplyHeader
		Record   wire.Record
		Seen     wire.Zxid // the largest zxid that the session was shown before
		NoQuorum bool      // the client is connected to a server without a quorum
	}
	// Lost says that the connection ended before the answer.
	Lost struct{ Request }
	// Notified says that a client gets an event.
	Notified struct {
		Watching
		Client     int
		Connection int // number of the connection among those of the client
		Event      tree.Event
	}
	// SentOld says that a client sends a write on a connection although its session is on a newer one or, with
	// Behind, behind the end of its session.
	SentOld struct {
		Session wire.SessionID
		Xid     int32
		Behind  bool
	}
	// Connected says that a server accepts a client's connection.
	Connected struct{ Conn replica.ConnID }
	// Attached says that a connection gets a session. ReadOnly says that the server has no
	// quorum. Seen is what the client has seen before, and Zxid what the server has applied.
	Attached struct {
		Server     ensemble.ServerID
		Conn       replica.ConnID
		Session    wire.SessionID
		ReadOnly   bool
		TimeoutMS  int32
		Seen, Zxid wire.Zxid
		Epoch      wire.Epoch // the epoch in which the server serves
	}
	// Resumes says that a client asks a server for its session. Received says that a server receives a write.
	Resumes  struct{ Conn replica.ConnID }
	Received struct {
		Server  ensemble.ServerID
		Conn    replica.ConnID
		Session wire.SessionID
		Xid     int32
	}
	// Welcomed says that a client learns the timeout of its session.
	Welcomed struct {
		Session   wire.SessionID
		TimeoutMS int32
	}
	// Heard says that a server reads something of a session's client. Server is 0 if what it reads does not
	// prolong the session there: it asks for the session, or the session is about to expire.
	Heard struct {
		Session wire.SessionID
		Server  ensemble.ServerID
		Mono    int64 // ms of the server's clock
	}
	// Expelled says that a leader ends a session because an operator has told it to.
	Expelled struct{ Session wire.SessionID }
	// Asked says that a client's ping or sync reaches a server. Replied says that the server answers the
	// oldest one of the connection.
	Asked struct {
		Server ensemble.ServerID
		Conn   replica.ConnID
		Op     wire.OpCode
		At     int64 // µs
	}
	Replied struct {
		Server  ensemble.ServerID
		Conn    replica.ConnID
		Session wire.SessionID
		Op      wire.OpCode
		Err     wire.Code // of a sync
	}
	// Kept says that a server, which serves again in epoch To, has kept a client's connection that it
	// served last in epoch From.
	Kept struct {
		Server   ensemble.ServerID
		From, To wire.Epoch
		Session  wire.SessionID
	}
	// TurnedAway says that a client is told that its session has expired.
	TurnedAway struct {
		Server    ensemble.ServerID
		Session   wire.SessionID
		TimeoutMS int32
		At        int64 // µs
	}
	// ReadAlone says that a server answers a read in a read-only session.
	ReadAlone struct {
		Server   ensemble.ServerID
		Standing replica.Status
		Zxid     wire.Zxid
		Digest   uint64
	}
)

// Operation is a state machine of package claim that ends.
type Operation interface {
	Step(now claim.Moment, ev claim.Event)
	Ready() claim.Ready
	Over() bool
	Outcome() claim.Outcome
	Err() error
}

// Observations of recipes. A client, a candidate, a worker and so on are named by the number
// of their client.
type (
	// TermBegan says that a candidate's term begins.
	TermBegan struct {
		Holder
		Token wire.Zxid
		Bid   string // its path
	}
	// TermProven says that the session of a candidate was proven alive, which prolongs its
	// term. Left is 0 if the candidate holds nothing.
	TermProven struct{ Holder }
	// Stayed says how long a bid is known to exist after an event of its client, and how long it was before the
	// event. Holder.Session is the session that has made the bid, Present the client's present one.
	Stayed struct {
		Holder
		Before  time.Duration
		Present wire.SessionID
	}
	// Overdue says that something has reached a candidate after the deadline of its term. Left is how long the term
	// lasts from then on.
	Overdue struct{ Holder }
	// Awaits says whether a candidate waits for any lease of the semaphore, in a session.
	Awaits struct {
		Client  int
		Session wire.SessionID
		Any     bool
	}
	// ResourceUsed says that a candidate has used the resource that the claims protect, or
	// that the resource has refused it. Holds says whether the candidate's term lasts, and is
	// proven to. Shared says that the candidate reads.
	ResourceUsed struct {
		Client          int
		Token           wire.Zxid
		Admitted, Holds bool
		Shared          bool
	}

	// Voted says that a site of a transaction promises to commit. Sites are all sites of the
	// transaction.
	Voted struct {
		Path  string
		Site  string
		Sites []string
	}
	// Learned says that a party of a transaction knows the decision. The coordinator's name
	// is empty.
	Learned struct {
		Path     string
		Site     string
		Decision commit.Decision
	}
	// CarriedOut says that a party of a transaction has carried out the decision.
	CarriedOut struct {
		Path     string
		Site     string
		Sites    []string
		Decision commit.Decision
	}

	// WorkBegan says that a worker begins an operation.
	WorkBegan struct {
		Worker    int
		Operation Operation
	}
	// WorkEnded says that an operation is over, or that its process has ended. Sessions are
	// those in which it was under way, and Session is that of its client, or 0 if the client was
	// told that it is over. Item is what it was to put into a queue.
	WorkEnded struct {
		Worker    int
		Operation Operation
		Sessions  []wire.SessionID
		Session   wire.SessionID
		Item      string
		Crashed   bool
	}
	// IDGiven says that a worker gives an id out.
	IDGiven struct{ ID int64 }

	// MemberIn says that a member is let into a double barrier. Late says that it is let in
	// by a ready znode that was there before its own znode.
	MemberIn struct {
		Client int
		Name   string // name of its znode
		Late   bool
	}
	// MemberOut says that a member is let out.
	MemberOut struct {
		Client int
		Name   string
		Late   bool
	}

	// CacheBegan says that a client begins a new cache, which holds nothing.
	CacheBegan struct{ Client int }
	// CacheTold says that a cache has reported an event.
	CacheTold struct {
		Client int
		Event  cache.Event
	}
	// CacheShows says that a cache has reported all events that were due.
	CacheShows struct {
		Client int
		Cache  CacheContent
	}

	// PartOwned says that a member's ownership of a part begins.
	PartOwned struct {
		Owner
		Token wire.Zxid
	}
	// PartProven says that the session of an owner was proven alive, which prolongs its
	// ownership.
	PartProven struct{ Owner }
	// TaskBegan says that a member begins a task. TaskDone says that it reports the task as
	// over.
	TaskBegan struct{ Member, Task string }
	TaskDone  struct{ Member, Task string }

	// LockTaken says that a client's term of a lock begins.
	LockTaken struct {
		Lock
		Token wire.Zxid
	}
	// LockProven says that the session was proven alive, which prolongs the term of a lock.
	LockProven struct{ Lock }
	// AllTaken says that a client reports to have all locks that it takes together. Held lists those
	// that it holds in fact.
	AllTaken struct {
		Client      int
		Paths, Held []string
	}

	// Announced says that an announcement ended, or that its process did.
	Announced struct {
		Data    string
		Outcome claim.Outcome
		Err     error
		Crashed bool
	}
	// ConfigurationSeen and LeaderSeen say that a follower has seen a new configuration or a
	// new leader. Life is the number of the follower's process.
	ConfigurationSeen struct {
		Client, Life  int
		Configuration value.Announcement
	}
	LeaderSeen struct {
		Client, Life int
		Leader       claim.Notice
	}

	// RegistrationState says in which state a registration is from now on. Data is what the
	// registrant believes its znode holds.
	RegistrationState struct {
		Client int
		Place  string
		Data   string
		registry.RegistrantState
	}
	// RegistrationRefused says that a place belongs to another registrant, and that this one
	// does not wait for it.
	RegistrationRefused struct{ Client int }
	// RegistrationOver says that a registration is over. Nothing is left of it except what
	// ends with its session.
	RegistrationOver struct {
		Client int
		Place  string
		registry.RegistrantState
	}
)

// CacheContent is what a cache shows.
type CacheContent interface {
	Len() int
	Get(path string) *cache.Node
}

// Present tells a checker what is true at the moment of an observation. It returns values;
// slices are valid until the next call.
type Present interface {
	// Now returns the time in µs.
	Now() int64
	// Recipe returns what the checkers must know of the recipe. A scenario may change it during a
	// run.
	Recipe() Recipe
	// Holders returns the candidates that may consider themselves holders of a claim. It and the next two
	// methods leave out those without a proof: nothing is promised of their sessions.
	Holders() []Holder
	// Locks returns the locks that multi-lock clients may consider theirs.
	Locks() []Lock
	// Owners returns the owners that may consider a part theirs.
	Owners() []Owner
	// Registrants returns all registrants.
	Registrants() []Registrant
	// Servers returns all servers.
	Servers() []Server
	// Disks returns what is on the disks of all servers; without history, only the epochs.
	Disks(history bool) []Disk
	// Sessions returns the sessions in the tree of a server.
	Sessions(ensemble.ServerID) []wire.SessionID
}

// Recipe holds what the checkers must know of the recipe and the options of a run.
type Recipe struct {
	Leases        int  // number of leases of the semaphore; 0: there is no semaphore
	GateSize      int  // how many members must be at the double barrier before any is let in
	KazooBarrier  bool // the double barrier is of kazoo's variant
	LocalSessions bool // servers may give local sessions
	TickMS        int64
	SessionMS     int64 // the session timeout that clients ask for; a server may give less
	// RemovalsPerMinute is how many unused containers and expired TTL znodes a leader may remove; 0: any number.
	RemovalsPerMinute int64
}

// The values that Present returns.
type (
	// Disk is what a server would find on its disk after a power failure. It is not known if the disk was
	// replaced, has lied, or has decayed.
	Disk struct {
		ID ensemble.ServerID
		Durable
	}
	// Holder is a candidate. Left is how long its term still lasts at least.
	Holder struct {
		Client    int
		Session   wire.SessionID
		Shared    bool // it reads
		Exclusive bool // nobody else may hold at the same time
		Proven    bool // it is proven that the session lives as long as the term
		Left      time.Duration
		Timeout   time.Duration // of the session
		Deleted   bool          // an operator has deleted its bid, and the candidate may not know it yet
		LapsedAt  int64         // µs at which something reached the candidate last while the lease of its session had lapsed
	}
	// Lock is a lock that a client holds.
	Lock struct {
		Client  int
		Session wire.SessionID
		Path    string
		Proven  bool // as that of a Holder
		Attempt int  // tells apart the attempts of one client, each of which has a bid of its own
	}
	// Owner is a member that owns a part.
	Owner struct {
		Member  string
		Session wire.SessionID
		Part    string
		Proven  bool // as that of a Holder
		Deleted bool // a scenario has deleted its bid, and the owner may not know it yet
		Attempt int  // tells apart the owners of one member, each of which has a bid of its own
	}
	// Registrant is a client that registers at a place. Own lists the sessions that the client
	// takes for its own.
	Registrant struct {
		Client int
		Place  string
		Own    []wire.SessionID
	}
	// Server holds what decides whether a server could be elected. Zxid is where its
	// history ends: what it has applied or ordered to be logged.
	Server struct {
		ID         ensemble.ServerID
		Compatible bool // it behaves as a server of ZooKeeper
		Up         bool
		Members    *ensemble.Membership
		// Proposed is a newer membership, in which an election needs a quorum too; nil: none.
		Proposed *ensemble.Membership
		Started  bool // its process was started at least once
		Wiped    bool // its disk was replaced, and it was not synchronised since
		Current  wire.Epoch
		Zxid     wire.Zxid
		// WouldHave reports whether the server would have a session if it led with its
		// present log.
		WouldHave func(wire.SessionID) bool
	}
)
