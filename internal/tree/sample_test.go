package tree

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// The samples are the data directory of a ZooKeeper 3.8.0 server, and what a client read
// from it.

// readSampleLog returns the transactions of one log file of the samples.
func readSampleLog(t *testing.T, name string) []*record.Txn {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/datadir", name))
	if err != nil {
		t.Fatal(err)
	}
	var txns []*record.Txn
	for b = b[16:]; len(b) >= 12; {
		n := int(binary.BigEndian.Uint32(b[8:]))
		if n == 0 {
			break
		}
		txn, err := record.DecodeTxn(b[12 : 12+n])
		if err != nil {
			t.Fatal(err)
		}
		txns = append(txns, txn)
		b = b[12+n+1:]
	}
	return txns
}

func sampleTxns(t *testing.T) []*record.Txn {
	var txns []*record.Txn
	for _, name := range []string{"log.1", "log.3e", "log.93", "log.96"} {
		txns = append(txns, readSampleLog(t, name)...)
	}
	if len(txns) != 0xa1 {
		t.Fatalf("sample has %d transactions", len(txns))
	}
	return txns
}

// loadSampleSnapshot reads one snapshot of the samples into the loader.
func loadSampleSnapshot(t *testing.T, l *Loader, name string) wire.Zxid {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/datadir", name))
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	c := wire.Decoder(b[16:])
	var count int32
	for c.Int32(&count); count > 0; count-- {
		var id wire.SessionID
		var timeoutMS int32
		id.Code(&c)
		c.Int32(&timeoutMS)
		check(l.Session(id, timeoutMS))
	}
	for c.Int32(&count); count > 0; count-- {
		var key int64
		var list []wire.ACL
		c.Int64(&key)
		c.ACLs(&list)
		check(l.ACL(key, list))
	}
	for {
		var path string
		if c.String(&path); path == "/" {
			break
		}
		var n record.DataNode
		n.Code(&c)
		check(c.Err())
		check(l.Node(path, &n))
	}
	seal := make([]byte, 13)
	for i := range seal {
		c.Byte(&seal[i])
	}
	var digest record.SnapshotDigest
	digest.Zxid.Code(&c)
	c.Int32(&digest.Version)
	var v int64
	c.Int64(&v)
	digest.Tree = uint64(v)
	check(c.Err())
	z, err := strconv.ParseInt(filepath.Ext(name)[1:], 16, 64)
	check(err)
	check(l.SnapshotDone(wire.Zxid(z), &digest))
	return wire.Zxid(z)
}

type sampleTree struct {
	Nodes []struct {
		Path string
		Data *string
		Stat struct {
			Czxid, Mzxid, Pzxid, Ctime, Mtime, EphemeralOwner    int64
			Version, Cversion, Aversion, DataLength, NumChildren int32
		}
		ACL []struct {
			Perms      int32
			Scheme, ID string
		}
	}
}

// checkSample compares a tree with what the client read.
func checkSample(t *testing.T, tree *Tree) {
	t.Helper()
	b, err := os.ReadFile("testdata/tree.json")
	if err != nil {
		t.Fatal(err)
	}
	var want sampleTree
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Nodes) != 103 {
		t.Fatalf("sample has %d znodes", len(want.Nodes))
	}
	super := &conn{ids: []wire.ID{{Scheme: "super"}}}
	for _, n := range want.Nodes {
		var data wire.DataResponse
		var list wire.ACLResponse
		if code := tree.GetData(super, n.Path, false, &data); code != wire.OK {
			t.Errorf("%s: %v", n.Path, code)
			continue
		}
		tree.GetACL(super, n.Path, &list)
		var acls []wire.ACL
		for _, a := range n.ACL {
			acls = append(acls, wire.ACL{Perms: a.Perms, ID: wire.ID{Scheme: a.Scheme, ID: a.ID}})
		}
		var wantData []byte
		if n.Data != nil {
			wantData, _ = base64.StdEncoding.DecodeString(*n.Data)
		}
		s := n.Stat
		stat := wire.Stat{
			Czxid: wire.Zxid(s.Czxid), Mzxid: wire.Zxid(s.Mzxid), Pzxid: wire.Zxid(s.Pzxid), Ctime: s.Ctime, Mtime: s.Mtime,
			Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
			EphemeralOwner: wire.SessionID(s.EphemeralOwner), DataLength: s.DataLength, NumChildren: s.NumChildren,
		}
		if data.Stat != stat {
			t.Errorf("%s: stat\n%+v, want\n%+v", n.Path, data.Stat, stat)
		}
		if string(data.Data) != string(wantData) || (data.Data == nil) != (wantData == nil) {
			t.Errorf("%s: data %q, want %q", n.Path, data.Data, wantData)
		}
		if fmt.Sprint(list.ACL) != fmt.Sprint(acls) {
			t.Errorf("%s: list %v, want %v", n.Path, list.ACL, acls)
		}
	}
	if n, first := tree.DigestMismatches(); n != 0 {
		t.Errorf("%d digest mismatches: %v", n, first)
	}
	if c := tree.Counts(); c.Nodes != 104 || c.Sessions != 1 || c.Containers != 1 {
		t.Errorf("counts %+v", c)
	}
	if z, digest := tree.Digest(); z != 0xa1 || digest != 216453039361 || recomputed(tree) != digest {
		t.Errorf("digest %d at %v", digest, z)
	}
}

// TestSampleFromLog replays the whole log and compares every digest.
func TestSampleFromLog(t *testing.T) {
	tree := New(Options{Seed: 1})
	if _, digest := tree.Digest(); digest != 1371985504 {
		t.Fatalf("digest of the empty tree is %d", digest)
	}
	compared := 0
	for _, txn := range sampleTxns(t) {
		tree.Apply(txn)
		if _, digest := tree.Digest(); txn.Digest != nil {
			compared++
			if digest != txn.Digest.Tree {
				t.Fatalf("digest at %v is %d, want %d", txn.Zxid, digest, txn.Digest.Tree)
			}
		}
	}
	if compared < 150 {
		t.Errorf("only %d digests compared", compared)
	}
	checkSample(t, tree)
}

// TestSampleFromSnapshots loads each snapshot, one of which is fuzzy, and replays the
// rest of the log.
func TestSampleFromSnapshots(t *testing.T) {
	for _, name := range []string{"snapshot.0", "snapshot.3c", "snapshot.91", "snapshot.95"} {
		t.Run(name, func(t *testing.T) {
			tree := New(Options{Seed: 2})
			l := tree.Loader()
			l.Reset()
			z := loadSampleSnapshot(t, l, name)
			for _, txn := range sampleTxns(t)[z:] {
				if err := l.Txn(txn); err != nil {
					t.Fatal(err)
				}
				if recomputed(tree) != tree.digest {
					t.Fatalf("digest does not follow the tree at %v", txn.Zxid)
				}
			}
			if gone := l.Finish(); len(gone) != 0 {
				t.Errorf("ephemerals %v removed", gone)
			}
			if h := tree.Observations(); len(h) != 0 {
				t.Errorf("observations %v", h)
			}
			checkSample(t, tree)
		})
	}
}
