package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/wire"
)

// Data is what a data directory holds.
type Data struct {
	Check    *store.Report
	Snapshot string // path of the newest sound snapshot; empty: there is none
	Tree     Tree
}

// Tree describes the newest sound snapshot, and the ACLs that the transactions after it set.
type Tree struct {
	Nodes, Ephemerals, Containers, TTLs, Sessions, ACLs int
	Bytes                                               int64 // of paths and data
	Largest                                             int   // bytes of data of the largest znode
	LargestPath                                         string
	Schemes                                             map[string]string // scheme of an ACL entry, and a znode that has it
}

// readings is how often a data directory is read at most. A server that runs may write what is being read;
// damage counts only if two readings after each other agree on it.
const readings = 5

// ReadData reads a data directory. It changes nothing, and another server may write to the directory
// meanwhile.
func ReadData(files store.FS, o store.Options) (*Data, error) {
	files = readOnly{files}
	var d *Data
	var err error
	told := ""
	for range readings {
		if d, err = readOnce(files, o); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		now := complaint(d, err)
		if now == "" || now == told {
			break
		}
		told = now
	}
	return d, err
}

// complaint returns what is wrong in one reading.
func complaint(d *Data, err error) string {
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, damage := range d.Check.Damage {
		all = append(all, damage.Error())
	}
	return strings.Join(all, "\n")
}

func readOnce(files store.FS, o store.Options) (*Data, error) {
	check, err := store.Check(files, o)
	if err != nil {
		return nil, err
	}
	d := &Data{Check: check, Tree: Tree{Schemes: map[string]string{}}}
	newest := newestSound(check)
	if newest == nil {
		return d, nil
	}
	d.Snapshot = newest.Path
	if err := store.DumpSnapshot(files, newest.Path, &treeReader{Tree: &d.Tree, acls: map[int64][]wire.ACL{}}); err != nil {
		return nil, err
	}
	for _, log := range check.Logs {
		if log.Last > newest.Zxid {
			d.Tree.addLog(files, log.Path)
		}
	}
	return d, nil
}

func newestSound(r *store.Report) *store.CheckedSnapshot {
	for i := len(r.Snapshots) - 1; i >= 0; i-- {
		if r.Snapshots[i].Sound {
			return &r.Snapshots[i]
		}
	}
	return nil
}

// addLog adds the ACLs that a log sets. It ends at a record that it cannot read, because Check has
// already judged it.
func (t *Tree) addLog(files store.FS, path string) {
	for e, err := range store.DumpLog(files, path) {
		if err != nil {
			return
		}
		t.addACLs(e.Txn.Body)
	}
}

func (t *Tree) addACLs(body record.TxnBody) {
	switch b := body.(type) {
	case *record.CreateTxn:
		t.addACL(b.Path, b.ACL)
	case *record.CreateContainerTxn:
		t.addACL(b.Path, b.ACL)
	case *record.CreateTTLTxn:
		t.addACL(b.Path, b.ACL)
	case *record.SetACLTxn:
		t.addACL(b.Path, b.ACL)
	case *record.MultiTxn:
		if !b.Failed() {
			for _, op := range b.Ops {
				t.addACLs(op.Body)
			}
		}
	}
}

func (t *Tree) addACL(path string, list []wire.ACL) {
	for _, entry := range list {
		if scheme := entry.ID.Scheme; t.Schemes[scheme] == "" {
			t.Schemes[scheme] = cmp.Or(path, "/")
		}
	}
}

// treeReader is the sink of a snapshot.
type treeReader struct {
	store.Discard
	*Tree
	acls map[int64][]wire.ACL
}

func (r *treeReader) Session(wire.SessionID, int32) error {
	r.Sessions++
	return nil
}

func (r *treeReader) ACL(key int64, list []wire.ACL) error {
	r.ACLs++
	r.acls[key] = list
	return nil
}

func (r *treeReader) Node(path string, n *record.DataNode) error {
	r.Nodes++
	r.Bytes += int64(len(path) + len(n.Data))
	if len(n.Data) > r.Largest {
		r.Largest, r.LargestPath = len(n.Data), path
	}
	switch owner := uint64(n.Stat.Owner); {
	case owner == 0:
	case owner == containerOwner:
		r.Containers++
	case owner>>56 == ttlOwner:
		r.TTLs++
	default:
		r.Ephemerals++
	}
	r.addACL(path, r.acls[n.ACL])
	return nil
}

// The owner of a container, and the first byte of the owner of a znode with a TTL.
const (
	containerOwner = 1 << 63
	ttlOwner       = 0xff
)

// Needs are the limits that a data directory must fit into.
type Needs struct {
	FrameBytes    int      // the largest request
	ExtendedTypes bool     // znodes may have a TTL
	Schemes       []string // the schemes of ACL entries that are switched on
	Memory        int64    // bytes that a process may use; 0: unknown
	Free          int64    // bytes that are free where snapshots are written; -1: unknown
	Copy          int64    // bytes of all files of the data directories
	LogFree       int64    // the same for logs
	LogBytes      int64    // bytes that a new log reserves
}

