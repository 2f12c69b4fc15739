package tree

import "bellwether/wire"

// Options fix the behaviour of a tree; the zero value is ZooKeeper's default.
type Options struct {
	ExtendedTypes           bool   // TTL znodes may be created
	Emulate353TTL           bool   // owners in the form of 3.5.3 are read as TTLs too
	EnforceQuota            bool   // hard limits refuse writes
	SkipACL                 bool   // nothing is checked against ACLs
	DigestOff               bool   // no digest is computed, stored or compared
	SchemeSASL              bool   // ACLs may hold ids of scheme sasl
	LetAnySASLUser          string // the sasl id that every sasl identity satisfies
	X509Super               string // the x509 subject that satisfies every x509 id
	ContainerMaxNeverUsedMS int64  // when a container without any child so far is due; 0: never
	Reconfig                bool   // reconfig is enabled; a standalone server then answers ErrUnimplemented
	Seed                    uint64 // of the hashes of names and paths; random in a server
}

// Tree is the replicated state of one server. See the package comment for
// who may call what.
type Tree struct{ o Options }

// New returns the tree of an empty server: /, /zookeeper, /zookeeper/quota
// and /zookeeper/config, at zxid 0.
func New(o Options) *Tree { return &Tree{o: o} }

// Prepare turns a request into the transaction with the given zxid and time
// (ms since 1970). A request that must fail becomes an error transaction. A
// nil transaction means that nothing is to be proposed and z is not used up:
// the request gets the returned code with the current zxid (ErrMarshalling:
// it could not be decoded), or is dropped where the server itself asked.
//
// Session 0 is the server itself (deleteContainer). The body of a
// createSession is an int32, the timeout in ms; that of closeSession is empty.
func (t *Tree) Prepare(req *Request, z wire.Zxid, nowMS int64) (*wire.Txn, wire.Code) {
	return nil, wire.OK
}

// Discard drops everything prepared and not applied.
func (t *Tree) Discard() {}

// Apply carries out a committed transaction and queues the events it causes.
func (t *Tree) Apply(txn *wire.Txn) Result { return Result{} }

// GetData answers getData.
func (t *Tree) GetData(c Client, path string, watch bool, out *wire.DataResponse) wire.Code {
	return wire.OK
}

// Exists answers exists.
func (t *Tree) Exists(c Client, path string, watch bool, out *wire.StatResponse) wire.Code {
	return wire.OK
}

// GetACL answers getACL.
func (t *Tree) GetACL(c Client, path string, out *wire.ACLResponse) wire.Code { return wire.OK }

// Children answers getChildren.
func (t *Tree) Children(c Client, path string, watch bool, out *wire.ChildrenResponse) wire.Code {
	return wire.OK
}

// Children2 answers getChildren2.
func (t *Tree) Children2(c Client, path string, watch bool, out *wire.ChildrenStatResponse) wire.Code {
	return wire.OK
}

// CountAll answers getAllChildrenNumber.
func (t *Tree) CountAll(c Client, path string, out *wire.CountResponse) wire.Code { return wire.OK }

// Ephemerals answers getEphemerals.
func (t *Tree) Ephemerals(c Client, prefix wire.NullString, out *wire.EphemeralsResponse) wire.Code {
	return wire.OK
}

// MultiRead answers multiRead. With ErrMarshalling (an operation that is no
// read) out still holds the results so far and is to be sent behind the header.
func (t *Tree) MultiRead(c Client, ops []wire.Op, out *wire.MultiResponse) wire.Code { return wire.OK }

// Reserve places a reply that looks at nothing: ping, sync, whoAmI, errors.
func (t *Tree) Reserve(c Client) {}

// AddWatch answers addWatch.
func (t *Tree) AddWatch(c Client, path string, mode wire.AddWatchMode) wire.Code { return wire.OK }

// SetWatches answers setWatches; the events that are due are queued first.
func (t *Tree) SetWatches(c Client, r *wire.SetWatchesRequest) wire.Code { return wire.OK }

// SetWatches2 answers setWatches2.
func (t *Tree) SetWatches2(c Client, r *wire.SetWatches2Request) wire.Code { return wire.OK }

// CheckWatches answers checkWatches.
func (t *Tree) CheckWatches(c Client, path string, w wire.WatcherType) wire.Code { return wire.OK }

// RemoveWatches answers removeWatches.
func (t *Tree) RemoveWatches(c Client, path string, w wire.WatcherType) wire.Code { return wire.OK }

// Forget drops all watches of a client whose connection has ended. No read
// of that client may follow.
func (t *Tree) Forget(c Client) {}

// Session returns a session's timeout as its transaction had it.
func (t *Tree) Session(id wire.SessionID) (timeoutMS int32, ok bool) { return 0, false }

// Sessions calls yield for each session, by ascending id.
func (t *Tree) Sessions(yield func(id wire.SessionID, timeoutMS int32)) {}

// DueContainers lists the containers and TTL znodes that are to be removed by
// deleteContainer requests, sorted.
func (t *Tree) DueContainers(nowMS int64) []string { return nil }

// LastZxid is the last applied transaction.
func (t *Tree) LastZxid() wire.Zxid { return 0 }

