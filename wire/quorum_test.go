package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// quorumVector is a packet of testdata/zab.json, captured between servers of
// Apache ZooKeeper 3.8.0, or the snapshot behind one.
type quorumVector struct {
	Name    string
	Kind    string
	Conn    string
	From    json.Number
	Hex     string
	Decoded json.RawMessage
}

func quorumVectors(t testing.TB) []quorumVector {
	var file struct{ Vectors []quorumVector }
	readJSON(t, "zab.json", &file)
	return file.Vectors
}

// TestQuorumPacketsDecodeAndEncode takes every captured packet, the record in
// its data, and the transaction in that, both ways.
func TestQuorumPacketsDecodeAndEncode(t *testing.T) {
	vectors := quorumVectors(t)
	if len(vectors) != 425 {
		t.Errorf("%d vectors, want 425", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := unhex(t, v.Hex)
			var want object
			unmarshal(t, v.Decoded, &want)
			if v.Kind == "SNAPSHOT" {
				equalJSON(t, object{"length": len(raw)}, want)
				equalBytes(t, recodeSnapshot(t, raw), raw)
				return
			}
			p, streamed := new(QuorumPacket), new(QuorumPacket)
			decodeWhole(t, raw, p)
			if err := ReadPacket(bufio.NewReader(bytes.NewReader(raw)), streamed, PacketMax); err != nil || !reflect.DeepEqual(p, streamed) {
				t.Errorf("from a stream %+v, error %v, want %+v", streamed, err, p)
			}
			got := showPacket(t, p)
			if _, ok := want["txn"]; ok {
				dropOffsets(want["txn"].(object))
			}
			equalJSON(t, got, want)
			equalBytes(t, Append(nil, p), raw)
		})
	}
}

// dropOffsets removes from a recorded transaction what is no value of it.
func dropOffsets(txn object) {
	delete(txn, "bodyOffset")
	delete(txn, "digestOffset")
	if _, ok := txn["digest"]; !ok {
		txn["digest"] = nil
	}
	body := txn["body"].(object)
	ops, _ := body["txns"].([]any)
	for _, op := range ops {
		delete(op.(object), "len")
	}
}

// showPacket shows a packet and checks that its data encodes to itself.
func showPacket(t *testing.T, p *QuorumPacket) object {
	o := object{"type": p.Type.String(), "zxid": hex0x(p.Zxid), "dataLen": nil, "authinfo": list(p.Auth, showID)}
	if p.Zxid == -1 {
		o["zxid"] = -1
	}
	if p.Data != nil {
		o["dataLen"] = len(p.Data)
	}
	switch p.Type {
	case PacketFollowerInfo, PacketObserverInfo:
		i := recode(t, p.Data, new(LearnerInfo))
		o["learnerInfo"] = object{"serverid": i.Server, "protocolVersion": i.Version, "configVersion": i.ConfigVersion}
	case PacketLeaderInfo:
		o["protocolVersion"] = recode(t, p.Data, new(LeaderInfo)).Version
	case PacketAckEpoch:
		o["currentEpoch"] = recode(t, p.Data, new(EpochAck)).CurrentEpoch
	case PacketNewLeader:
		o["config"] = string(p.Data)
	case PacketRequest:
		r := recode(t, p.Data, new(ForwardedRequest))
		o["request"] = object{"sessionId": hex0x(r.Session), "cxid": r.Cxid, "op": r.Op.String(), "type": r.Op, "body": hexBuffer(r.Body)}
	case PacketRevalidate:
		o["revalidate"] = showRevalidate(t, p.Data)
	case PacketPing:
		if touched := recode(t, p.Data, new(TouchedSessions)); touched.Sessions != nil {
			o["touched"] = list(touched.Sessions, func(s *TouchedSession) object {
				return object{"sessionId": hex0x(s.Session), "timeout": s.TimeoutMS}
			})
		}
	case PacketProposal, PacketInform:
		o["txn"] = showTxn(t, p.Data)
	case PacketCommitActivate, PacketInformActivate:
		a := recode(t, p.Data, new(Activation))
		o["designatedLeader"] = a.Leader
		if p.Type == PacketInformActivate {
			o["txn"] = showTxn(t, a.Txn)
		}
	}
	return o
}

