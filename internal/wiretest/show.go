package wiretest

import (
	"encoding/hex"
	"fmt"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// ShowID shows an identity.
func ShowID(i *wire.ID) Object { return Object{"scheme": i.Scheme, "id": i.ID} }

// ShowTxn shows a transaction as zab.json does.
func ShowTxn(t *testing.T, b []byte) Object {
	txn := Recode(t, b, new(record.Txn))
	o := Object{
		"header": Object{"clientId": Hex0x(txn.Session), "cxid": txn.Cxid, "zxid": txn.Zxid.String(),
			"time": txn.Time, "type": txn.Type, "op": txn.Type.String()},
		"digest": ShowDigest(txn.Digest, "treeDigest", true),
	}
	buffer := HexBuffer
	if txn.Type == wire.OpReconfig {
		buffer = func(b []byte) any { return string(b) }
	}
	multi, ok := txn.Body.(*record.MultiTxn)
	if !ok {
		o["body"] = ShowTxnBody(txn.Body, buffer)
		return o
	}
	o["body"] = Object{"txns": List(multi.Ops, func(op *record.SubTxn) Object {
		return Object{"type": op.Type, "op": op.Type.String(), "body": ShowTxnBody(op.Body, buffer)}
	})}
	return o
}

// ShowTxnBody shows the body of a transaction; buffer shows its data.
func ShowTxnBody(b record.TxnBody, buffer func([]byte) any) Object {
	acl := func(a *wire.ACL) Object { return Object{"perms": a.Perms, "scheme": a.ID.Scheme, "id": a.ID.ID} }
	switch b := b.(type) {
	case *record.CreateTxn:
		return Object{"path": b.Path, "data": buffer(b.Data), "acl": List(b.ACL, acl),
			"ephemeral": b.Ephemeral, "parentCVersion": b.ParentCversion}
	case *record.CreateContainerTxn:
		return Object{"path": b.Path, "data": buffer(b.Data), "acl": List(b.ACL, acl), "parentCVersion": b.ParentCversion}
	case *record.CreateTTLTxn:
		return Object{"path": b.Path, "data": buffer(b.Data), "acl": List(b.ACL, acl),
			"parentCVersion": b.ParentCversion, "ttl": b.TTL}
	case *record.DeleteTxn:
		return Object{"path": b.Path}
	case *record.SetDataTxn:
		return Object{"path": b.Path, "data": buffer(b.Data), "version": b.Version}
	case *record.SetACLTxn:
		return Object{"path": b.Path, "acl": List(b.ACL, acl), "version": b.Version}
	case *record.CheckTxn:
		return Object{"path": b.Path, "version": b.Version}
	case *record.ErrorTxn:
		return Object{"err": int32(b.Err)}
	case *record.CreateSessionTxn:
		return Object{"timeOut": b.TimeoutMS}
	case *record.CloseSessionTxn:
		return Object{"paths2Delete": b.Paths}
	}
	panic(fmt.Sprintf("ShowTxnBody does not know the type %T", b))
}

// ShowDigest shows a digest, null as null. key is the name of its tree value, and
// hex says whether that value is a hex text or a number.
func ShowDigest(d *record.TxnDigest, key string, hex bool) Object {
	switch {
	case d == nil:
		return nil
	case hex:
		return Object{"version": d.Version, key: Hex0x(d.Tree)}
	default:
		return Object{"version": d.Version, key: d.Tree}
	}
}

// HexBuffer shows a buffer in hex, and null as an empty text, because zab.json has no null
// buffers.
func HexBuffer(b []byte) any { return hex.EncodeToString(b) }
