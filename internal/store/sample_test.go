package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"

	"github.com/klauspost/compress/gzip"
)

const samples = "testdata/datadir-3.8.0"

// goldenTxn is a record of txns.json.
type goldenTxn struct {
	Offset, End int64
	Checksum    uint32
	Session     string
	Cxid        int32
	Zxid        string
	Time        int64
	TypeCode    int32 `json:"type_code"`
	Body        json.RawMessage
	Digest      *struct {
		Version int32
		Tree    int64
	}
}

func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(samples, name))
	must(t, err)
	must(t, json.Unmarshal(b, v))
}

// TestSampleLogs: every record of the sample logs decodes to what an independent decoder
// has found, and encodes to the same bytes.
func TestSampleLogs(t *testing.T) {
	var golden map[string][]goldenTxn
	readJSON(t, "txns.json", &golden)
	total := 0
	for name, want := range golden {
		path := filepath.Join(samples, versionDir, name)
		raw, err := os.ReadFile(path)
		must(t, err)
		again := appendLogHeader(nil)
		i := 0
		for e, err := range DumpLog(OS(), path) {
			must(t, err)
			if i >= len(want) {
				t.Fatalf("%s: more than %d records", name, len(want))
			}
			compareTxn(t, name, e, want[i])
			again, err = appendRecord(new(wire.Coder), again, e.Txn)
			must(t, err)
			i++
		}
		if i != len(want) {
			t.Errorf("%s: %d records, want %d", name, i, len(want))
		}
		if !bytes.Equal(again, raw) {
			t.Errorf("%s: written again it is not the same", name)
		}
		total += i
	}
	if total != 161 {
		t.Errorf("%d records in all, want 161", total)
	}
}

