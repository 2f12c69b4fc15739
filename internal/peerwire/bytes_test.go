package peerwire_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// TestBytesOfAWrite shows the bytes that docs/scale.md calculates with: what a leader sends for a setData, and what a snapshot
// contains for a znode, besides the path and the data.
func TestBytesOfAWrite(t *testing.T) {
	path, data := "/services/one", make([]byte, 100)
	variable := len(path) + len(data)
	txn := record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpSetData}, Body: &record.SetDataTxn{Path: path, Data: data}, Digest: &record.TxnDigest{}}
	length := func(r wire.Record) int { return len(wire.Append(nil, r)) }
	node := wire.Append(nil, &record.DataNode{Data: data})
	page, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		bytes int
		named string // as the page says it
	}{
		{"PROPOSAL", length(&peerwire.QuorumPacket{Type: peerwire.PacketProposal, Data: txn.Append(nil)}) - variable, "a PROPOSAL of 76 bytes + path + data"},
		{"INFORM", length(&peerwire.QuorumPacket{Type: peerwire.PacketInform, Data: txn.Append(nil)}) - variable, "an INFORM of 76 bytes + path + data"},
		{"COMMIT", length(&peerwire.QuorumPacket{Type: peerwire.PacketCommit}), "a COMMIT of 20 bytes"},
		{"ACK", length(&peerwire.QuorumPacket{Type: peerwire.PacketAck}), "an ACK of 20 bytes"},
		{"znode in a snapshot", 4 + len(node) - len(data), "76 bytes + path + data for each znode"}, // with the length of the path
	} {
		if !strings.Contains(c.named, strconv.Itoa(c.bytes)+" bytes") {
			t.Errorf("%s: %d bytes, not %q", c.what, c.bytes, c.named)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), c.named) {
			t.Errorf("docs/scale.md does not say %q", c.named)
		}
	}
}
