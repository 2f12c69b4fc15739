package store

import (
	"errors"
	"io"
	"iter"

	"bellwether/wire"
)

// Options says where a store lies and how it writes. The zero value of each
// field is the default; only DataDir must be set.
type Options struct {
	DataDir string // holds version-2 with the snapshots and epochs
	LogDir  string // holds version-2 with the logs; empty: DataDir

	// PreallocBytes is how far a log is extended ahead of its records
	// (preAllocSize); 0: 64 MiB, negative: not at all.
	PreallocBytes int64
	// NoSync leaves it to the system when the log reaches the disk
	// (forceSync=no): a power failure then loses acknowledged writes.
	NoSync bool
	// Compression of the snapshots written; each form is read.
	Compression Compression
	// OmitDigest leaves the digest block out of snapshots (digest.enabled=false).
	OmitDigest bool
	// OmitLastZxid leaves out the block that 3.9 added
	// (serializeLastProcessedZxid.enabled=false). OmitDigest implies it.
	OmitLastZxid bool
	// TrustEmpty allows logs without any snapshot (snapshot.trust.empty).
	TrustEmpty bool
	// NoDirCreate refuses to make missing directories
	// (zookeeper.datadir.autocreate=false).
	NoDirCreate bool
	// NoDBCreate refuses to start an empty history without the marker file
	// named initialize (zookeeper.db.autocreate=false).
	NoDBCreate bool
}

// Compression names how snapshots are compressed.
type Compression string

// The compressions, as snapshot.compression.method names them.
const (
	Plain  Compression = ""
	Gzip   Compression = "gz"
	Snappy Compression = "snappy"
)

// Store is a server's history on disk. See the package comment for which
// calls may run beside each other.
type Store struct {
	fs   FS
	opts Options
}

// Open locks the directories, makes what is missing and sets aside what an
// interrupted write left behind. A second process on the same directories
// gets a [*BusyError].
func Open(fs FS, o Options) (*Store, error) { return nil, errNotYet }

// Close releases the lock. What was not synced is not promised.
func (s *Store) Close() error { return errNotYet }

// LoadResult says what Load found.
type LoadResult struct {
	// Empty: there was no history at all. If LastZxid is 0 a new one may
	// begin: write a snapshot 0 of the empty tree before the first Append. If
	// it is -1 that is not allowed here (NoDBCreate): a member must be
	// synchronised by a leader first, a standalone server must not start.
	Empty bool
	// Snapshot is the zxid of the snapshot used, and SnapshotFile its path;
	// -1 and "" if none.
	Snapshot     wire.Zxid
	SnapshotFile string
	LastZxid     wire.Zxid // of the snapshot or the last transaction
	Txns         int       // transactions replayed
	// Notes tell, one line each, what was mended or passed over.
	Notes []string
}

// Load hands the history to sink: the newest sound snapshot and all
// transactions behind it. It mends what a crash left in the last log. It
// must be called before the first Append and after each Truncate or
// InstallSnapshot whose result is to be read; it may be called again.
// Damage that no crash causes is a [*DamageError]; an error of sink for a
// transaction is returned as it is.
func (s *Store) Load(sink Sink) (LoadResult, error) { return LoadResult{}, errNotYet }

// Append puts txns behind the log. They are durable after the next Sync.
// Errors: a [*FullError] if there is no room; any other poisons the store.
func (s *Store) Append(txns []*wire.Txn) error { return errNotYet }

// Sync makes everything appended durable. Errors as Append.
func (s *Store) Sync() error { return errNotYet }

// Roll ends the current log, synced; the next Append begins another.
func (s *Store) Roll() error { return errNotYet }

// Room probes, after a [*FullError], whether there is space again.
func (s *Store) Room() error { return errNotYet }

// LastZxid is the last transaction appended, or the snapshot's if later.
func (s *Store) LastZxid() wire.Zxid { return 0 }

// Synced is the last transaction known to be durable.
func (s *Store) Synced() wire.Zxid { return 0 }

// LogBytes is the length of the current log's records and header in bytes,
// 0 between a Roll and the next Append.
func (s *Store) LogBytes() int64 { return 0 }

// WriteSnapshot writes src, durably, as the snapshot named after zxid, which
// must be one that src certainly contains. The log must be synced through
// everything src contains. May run beside Append and Sync, not beside itself.
func (s *Store) WriteSnapshot(zxid wire.Zxid, src Source) (SnapshotFile, error) {
	return SnapshotFile{}, errNotYet
}

// SnapshotFile is a snapshot on disk.
type SnapshotFile struct {
	Path string
	Zxid wire.Zxid
	Size int64 // bytes on disk
}

// InstallSnapshot replaces the history: it writes src, received from a
// leader, as the snapshot of zxid and sets aside all log records above zxid.
func (s *Store) InstallSnapshot(zxid wire.Zxid, src Source) (SnapshotFile, error) {
	return SnapshotFile{}, errNotYet
}

// Purge removes what the keep newest sound snapshots (at least 3) do not
// need, and returns the paths removed. May run beside Append and Sync.
func (s *Store) Purge(keep int) ([]string, error) { return nil, errNotYet }

// Truncate takes everything after zxid out of the history, durably. Nothing
// is changed if zxid is not in it. Load afterwards.
func (s *Store) Truncate(zxid wire.Zxid) error { return errNotYet }

// Epochs are the two promises of a member.
type Epochs struct {
	Current  wire.Epoch // of the leader whose history was adopted
	Accepted wire.Epoch // no leader of an earlier one is accepted
}

// Epochs reads the epoch files; missing ones are made from the last zxid, so
// Load must have been called. Standalone servers do not call it.
func (s *Store) Epochs() (Epochs, error) { return Epochs{}, errNotYet }

// SetCurrentEpoch saves the current epoch durably.
func (s *Store) SetCurrentEpoch(e wire.Epoch) error { return errNotYet }

// SetAcceptedEpoch saves the accepted epoch durably.
func (s *Store) SetAcceptedEpoch(e wire.Epoch) error { return errNotYet }

// ReadLog yields the synced transactions after zxid, in order and without a
// gap. If the log does not reach back to zxid, or has a gap, it yields an
// error and ends. May run beside everything but Truncate.
func (s *Store) ReadLog(after wire.Zxid) iter.Seq2[*wire.Txn, error] {
	return func(yield func(*wire.Txn, error) bool) { yield(nil, errNotYet) }
}

// Sizes are the bytes in the two directories, as conf and dirs print them.
type Sizes struct {
	Snapshots int64
	Logs      int64
}

// Sizes adds up the lengths of the files.
func (s *Store) Sizes() (Sizes, error) { return Sizes{}, errNotYet }

// EncodeSnapshot writes src to w as the stream of a plain snapshot file.
// Options used: OmitDigest, OmitLastZxid.
func EncodeSnapshot(w io.Writer, zxid wire.Zxid, src Source, o Options) error { return errNotYet }

// DecodeSnapshot reads the stream of a plain snapshot named after zxid into
// sink, SnapshotDone included, and verifies every seal it has.
func DecodeSnapshot(r io.Reader, zxid wire.Zxid, sink Sink) error { return errNotYet }

var errNotYet = errors.New("not yet")
