package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// logRecord is one record of a sample log of Apache ZooKeeper 3.8.0, as an independent decoder has read
// it.
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
	TypeCode   wire.OpCode `json:"type_code"`
	Body       wiretest.Object
	Digest     wiretest.Object
}

// samplePayloads yields every record of the sample logs with its payload.
func samplePayloads(t testing.TB, yield func(name string, r logRecord, payload []byte)) {
	t.Helper()
	var logs map[string][]logRecord
	wiretest.ReadJSON(t, filepath.Join("log", "txns.json"), &logs)
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

// TestLoggedTransactionsDecodeAndEncode decodes every transaction that a ZooKeeper server logged, and
// encodes it again.
func TestLoggedTransactionsDecodeAndEncode(t *testing.T) {
	samplePayloads(t, func(name string, r logRecord, payload []byte) {
		t.Run(name, func(t *testing.T) {
			txn, err := record.DecodeTxn(payload)
			if err != nil {
				t.Fatal(err)
			}
			wiretest.EqualJSON(t, wiretest.Object{
				"session": wiretest.Hex0x(txn.Session), "cxid": txn.Cxid, "zxid": txn.Zxid.String(), "time": txn.Time,
				"type": txn.Type.String(), "type_code": txn.Type,
				"body": showLogBody(txn.Body), "digest": wiretest.ShowDigest(txn.Digest, "tree", false),
			}, wiretest.Object{
				"session": r.Session, "cxid": r.Cxid, "zxid": r.Zxid, "time": r.Time,
				"type": r.Type, "type_code": r.TypeCode, "body": r.Body, "digest": r.Digest,
			})
			wiretest.EqualBytes(t, txn.Append(nil), payload)
			wiretest.EqualBytes(t, wire.Append(nil, txn), payload)
		})
	})
}

// showLogBody shows a body in the form of txns.json.
func showLogBody(b record.TxnBody) wiretest.Object {
	multi, ok := b.(*record.MultiTxn)
	if !ok {
		return wiretest.ShowTxnBody(b, wiretest.Base64OrNil)
	}
	return wiretest.Object{"txns": wiretest.List(multi.Ops, func(op *record.SubTxn) wiretest.Object {
		return wiretest.Object{"type": op.Type.String(), "body": wiretest.ShowTxnBody(op.Body, wiretest.Base64OrNil)}
	})}
}

// payload joins a transaction header of the given type and a hex body. Blanks in the hex text have no
// meaning.
func payload(t *testing.T, op wire.OpCode, body string) []byte {
	t.Helper()
	h := record.TxnHeader{Session: 0x100000ed48f0000, Cxid: 7, Zxid: 0x10000002a, Time: 1795238980804, Type: op}
	return append(wire.Append(nil, &h), wiretest.Unhex(t, strings.ReplaceAll(body, " ", ""))...)
}

const (
	hexDigest = "00000002 0000002ea530d263 "                                  // version 2
	hexV0     = wiretest.HexPath + wiretest.HexData + wiretest.HexACL + "00 " // create without a parent counter
	hexV1     = hexV0 + "00000005 "                                           // create in its present form
	hexSubOK  = "00000002 00000006 00000002 2f61 "                            // delete /a inside a multi
	hexSubErr = "ffffffff 00000004 fffffffe "                                 // not executed
)

// TestOlderFormsOfTransactions: transactions that servers wrote before 3.4, before 3.6 or with features
// disabled can be decoded, and encode to the same bytes.
func TestOlderFormsOfTransactions(t *testing.T) {
	digest := &record.TxnDigest{Version: 2, Tree: 0x2ea530d263}
	v0 := record.CreateTxnV0(record.CreateTxn{Path: "/a", Data: []byte("x"), ACL: wire.OpenACL()})
	v1 := &record.CreateTxn{Path: "/a", Data: []byte("x"), ACL: wire.OpenACL(), ParentCversion: 5}
	closed := &record.CloseSessionTxn{Paths: []string{"/a"}}
	for _, tt := range []struct {
		name   string
		op     wire.OpCode
		body   string
		want   record.TxnBody
		digest *record.TxnDigest
	}{
		{"create with a digest", wire.OpCreate, hexV1 + hexDigest, v1, digest},
		{"create without a digest", wire.OpCreate, hexV1, v1, nil},
		{"create without a parent counter", wire.OpCreate, hexV0, v0, nil},
		{"create without a parent counter, with a digest", wire.OpCreate, hexV0 + hexDigest, v0, digest},
		{"create2 as create", wire.OpCreate2, hexV1, v1, nil},
		{"closeSession with a digest", wire.OpCloseSession, "00000001" + wiretest.HexPath + hexDigest, closed, digest},
		{"closeSession without a digest", wire.OpCloseSession, "00000001" + wiretest.HexPath, closed, nil},
		{"closeSession that lists nothing", wire.OpCloseSession, "00000000", &record.CloseSessionTxn{Paths: []string{}}, nil},
		{"closeSession with a null list", wire.OpCloseSession, "ffffffff", &record.CloseSessionTxn{}, nil},
		{"closeSession without a body", wire.OpCloseSession, "", nil, nil},
		{"closeSession without a body, with a digest", wire.OpCloseSession, hexDigest, nil, digest},
		{"deleteContainer as delete", wire.OpDeleteContainer, wiretest.HexPath, &record.DeleteTxn{Path: "/a"}, nil},
		{"reconfig as setData", wire.OpReconfig, wiretest.HexPath + wiretest.HexData + "ffffffff", &record.SetDataTxn{Path: "/a", Data: []byte("x"), Version: -1}, nil},
		{"error", wire.OpError, "ffffff92", &record.ErrorTxn{Err: wire.ErrNodeExists}, nil},
		{"null data", wire.OpSetData, wiretest.HexPath + "ffffffff 00000001", &record.SetDataTxn{Path: "/a", Version: 1}, nil},
		{"empty data", wire.OpSetData, wiretest.HexPath + "00000000 00000001", &record.SetDataTxn{Path: "/a", Data: []byte{}, Version: 1}, nil},
		{"null list of a setACL", wire.OpSetACL, wiretest.HexPath + "ffffffff 00000001", &record.SetACLTxn{Path: "/a", Version: 1}, nil},
		{"multi of nothing", wire.OpMulti, "00000000", &record.MultiTxn{Ops: []record.SubTxn{}}, nil},
		{"multi that failed", wire.OpMulti, "00000002" + hexSubOK + hexSubErr + hexDigest, &record.MultiTxn{Ops: []record.SubTxn{
			{Type: wire.OpDelete, Body: &record.DeleteTxn{Path: "/a"}}, {Type: wire.OpError, Body: &record.ErrorTxn{Err: wire.ErrRuntimeInconsistency}},
		}}, digest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := payload(t, tt.op, tt.body)
			txn, err := record.DecodeTxn(b)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(txn.Body, tt.want) || !reflect.DeepEqual(txn.Digest, tt.digest) {
				t.Errorf("body %+v, digest %v, want %+v, %v", txn.Body, txn.Digest, tt.want, tt.digest)
			}
			wiretest.EqualBytes(t, txn.Append(nil), b)
		})
	}
}