// recode decodes b into rec, checks that rec encodes to b, and returns rec.
func recode[R Record](t *testing.T, b []byte, rec R) R {
	t.Helper()
	decodeWhole(t, b, rec)
	equalBytes(t, Append(nil, rec), b)
	return rec
}

// showRevalidate shows a question or an answer, which differ in length.
func showRevalidate(t *testing.T, data []byte) object {
	if len(data) == 9 {
		r := recode(t, data, new(Revalidated))
		return object{"sessionId": hex0x(r.Session), "valid": r.Valid}
	}
	r := recode(t, data, new(Revalidation))
	return object{"sessionId": hex0x(r.Session), "timeout": r.TimeoutMS}
}

// showTxn shows a transaction as zab.json does.
func showTxn(t *testing.T, b []byte) object {
	txn := recode(t, b, new(Txn))
	o := object{
		"header": object{"clientId": hex0x(txn.Session), "cxid": txn.Cxid, "zxid": txn.Zxid.String(),
			"time": txn.Time, "type": txn.Type, "op": txn.Type.String()},
		"digest": showDigest(txn.Digest, "treeDigest", true),
	}
	buffer := hexBuffer
	if txn.Type == OpReconfig {
		buffer = func(b []byte) any { return string(b) }
	}
	multi, ok := txn.Body.(*MultiTxn)
	if !ok {
		o["body"] = showTxnBody(txn.Body, buffer)
		return o
	}
	o["body"] = object{"txns": list(multi.Ops, func(op *SubTxn) object {
		return object{"type": op.Type, "op": op.Type.String(), "body": showTxnBody(op.Body, buffer)}
	})}
	return o
}

// recodeSnapshot decodes the snapshot that follows a PacketSnap from a stream
// and encodes it again.
func recodeSnapshot(t *testing.T, raw []byte) []byte {
	in := StreamDecoder(bufio.NewReader(bytes.NewReader(raw)), len(raw))
	out := Encoder(nil)
	both := func(code func(c *Coder)) {
		code(&in)
		code(&out)
	}
	var sessions, lists int32
	both(func(c *Coder) { c.Int32(&sessions) })
	for range sessions {
		var s TouchedSession // an entry has the same fields
		both(s.Code)
	}
	both(func(c *Coder) { c.Int32(&lists) })
	for range lists {
		var key int64
		var acl []ACL
		both(func(c *Coder) { c.Int64(&key); c.ACLs(&acl) })
	}
	for path := ""; path != "/" && in.Err() == nil; {
		var n DataNode
		both(func(c *Coder) { c.String(&path) })
		if path != "/" {
			both(n.Code)
		}
	}
	var end string
	both(func(c *Coder) { c.String(&end) })
	if in.Err() != nil || end != SnapshotEnd {
		t.Errorf("error %v, end %q, want %q", in.Err(), end, SnapshotEnd)
	}
	return out.Bytes()
}