// Digest is the digest of the tree after LastZxid.
func (t *Tree) Digest() (wire.Zxid, uint64) { return 0, 0 }

// DigestEntry is the digest after one transaction.
type DigestEntry struct {
	Zxid   wire.Zxid
	Digest uint64
}

// DigestHistory is the digest after every 128th zxid, the oldest first.
func (t *Tree) DigestHistory() []DigestEntry { return nil }

// DigestMismatches counts the transactions whose digest was another than the
// tree's after applying them, and names the first few.
func (t *Tree) DigestMismatches() (n int64, first []wire.Zxid) { return 0, nil }

// Happening is something worth telling an operator: QuotaExceeded,
// DigestMismatch, DigestNotReached.
type Happening interface{ String() string }

// Happenings returns what happened since the last call; for the goroutine
// that prepares and applies.
func (t *Tree) Happenings() []Happening { return nil }

// Counts are the figures of four-letter words and metrics.
type Counts struct {
	Nodes      int64 // as ZooKeeper counts: the root twice
	Ephemerals int64
	Containers int64
	TTLs       int64
	DataBytes  int64 // of paths and data, approximately
	Sessions   int64
	Watches    int64
	WatchPaths int64
	Watchers   int64 // connections with a watch
}

// Counts returns the current figures.
func (t *Tree) Counts() Counts { return Counts{} }

// PathWatchers are the sessions that watch a path.
type PathWatchers struct {
	Path     string
	Sessions []wire.SessionID
}

// WatchesByPath lists the watched paths, sorted.
func (t *Tree) WatchesByPath() []PathWatchers { return nil }

// SessionPaths are paths that belong to a session.
type SessionPaths struct {
	Session wire.SessionID
	Paths   []string
}

// WatchesBySession lists what each connection's session watches, by session id.
func (t *Tree) WatchesBySession() []SessionPaths { return nil }

// EphemeralsBySession lists the sessions with ephemerals, by session id.
func (t *Tree) EphemeralsBySession() []SessionPaths { return nil }

// Snapshot is a store.Source over a tree that goes on changing.
type Snapshot struct{ t *Tree }

// Snapshot begins a snapshot. It needs no end.
func (t *Tree) Snapshot() *Snapshot { return &Snapshot{t} }

// Zxid is the transaction the snapshot is to be named after.
func (s *Snapshot) Zxid() wire.Zxid { return 0 }

// Sessions yields the sessions.
func (s *Snapshot) Sessions(yield func(id wire.SessionID, timeoutMS int32) error) error { return nil }

// ACLs yields the access-control lists by their keys.
func (s *Snapshot) ACLs(yield func(key int64, acl []wire.ACL) error) error { return nil }

// Nodes yields every znode, parents first.
func (s *Snapshot) Nodes(yield func(path string, n *wire.DataNode) error) error { return nil }

// Digest is the last applied zxid and the digest at it.
func (s *Snapshot) Digest() (wire.Zxid, uint64) { return 0, 0 }

// Loader fills a tree from a snapshot and a log; it is a store.Sink.
type Loader struct{ t *Tree }

// Loader returns the loader of the tree. Nothing else may use the tree until
// Finish has returned.
func (t *Tree) Loader() *Loader { return &Loader{t} }

// Reset empties the tree.
func (l *Loader) Reset() {}

// Session takes a session of the snapshot.
func (l *Loader) Session(id wire.SessionID, timeoutMS int32) error { return nil }

// ACL takes an access-control list of the snapshot.
func (l *Loader) ACL(key int64, acl []wire.ACL) error { return nil }

// Node takes a znode of the snapshot.
func (l *Loader) Node(path string, n *wire.DataNode) error { return nil }

// SnapshotDone ends the snapshot.
func (l *Loader) SnapshotDone(zxid wire.Zxid, digest *wire.SnapshotDigest) error { return nil }

// Txn replays a transaction.
func (l *Loader) Txn(txn *wire.Txn) error { return nil }

// Finish ends loading: it removes the ephemerals of sessions that do not
// exist and returns their paths.
func (l *Loader) Finish() []string { return nil }

// DigestID is the ACL id of scheme digest for the text user:password.
func DigestID(userPassword string) string { return "" }

// Expiry tells which sessions have not been heard from for their timeout.
type Expiry struct{}

// NewExpiry returns an empty table with buckets of tickMS.
func NewExpiry(tickMS int64) *Expiry { return &Expiry{} }

// Add takes in a session heard from at now (any monotonic clock, ms), or
// gives a known one another timeout.
func (e *Expiry) Add(id wire.SessionID, timeoutMS int32, now int64) {}

// Touch notes that a session was heard from at now; false if it is not known.
func (e *Expiry) Touch(id wire.SessionID, now int64) bool { return false }

// Remove forgets a session.
func (e *Expiry) Remove(id wire.SessionID) {}

// Due removes the sessions whose deadline has passed and returns them.
func (e *Expiry) Due(now int64) []wire.SessionID { return nil }

// Next is the earliest deadline; false if there is none.
func (e *Expiry) Next() (int64, bool) { return 0, false }