// TestMultiKnowsThatItFailed: a multi has failed if one of its operations is an error.
func TestMultiKnowsThatItFailed(t *testing.T) {
	ok, bad := record.SubTxn{Type: wire.OpDelete, Body: &record.DeleteTxn{}}, record.SubTxn{Type: wire.OpError, Body: &record.ErrorTxn{}}
	for _, tt := range []struct {
		ops  []record.SubTxn
		want bool
	}{
		{nil, false}, {[]record.SubTxn{ok}, false}, {[]record.SubTxn{bad}, true}, {[]record.SubTxn{ok, bad}, true},
	} {
		if got := (&record.MultiTxn{Ops: tt.ops}).Failed(); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.ops, got, tt.want)
		}
	}
}

// TestBadTransactionsAreRefused: no part of an invalid transaction is skipped or accepted.
func TestBadTransactionsAreRefused(t *testing.T) {
	sub := func(op, body string) string {
		n := len(strings.ReplaceAll(body, " ", "")) / 2
		return "00000001" + op + strconv.FormatInt(int64(n)+1<<32, 16)[1:] + body
	}
	for _, tt := range []struct {
		name string
		op   wire.OpCode
		body string
		want error
	}{
		{"unknown type", 99, "", wire.ErrValue},
		{"type of a read", wire.OpGetData, "", wire.ErrValue},
		{"no body", wire.OpSetData, "", wire.ErrShort},
		{"bytes behind the body", wire.OpDelete, wiretest.HexPath + "00", wire.ErrLength},
		{"a digest and a byte", wire.OpDelete, wiretest.HexPath + hexDigest + "00", wire.ErrLength},
		{"a digest without its last byte", wire.OpDelete, wiretest.HexPath + hexDigest[:len(hexDigest)-3], wire.ErrLength},
		{"length below null", wire.OpDelete, "fffffffe", wire.ErrLength},
		{"length that nothing backs", wire.OpDelete, wiretest.MaxInt, wire.ErrShort},
		{"null path", wire.OpDelete, "ffffffff", wire.ErrNull},
		{"count that nothing backs", wire.OpCloseSession, wiretest.MaxInt, wire.ErrLength},
		{"create cut inside its data", wire.OpCreate, wiretest.HexPath + "00000004 00", wire.ErrShort},
		{"create with a count that nothing backs", wire.OpCreate, wiretest.HexPath + wiretest.HexData + wiretest.MaxInt + wiretest.HexWorld + "00 00000000", wire.ErrLength},
		{"operation of unknown type", wire.OpMulti, sub("00000063", ""), wire.ErrValue},
		{"operation that opens a session", wire.OpMulti, sub("fffffff6", "00002710"), wire.ErrValue},
		{"multi inside a multi", wire.OpMulti, sub("0000000e", "00000000"), wire.ErrValue},
		{"operation cut short", wire.OpMulti, sub("00000002", "0000"), wire.ErrShort},
		{"operation with bytes behind it", wire.OpMulti, sub("00000002", wiretest.HexPath+"00"), wire.ErrLength},
		{"null operation", wire.OpMulti, "00000001 00000002 ffffffff", wire.ErrShort},
		{"operation longer than the multi", wire.OpMulti, "00000001 00000002 00000010 00000002", wire.ErrShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			txn, err := record.DecodeTxn(payload(t, tt.op, tt.body))
			if !errors.Is(err, tt.want) || txn != nil {
				t.Fatalf("%v, error %v, want %v", txn, err, tt.want)
			}
			if !strings.Contains(err.Error(), "transaction 0x10000002a") {
				t.Errorf("error %q does not name the transaction", err)
			}
		})
	}
	whole := payload(t, wire.OpDelete, "")
	for n := range record.TxnHeaderLen {
		if _, err := record.DecodeTxn(whole[:n]); !errors.Is(err, wire.ErrShort) {
			t.Errorf("%d bytes of a header: error %v, want %v", n, err, wire.ErrShort)
		}
	}
}