func compareTxn(t *testing.T, name string, e LogEntry, want goldenTxn) {
	t.Helper()
	h := e.Txn.TxnHeader
	if e.Offset != want.Offset || e.End != want.End || e.Sum != want.Checksum ||
		h.Session.String() != want.Session || h.Cxid != want.Cxid || h.Zxid.String() != want.Zxid ||
		h.Time != want.Time || int32(h.Type) != want.TypeCode {
		t.Errorf("%s: %+v, want %+v", name, e, want)
	}
	switch d := e.Txn.Digest; {
	case (d == nil) != (want.Digest == nil):
		t.Errorf("%s %v: digest %v, want %v", name, h.Zxid, d, want.Digest)
	case d != nil && (d.Version != want.Digest.Version || int64(d.Tree) != want.Digest.Tree):
		t.Errorf("%s %v: digest %v, want %v", name, h.Zxid, d, want.Digest)
	}
	got, err := json.Marshal(bodyJSON(e.Txn.Type, e.Txn.Body))
	must(t, err)
	if !sameJSON(got, want.Body) {
		t.Errorf("%s %v: body\n %s\nwant\n %s", name, h.Zxid, got, want.Body)
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

// bodyJSON returns a body in the form of txns.json.
func bodyJSON(op wire.OpCode, body record.TxnBody) any {
	type m = map[string]any
	data := func(b []byte) any {
		if b == nil {
			return nil
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	acl := func(list []wire.ACL) any {
		out := []m{}
		for _, a := range list {
			out = append(out, m{"perms": a.Perms, "scheme": a.ID.Scheme, "id": a.ID.ID})
		}
		return out
	}
	switch b := body.(type) {
	case *record.CreateTxn:
		return m{"path": b.Path, "data": data(b.Data), "acl": acl(b.ACL), "ephemeral": b.Ephemeral, "parentCVersion": b.ParentCversion}
	case *record.CreateContainerTxn:
		return m{"path": b.Path, "data": data(b.Data), "acl": acl(b.ACL), "parentCVersion": b.ParentCversion}
	case *record.CreateTTLTxn:
		return m{"path": b.Path, "data": data(b.Data), "acl": acl(b.ACL), "parentCVersion": b.ParentCversion, "ttl": b.TTL}
	case *record.DeleteTxn:
		return m{"path": b.Path}
	case *record.SetDataTxn:
		return m{"path": b.Path, "data": data(b.Data), "version": b.Version}
	case *record.SetACLTxn:
		return m{"path": b.Path, "acl": acl(b.ACL), "version": b.Version}
	case *record.CheckTxn:
		return m{"path": b.Path, "version": b.Version}
	case *record.ErrorTxn:
		return m{"err": b.Err}
	case *record.CreateSessionTxn:
		return m{"timeOut": b.TimeoutMS}
	case *record.CloseSessionTxn:
		return m{"paths2Delete": b.Paths}
	case *record.MultiTxn:
		ops := []m{}
		for _, op := range b.Ops {
			ops = append(ops, m{"type": opNames[op.Type], "body": bodyJSON(op.Type, op.Body)})
		}
		return m{"txns": ops}
	}
	return fmt.Sprintf("no form for %d", op)
}

var opNames = map[wire.OpCode]string{
	wire.OpCreate: "create", wire.OpDelete: "delete", wire.OpSetData: "setData", wire.OpCheck: "check", wire.OpError: "error",
}

// goldenSnapshot is a snapshot of snapshots.json.
type goldenSnapshot struct {
	Sessions map[string]int32
	ACLs     map[string][]struct {
		Perms      int32
		Scheme, ID string
	}
	NodeCount   int      `json:"node_count"`
	Paths       []string `json:"paths_in_file_order"`
	DigestBlock struct {
		Zxid    string
		Version int32
		Digest  int64
	} `json:"digest_block"`
	Seals []struct {
		Offset  int64
		Adler32 uint32
	}
}

// TestSampleSnapshots: every sample snapshot decodes to what an independent decoder has
// found, and encodes to the same bytes, including its seals.
func TestSampleSnapshots(t *testing.T) {
	var golden map[string]goldenSnapshot
	readJSON(t, "snapshots.json", &golden)
	if len(golden) != 4 {
		t.Fatalf("%d snapshots", len(golden))
	}
	for name, want := range golden {
		raw, err := os.ReadFile(filepath.Join(samples, versionDir, name))
		must(t, err)
		var tree copyTree
		must(t, DumpSnapshot(OS(), filepath.Join(samples, versionDir, name), &tree))
		if len(tree.paths) != want.NodeCount || strings.Join(tree.paths, "\n") != strings.Join(want.Paths, "\n") {
			t.Errorf("%s: paths %q, want %q", name, tree.paths, want.Paths)
		}
		if d := tree.digest; d == nil || d.Zxid.String() != want.DigestBlock.Zxid ||
			d.Version != want.DigestBlock.Version || int64(d.Tree) != want.DigestBlock.Digest {
			t.Errorf("%s: digest %v, want %v", name, tree.digest, want.DigestBlock)
		}
		compareHead(t, name, &tree, want)
		for _, seal := range want.Seals {
			if got := fmt.Sprintf("%08x", seal.Adler32); got != fmt.Sprintf("%x", raw[seal.Offset+4:seal.Offset+8]) {
				t.Errorf("%s: no seal at %d", name, seal.Offset)
			}
		}
		var again bytes.Buffer
		_, err = EncodeSnapshot(&again, 0, &tree, Options{OmitLastZxid: true})
		must(t, err)
		if !bytes.Equal(again.Bytes(), raw) {
			t.Errorf("%s: written again it is not the same", name)
		}
	}
}

func compareHead(t *testing.T, name string, tree *copyTree, want goldenSnapshot) {
	t.Helper()
	if len(tree.sessions) != len(want.Sessions) || len(tree.acls) != len(want.ACLs) {
		t.Errorf("%s: %d sessions and %d ACLs, want %d and %d", name, len(tree.sessions), len(tree.acls), len(want.Sessions), len(want.ACLs))
	}
	for _, s := range tree.sessions {
		if timeout, ok := want.Sessions[s.id.String()]; !ok || timeout != s.timeout {
			t.Errorf("%s: session %v with %d ms", name, s.id, s.timeout)
		}
	}
	for _, a := range tree.acls {
		list := want.ACLs[strconv.FormatInt(a.key, 10)]
		if len(list) != len(a.acl) {
			t.Errorf("%s: ACL %d is %v, want %v", name, a.key, a.acl, list)
			continue
		}
		for i, e := range list {
			if (wire.ACL{Perms: e.Perms, ID: wire.ID{Scheme: e.Scheme, ID: e.ID}}) != a.acl[i] {
				t.Errorf("%s: ACL %d is %v, want %v", name, a.key, a.acl, list)
			}
		}
	}
}

// TestSampleForms: the same final state as gzip, as snappy and without a digest is read
// as one tree. The store writes the same forms and reads its own compressed files.
func TestSampleForms(t *testing.T) {
	var gz, sn, plain copyTree
	must(t, DumpSnapshot(OS(), "testdata/snapshots-3.8.0/snapshot.a1.gz", &gz))
	must(t, DumpSnapshot(OS(), "testdata/snapshots-3.8.0/snapshot.a1.snappy", &sn))
	must(t, DumpSnapshot(OS(), "testdata/snapshots-3.8.0/snapshot.a1.no-digest.bin", &plain))
	if plain.digest != nil || gz.digest == nil || *gz.digest != *sn.digest || gz.digest.Tree != 216453039361 {
		t.Errorf("digests %v, %v, %v", gz.digest, sn.digest, plain.digest)
	}
	if len(gz.paths) != 103 || len(sn.paths) != 103 || len(plain.paths) != 103 {
		t.Errorf("%d, %d and %d nodes", len(gz.paths), len(sn.paths), len(plain.paths))
	}
	raw, err := os.ReadFile("testdata/snapshots-3.8.0/snapshot.a1.no-digest.bin")
	must(t, err)
	var again bytes.Buffer
	_, err = EncodeSnapshot(&again, 0xa1, &plain, Options{OmitDigest: true})
	must(t, err)
	if !bytes.Equal(raw, again.Bytes()) {
		t.Error("without a digest it is not the same when written again")
	}
	for _, form := range []Compression{Gzip, Snappy} {
		m := NewMem(1)
		o := dataOptions
		o.Compression = form
		s := open(t, m, o)
		_, err := s.Load(&recorded{})
		must(t, err)
		file, err := s.InstallSnapshot(0xa1, &gz)
		must(t, err)
		if filepath.Base(file.Path) != "snapshot.a1."+string(form) || file.Size >= int64(len(raw))/2 {
			t.Errorf("%s: %+v", form, file)
		}
		must(t, s.Close())
		got := loaded(t, m)
		// An installed snapshot comes from a leader, and its digest is not used, neither here nor by ZooKeeper.
		if want := fmt.Sprintf("done 0xa1 %v", &record.SnapshotDigest{Version: record.DigestVersion}); got.snapshot[len(got.snapshot)-1] != want {
			t.Errorf("%s: %s, want %s", form, got.snapshot[len(got.snapshot)-1], want)
		}
	}
}

// TestSampleLoadsFromAnySnapshot: whichever of the four snapshots are present, loading
// gives the same history, up to 0xa1.
func TestSampleLoadsFromAnySnapshot(t *testing.T) {
	for _, z := range []wire.Zxid{0, 0x3c, 0x91, 0x95} {
		m := diskOf(t, samples)
		for _, other := range []wire.Zxid{0, 0x3c, 0x91, 0x95} {
			if other > z {
				drop(t, m, snapshotName(other, Plain))
			}
		}
		s := open(t, m, dataOptions)
		r := &recorded{}
		res, err := s.Load(r)
		must(t, err)
		if res.Snapshot != z || res.LastZxid != 0xa1 || res.Txns != int(0xa1-z) || len(res.Notes) > 0 {
			t.Errorf("%+v", res)
		}
		for i, got := range r.zxids {
			if got != z+wire.Zxid(i)+1 {
				t.Fatalf("from %v: transaction %d is %v", z, i, got)
			}
		}
		rep, err := Check(m, dataOptions)
		must(t, err)
		if len(rep.Damage) > 0 || len(rep.Notes) > 0 || rep.LastZxid != 0xa1 {
			t.Errorf("check: %v %v", rep.Damage, rep.Notes)
		}
		must(t, s.Close())
	}
}

// TestPaddedLog: a log with its 64 MiB of padding is read like one without.
func TestPaddedLog(t *testing.T) {
	f, err := os.Open(filepath.Join(samples, "padded", "log.96.padded.gz"))
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, versionDir), 0o755))
	out, err := os.Create(filepath.Join(dir, versionDir, "log.96"))
	must(t, err)
	head := make([]byte, 4096)
	_, err = io.ReadFull(z, head)
	must(t, err)
	_, err = out.Write(head)
	must(t, err)
	must(t, out.Truncate(67108880))
	must(t, out.Close())
	b, err := os.ReadFile(filepath.Join(samples, versionDir, "snapshot.95"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, versionDir, "snapshot.95"), b, 0o644))
	s := open(t, OS(), Options{DataDir: dir})
	res, err := s.Load(&recorded{})
	must(t, err)
	if res.LastZxid != 0xa1 || len(res.Notes) > 0 {
		t.Errorf("%+v", res)
	}
	must(t, s.Close())
}

// TestSampleQuorumDirectory: the directory of an ensemble's member is read: its log, its
// epochs and its reconfigurations.
func TestSampleQuorumDirectory(t *testing.T) {
	m := diskOf(t, "testdata/quorum-datadir-3.8.0")
	s := open(t, m, dataOptions)
	r := &recorded{}
	res, err := s.Load(r)
	must(t, err)
	if res.Snapshot != 0 || res.LastZxid.Epoch() != 1 || res.Txns == 0 {
		t.Errorf("%+v", res)
	}
	e, err := s.Epochs()
	must(t, err)
	if e != (Epochs{1, 1}) {
		t.Errorf("epochs %+v", e)
	}
	reconfigs := 0
	for txn, err := range s.ReadLog(0x100000000) {
		must(t, err)
		if txn.Type == wire.OpReconfig {
			reconfigs++
		}
	}
	if reconfigs != 2 {
		t.Errorf("%d reconfigurations, want 2", reconfigs)
	}
	must(t, s.Close())
}
