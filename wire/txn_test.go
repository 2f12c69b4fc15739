package wire

import (
	"errors"
	"hash/adler32"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// logRecord is one record of a sample log of Apache ZooKeeper 3.8.0, as an
// independent decoder saw it.
type logRecord struct {
	Offset     int
	End        int
	Checksum   uint32
	PayloadLen int `json:"payload_len"`
	Session    string
	Cxid       int32
	Zxid       string
	Time       int64
	Type       string
	TypeCode   OpCode `json:"type_code"`
	Body       object
	Digest     object
}

// samplePayloads yields every record of the sample logs with its payload.
func samplePayloads(t testing.TB, yield func(name string, r logRecord, payload []byte)) {
	t.Helper()
	var logs map[string][]logRecord
	readJSON(t, filepath.Join("log", "txns.json"), &logs)
	n := 0
	for name, records := range logs {
		b, err := os.ReadFile(filepath.Join("testdata", "log", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			const before = 8 + 4 // checksum, length
			payload := b[r.Offset+before : r.Offset+before+r.PayloadLen]
			if adler32.Checksum(payload) != r.Checksum {
				t.Fatalf("%s: offset %d: the sample is damaged", name, r.Offset)
			}
			yield(name+"/"+r.Zxid, r, payload)
			n++
		}
	}
	if n != 161 {
		t.Errorf("%d sample transactions, want 161", n)
	}
}

// TestLoggedTransactionsDecodeAndEncode takes every transaction that a real
// server logged both ways.
func TestLoggedTransactionsDecodeAndEncode(t *testing.T) {
	samplePayloads(t, func(name string, r logRecord, payload []byte) {
		t.Run(name, func(t *testing.T) {
			txn, err := DecodeTxn(payload)
			if err != nil {
				t.Fatal(err)
			}
			equalJSON(t, object{
				"session": hex0x(txn.Session), "cxid": txn.Cxid, "zxid": txn.Zxid.String(), "time": txn.Time,
				"type": txn.Type.String(), "type_code": txn.Type,
				"body": showLogBody(txn.Body), "digest": showDigest(txn.Digest, "tree", false),
			}, object{
				"session": r.Session, "cxid": r.Cxid, "zxid": r.Zxid, "time": r.Time,
				"type": r.Type, "type_code": r.TypeCode, "body": r.Body, "digest": r.Digest,
			})
			equalBytes(t, txn.Append(nil), payload)
			equalBytes(t, Append(nil, txn), payload)
		})
	})
}

// showLogBody shows a body as txns.json does.
func showLogBody(b TxnBody) object {
	multi, ok := b.(*MultiTxn)
	if !ok {
		return showTxnBody(b, base64OrNil)
	}
	return object{"txns": list(multi.Ops, func(op *SubTxn) object {
		return object{"type": op.Type.String(), "body": showTxnBody(op.Body, base64OrNil)}
	})}
}

// showDigest shows a digest, null as null; key is the name of its tree value,
// which is a hex text or a number.
func showDigest(d *TxnDigest, key string, hex bool) object {
	switch {
	case d == nil:
		return nil
	case hex:
		return object{"version": d.Version, key: hex0x(d.Tree)}
	default:
		return object{"version": d.Version, key: d.Tree}
	}
}

// payload joins a transaction header of the given type and a hex body, in
// which blanks are for the reader.
func payload(t *testing.T, op OpCode, body string) []byte {
	t.Helper()
	h := TxnHeader{Session: 0x100000ed48f0000, Cxid: 7, Zxid: 0x10000002a, Time: 1795238980804, Type: op}
	return append(Append(nil, &h), unhex(t, strings.ReplaceAll(body, " ", ""))...)
}

const (
	hexPath   = "00000002 2f61 "                   // /a
	hexData   = "00000001 78 "                     // x
	hexACL    = "00000001 " + hexWorld             // world:anyone, all
	hexDigest = "00000002 0000002ea530d263 "       // version 2
	hexV0     = hexPath + hexData + hexACL + "00 " // create without a parent counter
	hexV1     = hexV0 + "00000005 "                // create of today
	hexSubOK  = "00000002 00000006 00000002 2f61 " // delete /a inside a multi
	hexSubErr = "ffffffff 00000004 fffffffe "      // not executed
	maxInt    = "7fffffff "                        // a count nothing backs
)

// TestOlderFormsOfTransactions: what servers before 3.4, before 3.6 and with
// features off have written decodes to the same values and encodes to the
// same bytes.
func TestOlderFormsOfTransactions(t *testing.T) {
	digest := &TxnDigest{Version: 2, Tree: 0x2ea530d263}
	v0 := &CreateTxn{Path: "/a", Data: []byte("x"), ACL: OpenACL(), ParentCversion: -1, noParent: true}
	v1 := &CreateTxn{Path: "/a", Data: []byte("x"), ACL: OpenACL(), ParentCversion: 5}
	closed := &CloseSessionTxn{Paths: []string{"/a"}}
	for _, tt := range []struct {
		name   string
		op     OpCode
		body   string
		want   TxnBody
		digest *TxnDigest
	}{
		{"create with a digest", OpCreate, hexV1 + hexDigest, v1, digest},
		{"create without a digest", OpCreate, hexV1, v1, nil},
		{"create without a parent counter", OpCreate, hexV0, v0, nil},
		{"create without a parent counter, with a digest", OpCreate, hexV0 + hexDigest, v0, digest},
		{"create2 as create", OpCreate2, hexV1, v1, nil},
		{"closeSession with a digest", OpCloseSession, "00000001" + hexPath + hexDigest, closed, digest},
		{"closeSession without a digest", OpCloseSession, "00000001" + hexPath, closed, nil},
		{"closeSession that lists nothing", OpCloseSession, "00000000", &CloseSessionTxn{Paths: []string{}}, nil},
		{"closeSession with a null list", OpCloseSession, "ffffffff", &CloseSessionTxn{}, nil},
		{"closeSession without a body", OpCloseSession, "", nil, nil},
		{"closeSession without a body, with a digest", OpCloseSession, hexDigest, nil, digest},
		{"deleteContainer as delete", OpDeleteContainer, hexPath, &DeleteTxn{Path: "/a"}, nil},
		{"reconfig as setData", OpReconfig, hexPath + hexData + "ffffffff", &SetDataTxn{Path: "/a", Data: []byte("x"), Version: -1}, nil},
		{"error", OpError, "ffffff92", &ErrorTxn{Err: ErrNodeExists}, nil},
		{"null data", OpSetData, hexPath + "ffffffff 00000001", &SetDataTxn{Path: "/a", Version: 1}, nil},
		{"empty data", OpSetData, hexPath + "00000000 00000001", &SetDataTxn{Path: "/a", Data: []byte{}, Version: 1}, nil},
		{"null list of a setACL", OpSetACL, hexPath + "ffffffff 00000001", &SetACLTxn{Path: "/a", Version: 1}, nil},
		{"multi of nothing", OpMulti, "00000000", &MultiTxn{Ops: []SubTxn{}}, nil},
		{"multi that failed", OpMulti, "00000002" + hexSubOK + hexSubErr + hexDigest, &MultiTxn{Ops: []SubTxn{
			{OpDelete, &DeleteTxn{Path: "/a"}}, {OpError, &ErrorTxn{Err: ErrRuntimeInconsistency}},
		}}, digest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := payload(t, tt.op, tt.body)
			txn, err := DecodeTxn(b)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(txn.Body, tt.want) || !reflect.DeepEqual(txn.Digest, tt.digest) {
				t.Errorf("body %+v, digest %v, want %+v, %v", txn.Body, txn.Digest, tt.want, tt.digest)
			}
			equalBytes(t, txn.Append(nil), b)
		})
	}
}

// TestMultiKnowsThatItFailed: one error among the operations is enough.
func TestMultiKnowsThatItFailed(t *testing.T) {
	ok, bad := SubTxn{OpDelete, &DeleteTxn{}}, SubTxn{OpError, &ErrorTxn{}}
	for _, tt := range []struct {
		ops  []SubTxn
		want bool
	}{
		{nil, false}, {[]SubTxn{ok}, false}, {[]SubTxn{bad}, true}, {[]SubTxn{ok, bad}, true},
	} {
		if got := (&MultiTxn{Ops: tt.ops}).Failed(); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.ops, got, tt.want)
		}
	}
}