// TestErrorsInsideAMultiNameTheirPlace: the offset of an error is that of the operation.
func TestErrorsInsideAMultiNameTheirPlace(t *testing.T) {
	_, err := record.DecodeTxn(payload(t, wire.OpMulti, "00000002"+hexSubOK+"00000002 00000002 0000"))
	const want = "transaction 0x10000002a (multi): offset 58: operation of a multi: offset 0: record is cut short"
	if err == nil || err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// TestDecoderAllocatesLittle: a decoder that decodes many creates allocates only the transaction with its digest, its
// body and its ACL, and now and then memory for the copies of the input. What it has decoded stays valid.
func TestDecoderAllocatesLittle(t *testing.T) {
	txn := func(z wire.Zxid) *record.Txn {
		return &record.Txn{
			TxnHeader: record.TxnHeader{Session: 1, Zxid: z, Type: wire.OpCreate},
			Body:      &record.CreateTxn{Path: fmt.Sprintf("/a/%d", z), Data: make([]byte, 100), ACL: wire.OpenACL(), ParentCversion: 1},
			Digest:    &record.TxnDigest{Version: record.DigestVersion, Tree: uint64(z)},
		}
	}
	var d record.TxnDecoder
	input := txn(1).Append(nil)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := d.Decode(input); err != nil {
			t.Fatal(err)
		}
	}); n > 3 {
		t.Errorf("%v allocations for a transaction, want at most 3", n)
	}
	var all []*record.Txn
	for z := range wire.Zxid(1000) {
		input = txn(z).Append(input[:0])
		got, err := d.Decode(input)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got)
	}
	for z, got := range all {
		if want := txn(wire.Zxid(z)); !bytes.Equal(got.Append(nil), want.Append(nil)) {
			t.Fatalf("transaction %d has changed: %+v", z, got)
		}
	}
	large := txn(1)
	large.Body.(*record.CreateTxn).Data = bytes.Repeat([]byte("x"), 100_000)
	if got, err := d.Decode(large.Append(nil)); err != nil || !bytes.Equal(got.Append(nil), large.Append(nil)) {
		t.Errorf("a large transaction is decoded as %+v, %v", got, err)
	}
}