// bytesPerNode is the memory of a znode without its path and data. docs/performance.md measures 355 bytes for
// a znode with 100 bytes of data and a path of 10.
const bytesPerNode = 245

// MemoryBytes estimates the resident memory of a server with this tree. The collector lets the heap
// grow to about twice of what is in use.
func (t *Tree) MemoryBytes() int64 { return 2 * (int64(t.Nodes)*bytesPerNode + t.Bytes) }

// Judge returns the findings about a data directory.
func (d *Data) Judge(n Needs) []Finding {
	all := d.damage()
	all = append(all, d.room(n)...)
	t := &d.Tree
	for _, scheme := range slices.Sorted(maps.Keys(t.Schemes)) {
		if !slices.Contains(n.Schemes, scheme) {
			all = append(all, Finding{Warns, t.Schemes[scheme], fmt.Sprintf("its ACL has an entry of the scheme %q, which is not switched on", scheme),
				"such an entry grants nothing; if ZooKeeper has the scheme by a class of its own, its users lose access",
				"see docs/security.md for the schemes that Bellwether has, and give those znodes another entry"})
		}
	}
	if t.Largest > n.FrameBytes {
		all = append(all, Finding{Warns, t.LargestPath, fmt.Sprintf("its data has %d bytes, more than jute.maxbuffer (%d)", t.Largest, n.FrameBytes),
			"no request of that size is accepted, here or by ZooKeeper with the same setting", "compare jute.maxbuffer with the running server's"})
	}
	if t.TTLs > 0 && !n.ExtendedTypes {
		all = append(all, Finding{Warns, d.Snapshot, fmt.Sprintf("%s a TTL, but extendedTypesEnabled is not true", has(t.TTLs, "znode")),
			"Bellwether keeps them; ZooKeeper deletes them when it starts without the key", "set extendedTypesEnabled=true before going back to ZooKeeper"})
	}
	return all
}

// damage returns what store.Check has found.
func (d *Data) damage() []Finding {
	severity, why := Warns, fmt.Sprintf("a start ignores the damaged files and recovers everything up to %v", d.Check.LastZxid)
	if d.Check.LastZxid < 0 {
		severity, why = Prevents, refusesStart
	}
	var all []Finding
	for _, damage := range d.Check.Damage {
		all = append(all, Finding{severity, fmt.Sprintf("%s at offset %d", damage.File, damage.Offset), damage.What, why, damage.Do})
	}
	if len(d.Check.Damage) == 0 && d.Check.LastZxid < 0 {
		all = append(all, Finding{Prevents, "data", "the history cannot be loaded", refusesStart, "see bellwether data check"})
	}
	return all
}

// room returns whether memory and disk are large enough.
func (d *Data) room(n Needs) []Finding {
	var all []Finding
	if want := d.Tree.MemoryBytes(); n.Memory > 0 && want > n.Memory {
		all = append(all, Finding{Prevents, "memory", fmt.Sprintf("the tree needs about %s, and a process may use %s here", mib(want), mib(n.Memory)),
			"the server would be killed for lack of memory", "give the machine or the container more memory"})
	}
	snapshot := d.Tree.Bytes + int64(d.Tree.Nodes)*snapshotPerNode
	if n.Free >= 0 && n.Free < 2*snapshot {
		all = append(all, Finding{Prevents, filepath.Dir(cmp.Or(d.Snapshot, "dataDir")), fmt.Sprintf("%s are free, and a snapshot needs about %s", mib(n.Free), mib(snapshot)),
			"a server with a full disk leaves the quorum", "free some space, at least twice the size of a snapshot"})
	}
	if n.Free >= 0 && n.Free < n.Copy+2*snapshot {
		all = append(all, Finding{Warns, "dataDir", fmt.Sprintf("%s are free, and a copy of the data needs %s", mib(n.Free), mib(n.Copy)),
			"the copy that the runbook makes before the takeover does not fit beside the data", "copy the data to another file system, or remove old snapshots and logs"})
	}
	if n.LogFree >= 0 && n.LogFree < 2*n.LogBytes {
		all = append(all, Finding{Prevents, "dataLogDir", fmt.Sprintf("%s are free, and a new log reserves %s", mib(n.LogFree), mib(n.LogBytes)),
			"a server with a full disk leaves the quorum", "free some space, or set a smaller preAllocSize"})
	}
	return all
}

// snapshotPerNode is the size of a znode in a snapshot without its path and data, in bytes.
const snapshotPerNode = 80

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func has(n int, what string) string {
	if n == 1 {
		return "1 " + what + " has"
	}
	return count(n, what) + " have"
}
