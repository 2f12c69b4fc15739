package peerwire_test

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

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// quorumVector is a packet of testdata/zab.json, captured between servers of Apache ZooKeeper 3.8.0, or
// the snapshot that follows a packet.
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
	wiretest.ReadJSON(t, "zab.json", &file)
	return file.Vectors
}

// TestQuorumPacketsDecodeAndEncode decodes every captured packet, the record in its data, and the
// transaction in that record, and encodes them again.
func TestQuorumPacketsDecodeAndEncode(t *testing.T) {
	vectors := quorumVectors(t)
	if len(vectors) != 425 {
		t.Errorf("%d vectors, want 425", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := wiretest.Unhex(t, v.Hex)
			var want wiretest.Object
			wiretest.Unmarshal(t, v.Decoded, &want)
			if v.Kind == "SNAPSHOT" {
				wiretest.EqualJSON(t, wiretest.Object{"length": len(raw)}, want)
				wiretest.EqualBytes(t, recodeSnapshot(t, raw), raw)
				return
			}
			p, streamed := new(peerwire.QuorumPacket), new(peerwire.QuorumPacket)
			wiretest.DecodeWhole(t, raw, p)
			if err := peerwire.ReadPacket(bufio.NewReader(bytes.NewReader(raw)), streamed, peerwire.PacketMax); err != nil || !reflect.DeepEqual(p, streamed) {
				t.Errorf("from a stream %+v, error %v, want %+v", streamed, err, p)
			}
			got := showPacket(t, p)
			if _, ok := want["txn"]; ok {
				dropOffsets(want["txn"].(wiretest.Object))
			}
			wiretest.EqualJSON(t, got, want)
			wiretest.EqualBytes(t, wire.Append(nil, p), raw)
		})
	}
}

// dropOffsets removes the offsets from a recorded transaction, because they are not values of it.
func dropOffsets(txn wiretest.Object) {
	delete(txn, "bodyOffset")
	delete(txn, "digestOffset")
	if _, ok := txn["digest"]; !ok {
		txn["digest"] = nil
	}
	body := txn["body"].(wiretest.Object)
	ops, _ := body["txns"].([]any)
	for _, op := range ops {
		delete(op.(wiretest.Object), "len")
	}
}

// showPacket shows a packet and checks that its data, decoded and encoded again, is the same.
func showPacket(t *testing.T, p *peerwire.QuorumPacket) wiretest.Object {
	o := wiretest.Object{"type": p.Type.String(), "zxid": wiretest.Hex0x(p.Zxid), "dataLen": nil, "authinfo": wiretest.List(p.Auth, wiretest.ShowID)}
	if p.Zxid == -1 {
		o["zxid"] = -1
	}
	if p.Data != nil {
		o["dataLen"] = len(p.Data)
	}
	switch p.Type {
	case peerwire.PacketFollowerInfo, peerwire.PacketObserverInfo:
		i := wiretest.Recode(t, p.Data, new(peerwire.LearnerInfo))
		o["learnerInfo"] = wiretest.Object{"serverid": i.Server, "protocolVersion": i.Version, "configVersion": i.ConfigVersion}
	case peerwire.PacketLeaderInfo:
		o["protocolVersion"] = wiretest.Recode(t, p.Data, new(peerwire.LeaderInfo)).Version
	case peerwire.PacketAckEpoch:
		o["currentEpoch"] = wiretest.Recode(t, p.Data, new(peerwire.EpochAck)).CurrentEpoch
	case peerwire.PacketNewLeader:
		o["config"] = string(p.Data)
	case peerwire.PacketRequest:
		r := wiretest.Recode(t, p.Data, new(peerwire.ForwardedRequest))
		o["request"] = wiretest.Object{"sessionId": wiretest.Hex0x(r.Session), "cxid": r.Cxid, "op": r.Op.String(), "type": r.Op, "body": wiretest.HexBuffer(r.Body)}
	case peerwire.PacketRevalidate:
		o["revalidate"] = showRevalidate(t, p.Data)
	case peerwire.PacketPing:
		if touched := wiretest.Recode(t, p.Data, new(peerwire.TouchedSessions)); touched.Sessions != nil {
			o["touched"] = wiretest.List(touched.Sessions, func(s *peerwire.TouchedSession) wiretest.Object {
				return wiretest.Object{"sessionId": wiretest.Hex0x(s.Session), "timeout": s.TimeoutMS}
			})
		}
	case peerwire.PacketProposal, peerwire.PacketInform:
		o["txn"] = wiretest.ShowTxn(t, p.Data)
	case peerwire.PacketCommitActivate, peerwire.PacketInformActivate:
		a := wiretest.Recode(t, p.Data, new(peerwire.Activation))
		o["designatedLeader"] = a.Leader
		if p.Type == peerwire.PacketInformActivate {
			o["txn"] = wiretest.ShowTxn(t, a.Txn)
		}
	}
	return o
}