// TestPacketsStandBackToBack reads each captured direction of a connection
// as one stream, however it is cut, with the snapshots in it.
func TestPacketsStandBackToBack(t *testing.T) {
	streams := map[string][]quorumVector{}
	for _, v := range quorumVectors(t) {
		key := v.Name[:strings.Index(v.Name, "/")] + " " + v.Conn + " from " + v.From.String()
		streams[key] = append(streams[key], v)
	}
	if len(streams) < 20 {
		t.Errorf("%d streams", len(streams))
	}
	for name, vectors := range streams {
		var raw []byte
		for _, v := range vectors {
			raw = append(raw, unhex(t, v.Hex)...)
		}
		r := bufio.NewReaderSize(iotest.HalfReader(bytes.NewReader(raw)), 16)
		for _, v := range vectors {
			if v.Kind == "SNAPSHOT" {
				if _, err := io.CopyN(io.Discard, r, int64(len(v.Hex)/2)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			p := new(QuorumPacket)
			if err := ReadPacket(r, p, PacketMax); err != nil {
				t.Fatalf("%s, %s: %v", name, v.Name, err)
			}
			equalBytes(t, Append(nil, p), unhex(t, v.Hex))
		}
		if err := ReadPacket(r, new(QuorumPacket), PacketMax); err != io.EOF {
			t.Errorf("%s: error %v at the end, want EOF", name, err)
		}
	}
}

// TestBadPacketsAreRefused: by their lengths, or where they end too soon.
func TestBadPacketsAreRefused(t *testing.T) {
	const head, max = "00000002 0000000100000001 ", 64
	auth := "00000001 00000002 6970 00000009 3132372e302e302e31"
	whole := bytesOf(t, head+"00000002 6162"+auth)
	for n := range whole {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		r := bufio.NewReader(bytes.NewReader(whole[:n]))
		if err := ReadPacket(r, new(QuorumPacket), max); !errors.Is(err, want) {
			t.Errorf("%d bytes: error %v, want %v", n, err, want)
		}
		if err := Decode(whole[:n], new(QuorumPacket)); !errors.Is(err, ErrShort) && !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes: error %v, want %v", n, err, ErrShort)
		}
	}
	for _, tt := range []struct {
		name, packet string
		want         error
	}{
		{"data of one byte too many", head + "00000031" + strings.Repeat("61", 49), ErrLength},
		{"data that leaves no room for the identities", head + "00000030" + strings.Repeat("61", 48) + null, ErrLength},
		{"longest data", head + maxInt, ErrLength},
		{"data of negative length", head + "fffffffe", ErrLength},
		{"more identities than fit", head + null + maxInt, ErrLength},
		{"identity without an id", head + null + "00000001 00000002 6970" + null, ErrNull},
		{"identity of negative length", head + null + "00000001 fffffffe", ErrLength},
		{"identity too long", head + null + "00000001 00000041", ErrLength},
	} {
		r := bufio.NewReader(bytes.NewReader(bytesOf(t, tt.packet)))
		if err := ReadPacket(r, new(QuorumPacket), max); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestAPacketOfExactlyTheLimitIsRead.
func TestAPacketOfExactlyTheLimitIsRead(t *testing.T) {
	want := &QuorumPacket{Type: PacketProposal, Data: make([]byte, 100)}
	raw := Append(nil, want)
	for _, tt := range []struct {
		max int
		err error
	}{{len(raw), nil}, {len(raw) - 1, ErrLength}} {
		got := new(QuorumPacket)
		if err := ReadPacket(bufio.NewReader(bytes.NewReader(raw)), got, tt.max); !errors.Is(err, tt.err) {
			t.Errorf("limit %d: error %v, want %v", tt.max, err, tt.err)
		}
	}
}

// TestAPacketsLengthsCostNothing: memory is made only for bytes that came.
func TestAPacketsLengthsCostNothing(t *testing.T) {
	const head = "00000002 0000000100000001 "
	many := "00040000" // as many identities as a packet of PacketMax could hold, nearly
	for name, packet := range map[string]string{
		"data":       head + "001ffff0",
		"identities": head + null + many,
		"scheme":     head + null + "00000001 001fffff",
	} {
		raw := bytesOf(t, packet)
		source := bytes.NewReader(raw)
		r := bufio.NewReader(source)
		checkAllocated(t, 2*readStep, func() {
			source.Reset(raw)
			r.Reset(source)
			if err := ReadPacket(r, new(QuorumPacket), PacketMax); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: error %v, want %v", name, err, io.ErrUnexpectedEOF)
			}
		})
	}
}

// TestAPacketAllocatesItsDataOnly: the coder and the fields cost nothing.
func TestAPacketAllocatesItsDataOnly(t *testing.T) {
	for _, tt := range []struct {
		p    QuorumPacket
		want float64
	}{
		{QuorumPacket{Type: PacketCommit, Zxid: 7}, 0},
		{QuorumPacket{Type: PacketProposal, Zxid: 7, Data: make([]byte, 300)}, 1},
		{QuorumPacket{Type: PacketRequest, Data: []byte("x"), Auth: []ID{{"ip", "127.0.0.1"}}}, 4},
	} {
		raw := Append(nil, &tt.p)
		source := bytes.NewReader(raw)
		r := bufio.NewReader(source)
		var p QuorumPacket
		got := testing.AllocsPerRun(100, func() {
			source.Reset(raw)
			r.Reset(source)
			if err := ReadPacket(r, &p, PacketMax); err != nil {
				t.Fatal(err)
			}
		})
		if got != tt.want {
			t.Errorf("%v: %v allocations, want %v", tt.p.Type, got, tt.want)
		}
	}
}

// TestOlderLearnersSayLess: the fields they leave out are 0, and what newer
// ones add is ignored.
func TestOlderLearnersSayLess(t *testing.T) {
	const id, version, config = "0000000000000003", "00010000", "0000000100000000"
	full := LearnerInfo{Server: 3, Version: QuorumVersion, ConfigVersion: 1 << 32}
	for _, tt := range []struct {
		name, data string
		want       LearnerInfo
		err        error
	}{
		{"all", id + version + config, full, nil},
		{"bytes behind it", id + version + config + "ff", full, nil},
		{"no configuration", id + version, LearnerInfo{Server: 3, Version: QuorumVersion}, nil},
		{"half a configuration", id + version + config[:8], LearnerInfo{Server: 3, Version: QuorumVersion}, nil},
		{"no version", id, LearnerInfo{Server: 3}, nil},
		{"half a version", id + version[:4], LearnerInfo{Server: 3}, nil},
		{"half an id", id[:8], LearnerInfo{}, ErrShort},
		{"nothing", "", LearnerInfo{}, ErrShort},
	} {
		got := LearnerInfo{Version: 7, ConfigVersion: 7} // left from an earlier use
		err := Decode(bytesOf(t, tt.data), &got)
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.err)
		}
		if err == nil && got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestTouchedSessionsFillTheData: any number of whole entries.
func TestTouchedSessionsFillTheData(t *testing.T) {
	entry := "0100000c78ee0000 00002710"
	one := TouchedSession{Session: 0x100000c78ee0000, TimeoutMS: 10000}
	for n := range 4 {
		got := recode(t, bytesOf(t, strings.Repeat(entry, n)), new(TouchedSessions))
		if len(got.Sessions) != n || n > 0 && got.Sessions[n-1] != one {
			t.Errorf("%d entries: %v", n, got)
		}
	}
	for cut := 1; cut < touchedSessionLen; cut++ {
		b := bytesOf(t, entry+entry)
		if err := Decode(b[:len(b)-cut], new(TouchedSessions)); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes missing: error %v, want %v", cut, err, ErrShort)
		}
	}
}

// TestRecordsWithoutAnEndAreNotReadFromStreams: they would take what follows.
func TestRecordsWithoutAnEndAreNotReadFromStreams(t *testing.T) {
	for _, rec := range []Record{
		new(Txn), new(ForwardedRequest), new(Activation), new(TouchedSessions), new(Notification), new(LearnerInfo),
	} {
		raw := make([]byte, 100)
		raw[31] = byte(OpDelete) // the type of the transaction
		err := ReadRecord(bufio.NewReader(bytes.NewReader(raw)), rec, PacketMax)
		if !errors.Is(err, errNoEnd) {
			t.Errorf("%T: error %v, want %v", rec, err, errNoEnd)
		}
	}
}

// TestPacketTypesHaveTheirNames, and those without one a number.
func TestPacketTypesHaveTheirNames(t *testing.T) {
	for p := PacketRequest; p < packetTypeEnd; p++ {
		if strings.Contains(p.String(), "packet") || p.String() == "" {
			t.Errorf("%d is %q", p, p)
		}
	}
	if PacketHandOver.String() != "HANDOVER" {
		t.Errorf("%d is %q", PacketHandOver, PacketHandOver)
	}
	for _, p := range []PacketType{0, -1, packetTypeEnd, PacketHandOver + 1, 1 << 30} {
		if want := "packet " + strconv.Itoa(int(p)); p.String() != want {
			t.Errorf("%q, want %q", p, want)
		}
	}
}
