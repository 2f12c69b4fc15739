package store

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// kept is a sink from which the snapshot can be written again in the form in which it was
// read.
type kept struct {
	recorded
	sessions []keptSession
	acls     []keptACL
	nodes    []keptNode
	zxid     wire.Zxid
}

type keptSession struct {
	id        wire.SessionID
	timeoutMS int32
}

type keptACL struct {
	key int64
	acl []wire.ACL
}

type keptNode struct {
	path string
	node record.DataNode
}

func (k *kept) Session(id wire.SessionID, timeoutMS int32) error {
	k.sessions = append(k.sessions, keptSession{id, timeoutMS})
	return nil
}

func (k *kept) ACL(key int64, acl []wire.ACL) error {
	k.acls = append(k.acls, keptACL{key, acl})
	return nil
}

func (k *kept) Node(path string, n *record.DataNode) error {
	kept := *n
	kept.Data = bytes.Clone(n.Data)
	k.nodes = append(k.nodes, keptNode{path, kept})
	return nil
}

func (k *kept) SnapshotDone(z wire.Zxid, _ *SnapshotDigest) error {
	k.zxid = z
	return nil
}

// again is a source that returns what was kept.
type again struct{ *kept }

func (a again) Sessions(yield func(id wire.SessionID, timeoutMS int32) error) error {
	for _, s := range a.sessions {
		if err := yield(s.id, s.timeoutMS); err != nil {
			return err
		}
	}
	return nil
}

func (a again) ACLs(yield func(key int64, acl []wire.ACL) error) error {
	for _, l := range a.acls {
		if err := yield(l.key, l.acl); err != nil {
			return err
		}
	}
	return nil
}

func (a again) Nodes(yield func(path string, n *record.DataNode) error) error {
	for i := range a.nodes {
		if err := yield(a.nodes[i].path, &a.nodes[i].node); err != nil {
			return err
		}
	}
	return nil
}

func (a again) Digest() (wire.Zxid, uint64) { return a.zxid, 0 }

// recordedStreams are snapshots that ZooKeeper leaders have sent.
func recordedStreams(t *testing.T) [][]byte {
	t.Helper()
	text, err := os.ReadFile("../peerwire/testdata/zab.json")
	must(t, err)
	var file struct{ Vectors []struct{ Hex string } }
	must(t, json.Unmarshal(text, &file))
	var streams [][]byte
	for _, v := range file.Vectors {
		if strings.HasSuffix(v.Hex, hex.EncodeToString([]byte(streamEnd))) {
			b, err := hex.DecodeString(v.Hex)
			must(t, err)
			streams = append(streams, b)
		}
	}
	if len(streams) == 0 {
		t.Fatal("no snapshot was recorded")
	}
	return streams
}

// TestStreamOfARealLeader: a snapshot that a ZooKeeper leader sent is read to its last byte and no
// further, and encodes to the same bytes.
func TestStreamOfARealLeader(t *testing.T) {
	for _, want := range recordedStreams(t) {
		r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(want), strings.NewReader("next")), 16)
		var k kept
		must(t, DecodeStream(r, 7, &k))
		if len(k.nodes) == 0 || k.nodes[0].path != "" || k.zxid != 7 {
			t.Errorf("%d nodes at %v", len(k.nodes), k.zxid)
		}
		if rest, err := io.ReadAll(r); string(rest) != "next" || err != nil {
			t.Errorf("left unread: %q, %v", rest, err)
		}
		var b bytes.Buffer
		must(t, EncodeStream(&b, again{&k}))
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("written again it is\n%x, it was\n%x", b.Bytes(), want)
		}
	}
}

// TestStreamThatIsBroken: a stream that ends too early, or does not end with a snapshot's
// last bytes, is refused.
func TestStreamThatIsBroken(t *testing.T) {
	want := recordedStreams(t)[0]
	for n := range want {
		var unsound *UnsoundError
		err := DecodeStream(bufio.NewReader(bytes.NewReader(want[:n])), 7, &kept{})
		if !errors.As(err, &unsound) || !unsound.Short {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	bad := slices.Clone(want)
	bad[len(bad)-1]++
	if err := DecodeStream(bufio.NewReader(bytes.NewReader(bad)), 7, &kept{}); err == nil {
		t.Error("another signature was accepted")
	}
}