// showRevalidate shows a question about a session or the answer to it. Their lengths differ.
func showRevalidate(t *testing.T, data []byte) wiretest.Object {
	if len(data) == 9 {
		r := wiretest.Recode(t, data, new(peerwire.Revalidated))
		return wiretest.Object{"sessionId": wiretest.Hex0x(r.Session), "valid": r.Valid}
	}
	r := wiretest.Recode(t, data, new(peerwire.Revalidation))
	return wiretest.Object{"sessionId": wiretest.Hex0x(r.Session), "timeout": r.TimeoutMS}
}

// recodeSnapshot decodes the snapshot that follows a PacketSnap from a stream
// and encodes it again.
func recodeSnapshot(t *testing.T, raw []byte) []byte {
	in := wire.StreamDecoder(bufio.NewReader(bytes.NewReader(raw)), len(raw))
	out := wire.Encoder(nil)
	both := func(code func(c *wire.Coder)) {
		code(&in)
		code(&out)
	}
	var sessions, lists int32
	both(func(c *wire.Coder) { c.Int32(&sessions) })
	for range sessions {
		var s peerwire.TouchedSession // an entry of TouchedSessions has the same fields
		both(s.Code)
	}
	both(func(c *wire.Coder) { c.Int32(&lists) })
	for range lists {
		var key int64
		var acl []wire.ACL
		both(func(c *wire.Coder) { c.Int64(&key); c.ACLs(&acl) })
	}
	for path := ""; path != "/" && in.Err() == nil; {
		var n record.DataNode
		both(func(c *wire.Coder) { c.String(&path) })
		if path != "/" {
			both(n.Code)
		}
	}
	var end string
	both(func(c *wire.Coder) { c.String(&end) })
	if in.Err() != nil || end != peerwire.SnapshotEnd {
		t.Errorf("error %v, end %q, want %q", in.Err(), end, peerwire.SnapshotEnd)
	}
	return out.Bytes()
}

// TestPacketsFollowEachOther reads each captured direction of a connection as one stream that arrives in
// pieces, including the snapshots in it.
func TestPacketsFollowEachOther(t *testing.T) {
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
			raw = append(raw, wiretest.Unhex(t, v.Hex)...)
		}
		r := bufio.NewReaderSize(iotest.HalfReader(bytes.NewReader(raw)), 16)
		for _, v := range vectors {
			if v.Kind == "SNAPSHOT" {
				if _, err := io.CopyN(io.Discard, r, int64(len(v.Hex)/2)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			p := new(peerwire.QuorumPacket)
			if err := peerwire.ReadPacket(r, p, peerwire.PacketMax); err != nil {
				t.Fatalf("%s, %s: %v", name, v.Name, err)
			}
			wiretest.EqualBytes(t, wire.Append(nil, p), wiretest.Unhex(t, v.Hex))
		}
		if err := peerwire.ReadPacket(r, new(peerwire.QuorumPacket), peerwire.PacketMax); err != io.EOF {
			t.Errorf("%s: error %v at the end, want EOF", name, err)
		}
	}
}