// TestBadTransactionsAreRefused: none is skipped over or half taken.
func TestBadTransactionsAreRefused(t *testing.T) {
	sub := func(op, body string) string {
		n := len(strings.ReplaceAll(body, " ", "")) / 2
		return "00000001" + op + strconv.FormatInt(int64(n)+1<<32, 16)[1:] + body
	}
	for _, tt := range []struct {
		name string
		op   OpCode
		body string
		want error
	}{
		{"unknown type", 99, "", ErrValue},
		{"type of a read", OpGetData, "", ErrValue},
		{"no body", OpSetData, "", ErrShort},
		{"bytes behind the body", OpDelete, hexPath + "00", ErrLength},
		{"a digest and a byte", OpDelete, hexPath + hexDigest + "00", ErrLength},
		{"a digest without its last byte", OpDelete, hexPath + hexDigest[:len(hexDigest)-3], ErrLength},
		{"length below null", OpDelete, "fffffffe", ErrLength},
		{"length that nothing backs", OpDelete, maxInt, ErrShort},
		{"null path", OpDelete, "ffffffff", ErrNull},
		{"count that nothing backs", OpCloseSession, maxInt, ErrLength},
		{"create cut inside its data", OpCreate, hexPath + "00000004 00", ErrShort},
		{"create with a count that nothing backs", OpCreate, hexPath + hexData + maxInt + hexWorld + "00 00000000", ErrLength},
		{"operation of unknown type", OpMulti, sub("00000063", ""), ErrValue},
		{"operation that opens a session", OpMulti, sub("fffffff6", "00002710"), ErrValue},
		{"multi inside a multi", OpMulti, sub("0000000e", "00000000"), ErrValue},
		{"operation cut short", OpMulti, sub("00000002", "0000"), ErrShort},
		{"operation with bytes behind it", OpMulti, sub("00000002", hexPath+"00"), ErrLength},
		{"null operation", OpMulti, "00000001 00000002 ffffffff", ErrShort},
		{"operation longer than the multi", OpMulti, "00000001 00000002 00000010 00000002", ErrShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			txn, err := DecodeTxn(payload(t, tt.op, tt.body))
			if !errors.Is(err, tt.want) || txn != nil {
				t.Fatalf("%v, error %v, want %v", txn, err, tt.want)
			}
			if !strings.Contains(err.Error(), "transaction 0x10000002a") {
				t.Errorf("error %q does not name the transaction", err)
			}
		})
	}
	whole := payload(t, OpDelete, "")
	for n := range TxnHeaderLen {
		if _, err := DecodeTxn(whole[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes of a header: error %v, want %v", n, err, ErrShort)
		}
	}
}

// TestErrorsInsideAMultiNameTheirPlace: the offset is that of the operation.
func TestErrorsInsideAMultiNameTheirPlace(t *testing.T) {
	_, err := DecodeTxn(payload(t, OpMulti, "00000002"+hexSubOK+"00000002 00000002 0000"))
	const want = "transaction 0x10000002a (multi): offset 58: operation of a multi: offset 0: record is cut short"
	if err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
