package server

import (
	"bytes"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// TestPacketsWithoutDigest: only the digest of the transaction is left out, whichever packet contains it, and the packet itself stays as it is.
func TestPacketsWithoutDigest(t *testing.T) {
	txn := record.Txn{TxnHeader: record.TxnHeader{Session: 1, Cxid: 2, Zxid: 3, Time: 4, Type: wire.OpSetData}, Body: &record.SetDataTxn{Path: "/a", Data: []byte("x"), Version: 5}}
	bare := txn.Append(nil)
	txn.Digest = &record.TxnDigest{Version: record.DigestVersion, Tree: 6}
	whole := txn.Append(nil)
	next := []byte{0, 0, 0, 0, 0, 0, 0, 7}
	for _, c := range []struct {
		kind       peerwire.PacketType
		data, want []byte
	}{
		{peerwire.PacketProposal, whole, bare}, {peerwire.PacketProposal, bare, bare}, {peerwire.PacketInform, whole, bare},
		{peerwire.PacketInformActivate, append(bytes.Clone(next), whole...), append(bytes.Clone(next), bare...)},
		{peerwire.PacketCommit, nil, nil}, {peerwire.PacketCommitActivate, next, next}, {peerwire.PacketNewLeader, whole, whole},
	} {
		data := bytes.Clone(c.data)
		p := &peerwire.QuorumPacket{Type: c.kind, Zxid: 3, Data: data}
		q := withoutDigest(p)
		if q.Type != c.kind || q.Zxid != 3 || !bytes.Equal(q.Data, c.want) || !bytes.Equal(p.Data, c.data) {
			t.Errorf("%v: %x instead of %x", c.kind, q.Data, c.want)
		}
	}
}