// TestBadPacketsAreRefused: a packet is refused because of its lengths, or because the stream ends within
// it.
func TestBadPacketsAreRefused(t *testing.T) {
	const head, max = "00000002 0000000100000001 ", 64
	auth := "00000001 00000002 6970 00000009 3132372e302e302e31"
	whole := wiretest.BytesOf(t, head+"00000002 6162"+auth)
	for n := range whole {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		r := bufio.NewReader(bytes.NewReader(whole[:n]))
		if err := peerwire.ReadPacket(r, new(peerwire.QuorumPacket), max); !errors.Is(err, want) {
			t.Errorf("%d bytes: error %v, want %v", n, err, want)
		}
		if err := wire.Decode(whole[:n], new(peerwire.QuorumPacket)); !errors.Is(err, wire.ErrShort) && !errors.Is(err, wire.ErrLength) {
			t.Errorf("%d bytes: error %v, want %v", n, err, wire.ErrShort)
		}
	}
	for _, tt := range []struct {
		name, packet string
		want         error
	}{
		{"data of one byte too many", head + "00000031" + strings.Repeat("61", 49), wire.ErrLength},
		{"data that leaves no room for the identities", head + "00000030" + strings.Repeat("61", 48) + wiretest.Null, wire.ErrLength},
		{"longest data", head + wiretest.MaxInt, wire.ErrLength},
		{"data of negative length", head + "fffffffe", wire.ErrLength},
		{"more identities than fit", head + wiretest.Null + wiretest.MaxInt, wire.ErrLength},
		{"identity without an id", head + wiretest.Null + "00000001 00000002 6970" + wiretest.Null, wire.ErrNull},
		{"identity of negative length", head + wiretest.Null + "00000001 fffffffe", wire.ErrLength},
		{"identity too long", head + wiretest.Null + "00000001 00000041", wire.ErrLength},
	} {
		r := bufio.NewReader(bytes.NewReader(wiretest.BytesOf(t, tt.packet)))
		if err := peerwire.ReadPacket(r, new(peerwire.QuorumPacket), max); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestAPacketOfExactlyTheLimitIsRead: a packet that is as long as the limit is read, and one that is a byte
// longer is refused.
func TestAPacketOfExactlyTheLimitIsRead(t *testing.T) {
	want := &peerwire.QuorumPacket{Type: peerwire.PacketProposal, Data: make([]byte, 100)}
	raw := wire.Append(nil, want)
	for _, tt := range []struct {
		max int
		err error
	}{{len(raw), nil}, {len(raw) - 1, wire.ErrLength}} {
		got := new(peerwire.QuorumPacket)
		if err := peerwire.ReadPacket(bufio.NewReader(bytes.NewReader(raw)), got, tt.max); !errors.Is(err, tt.err) {
			t.Errorf("limit %d: error %v, want %v", tt.max, err, tt.err)
		}
	}
}

// TestAPacketsLengthsCostNothing: memory is allocated only for bytes that have arrived, not for announced
// lengths.
func TestAPacketsLengthsCostNothing(t *testing.T) {
	const head = "00000002 0000000100000001 "
	many := "00040000" // nearly as many identities as a packet of PacketMax bytes can hold
	for name, packet := range map[string]string{
		"data":       head + "001ffff0",
		"identities": head + wiretest.Null + many,
		"scheme":     head + wiretest.Null + "00000001 001fffff",
	} {
		raw := wiretest.BytesOf(t, packet)
		source := bytes.NewReader(raw)
		r := bufio.NewReader(source)
		wiretest.CheckAllocated(t, 2*wiretest.ReadStep, func() {
			source.Reset(raw)
			r.Reset(source)
			if err := peerwire.ReadPacket(r, new(peerwire.QuorumPacket), peerwire.PacketMax); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: error %v, want %v", name, err, io.ErrUnexpectedEOF)
			}
		})
	}
}

// TestAPacketAllocatesItsDataOnly: the coder and the fields allocate nothing.
func TestAPacketAllocatesItsDataOnly(t *testing.T) {
	for _, tt := range []struct {
		p    peerwire.QuorumPacket
		want float64
	}{
		{peerwire.QuorumPacket{Type: peerwire.PacketCommit, Zxid: 7}, 0},
		{peerwire.QuorumPacket{Type: peerwire.PacketProposal, Zxid: 7, Data: make([]byte, 300)}, 1},
		{peerwire.QuorumPacket{Type: peerwire.PacketRequest, Data: []byte("x"), Auth: []wire.ID{{Scheme: "ip", ID: "127.0.0.1"}}}, 4},
	} {
		raw := wire.Append(nil, &tt.p)
		source := bytes.NewReader(raw)
		r := bufio.NewReader(source)
		var p peerwire.QuorumPacket
		got := testing.AllocsPerRun(100, func() {
			source.Reset(raw)
			r.Reset(source)
			if err := peerwire.ReadPacket(r, &p, peerwire.PacketMax); err != nil {
				t.Fatal(err)
			}
		})
		if got != tt.want {
			t.Errorf("%v: %v allocations, want %v", tt.p.Type, got, tt.want)
		}
	}
}

// TestShorterLearnerInfo: fields that an older server leaves out are 0, and what a newer server adds is
// ignored.
func TestShorterLearnerInfo(t *testing.T) {
	const id, version, config = "0000000000000003", "00010000", "0000000100000000"
	full := peerwire.LearnerInfo{Server: 3, Version: peerwire.QuorumVersion, ConfigVersion: 1 << 32}
	for _, tt := range []struct {
		name, data string
		want       peerwire.LearnerInfo
		err        error
	}{
		{"all", id + version + config, full, nil},
		{"bytes behind it", id + version + config + "ff", full, nil},
		{"no configuration", id + version, peerwire.LearnerInfo{Server: 3, Version: peerwire.QuorumVersion}, nil},
		{"half a configuration", id + version + config[:8], peerwire.LearnerInfo{Server: 3, Version: peerwire.QuorumVersion}, nil},
		{"no version", id, peerwire.LearnerInfo{Server: 3}, nil},
		{"half a version", id + version[:4], peerwire.LearnerInfo{Server: 3}, nil},
		{"half an id", id[:8], peerwire.LearnerInfo{}, wire.ErrShort},
		{"nothing", "", peerwire.LearnerInfo{}, wire.ErrShort},
	} {
		got := peerwire.LearnerInfo{Version: 7, ConfigVersion: 7} // values that an earlier use has left in the record
		err := wire.Decode(wiretest.BytesOf(t, tt.data), &got)
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.err)
		}
		if err == nil && got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestTouchedSessionsFillTheData: the data consists of any number of whole entries.
func TestTouchedSessionsFillTheData(t *testing.T) {
	entry := "0100000c78ee0000 00002710"
	one := peerwire.TouchedSession{Session: 0x100000c78ee0000, TimeoutMS: 10000}
	for n := range 4 {
		got := wiretest.Recode(t, wiretest.BytesOf(t, strings.Repeat(entry, n)), new(peerwire.TouchedSessions))
		if len(got.Sessions) != n || n > 0 && got.Sessions[n-1] != one {
			t.Errorf("%d entries: %v", n, got)
		}
	}
	for cut := 1; cut < peerwire.TouchedSessionLen; cut++ {
		b := wiretest.BytesOf(t, entry+entry)
		if err := wire.Decode(b[:len(b)-cut], new(peerwire.TouchedSessions)); !errors.Is(err, wire.ErrShort) {
			t.Errorf("%d bytes missing: error %v, want %v", cut, err, wire.ErrShort)
		}
	}
}

// TestPacketTypesHaveTheirNames also checks that types without a name print as a number.
func TestPacketTypesHaveTheirNames(t *testing.T) {
	for p := peerwire.PacketRequest; p < peerwire.PacketTypeEnd; p++ {
		if strings.Contains(p.String(), "packet") || p.String() == "" {
			t.Errorf("%d is %q", p, p)
		}
	}
	if peerwire.PacketHandOver.String() != "HANDOVER" {
		t.Errorf("%d is %q", peerwire.PacketHandOver, peerwire.PacketHandOver)
	}
	if peerwire.PacketFitness.String() != "FITNESS" {
		t.Errorf("%d is %q", peerwire.PacketFitness, peerwire.PacketFitness)
	}
	if peerwire.PacketDigest.String() != "DIGEST" {
		t.Errorf("%d is %q", peerwire.PacketDigest, peerwire.PacketDigest)
	}
	if peerwire.PacketTouch.String() != "TOUCH" {
		t.Errorf("%d is %q", peerwire.PacketTouch, peerwire.PacketTouch)
	}
	for _, p := range []peerwire.PacketType{0, -1, peerwire.PacketTypeEnd, peerwire.PacketTouch + 1, 1 << 30} {
		if want := "packet " + strconv.Itoa(int(p)); p.String() != want {
			t.Errorf("%q, want %q", p, want)
		}
	}
}
