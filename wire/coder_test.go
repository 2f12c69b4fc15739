package wire_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// TestNullAndEmptyAreDifferent: null and empty values have different encodings, and decode to what they
// were.
func TestNullAndEmptyAreDifferent(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rec     wire.Record
		encoded string
	}{
		{"null buffer", &wire.SASLRequest{}, wiretest.Null},
		{"empty buffer", &wire.SASLRequest{Token: []byte{}}, "00000000"},
		{"null string", &wire.NullPathRequest{}, wiretest.Null},
		{"empty string", &wire.NullPathRequest{Path: wire.Text("")}, "00000000"},
		{"null vector of strings", &wire.ChildrenResponse{}, wiretest.Null},
		{"empty vector of strings", &wire.ChildrenResponse{Children: []string{}}, "00000000"},
		{"null vector of identities", &wire.WhoAmIResponse{}, wiretest.Null},
		{"empty vector of identities", &wire.WhoAmIResponse{Clients: []wire.ClientInfo{}}, "00000000"},
		{"null ACL", &record.SetACLTxn{}, "00000000" + wiretest.Null + "00000000"},
		{"empty ACL", &record.SetACLTxn{ACL: []wire.ACL{}}, "00000000 00000000 00000000"},
		{"empty multi", &wire.MultiRequest{}, "ffffffff 01 ffffffff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := wire.Append(nil, tt.rec)
			wiretest.EqualBytes(t, b, wiretest.BytesOf(t, tt.encoded))
			got := reflect.New(reflect.TypeOf(tt.rec).Elem()).Interface().(wire.Record)
			wiretest.DecodeWhole(t, b, got)
			if !reflect.DeepEqual(got, tt.rec) {
				t.Errorf("%+v, want %+v", got, tt.rec)
			}
		})
	}
}

// TestSetWatchesWritesNilAsEmpty: nil lists are written as empty ones, because ZooKeeper refuses null
// lists.
func TestSetWatchesWritesNilAsEmpty(t *testing.T) {
	wiretest.EqualBytes(t, wire.Append(nil, &wire.SetWatches2Request{}), make([]byte, 8+5*4))
}

// TestBadRequestsAreUndecodable: the sender of an invalid request gets a marshalling error.
func TestBadRequestsAreUndecodable(t *testing.T) {
	const multiDone = "ffffffff 01 ffffffff"
	for _, tt := range []struct {
		name string
		op   wire.OpCode
		body string
		want error
	}{
		{"no body", wire.OpGetData, "", wire.ErrShort},
		{"path without its length", wire.OpGetData, "000000", wire.ErrShort},
		{"path cut short", wire.OpGetData, "00000002 2f", wire.ErrShort},
		{"flag missing", wire.OpGetData, wiretest.HexPath, wire.ErrShort},
		{"length below null", wire.OpGetData, "fffffffe 00", wire.ErrLength},
		{"most negative length", wire.OpGetData, "80000000 00", wire.ErrLength},
		{"longest length", wire.OpGetData, wiretest.MaxInt + "00", wire.ErrShort},
		{"null path of a read", wire.OpGetData, wiretest.Null + "00", wire.ErrNull},
		{"null path of a delete", wire.OpDelete, wiretest.Null + wiretest.Null, wire.ErrNull},
		{"null path of a create in a multi", wire.OpMulti, "00000001 00 ffffffff" + wiretest.Null + wiretest.HexData + wiretest.HexACL + "00000000" + multiDone, wire.ErrNull},
		{"null path of an addWatch", wire.OpAddWatch, wiretest.Null + "00000000", wire.ErrNull},
		{"data of negative length", wire.OpSetData, wiretest.HexPath + "fffffffe 00000000", wire.ErrLength},
		{"count beyond the frame", wire.OpCreate, wiretest.HexPath + wiretest.HexData + wiretest.MaxInt + wiretest.HexWorld + "00000000", wire.ErrLength},
		{"count of one too many", wire.OpCreate, wiretest.HexPath + wiretest.HexData + "00000002" + wiretest.HexWorld + "00000000", wire.ErrShort},
		{"null id of scheme world", wire.OpCreate, wiretest.HexPath + wiretest.HexData + "00000001 0000001f 00000005 776f726c64" + wiretest.Null + "00000000", wire.ErrNull},
		{"null id of scheme digest", wire.OpCreate, wiretest.HexPath + wiretest.HexData + "00000001 0000001f 00000006 646967657374" + wiretest.Null + "00000000", wire.ErrNull},
		{"null id of scheme ip", wire.OpCreate, wiretest.HexPath + wiretest.HexData + "00000001 0000001f 00000002 6970" + wiretest.Null + "00000000", wire.ErrNull},
		{"watch mode 2", wire.OpAddWatch, wiretest.HexPath + "00000002", wire.ErrValue},
		{"watch mode -1", wire.OpAddWatch, wiretest.HexPath + wiretest.Null, wire.ErrValue},
		{"watcher type 0", wire.OpCheckWatches, wiretest.HexPath + "00000000", wire.ErrValue},
		{"watcher type 6", wire.OpRemoveWatches, wiretest.HexPath + "00000006", wire.ErrValue},
		{"null list of watches", wire.OpSetWatches, "0000000000000000" + wiretest.Null + "00000000 00000000", wire.ErrNull},
		{"null path in a list of watches", wire.OpSetWatches, "0000000000000000 00000001" + wiretest.Null + "00000000 00000000", wire.ErrNull},
		{"list of watches missing", wire.OpSetWatches2, "0000000000000000 00000000 00000000 00000000 00000000", wire.ErrShort},
		{"multi without an end", wire.OpMulti, "", wire.ErrShort},
		{"multi with setACL", wire.OpMulti, "00000007 00 ffffffff" + multiDone, wire.ErrValue},
		{"multi with a type of results", wire.OpMulti, "ffffffff 00 ffffffff" + multiDone, wire.ErrValue},
		{"multi in a multi", wire.OpMulti, "0000000e 00 ffffffff" + multiDone + multiDone, wire.ErrValue},
		{"null path of setData in a multi", wire.OpMulti, "00000005 00 ffffffff" + wiretest.Null + wiretest.HexData + wiretest.Null + multiDone, wire.ErrNull},
		{"null path of check in a multi", wire.OpMulti, "0000000d 00 ffffffff" + wiretest.Null + wiretest.Null + multiDone, wire.ErrNull},
		{"multi cut inside an operation", wire.OpMulti, "00000002 00 ffffffff" + wiretest.HexPath, wire.ErrShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := wire.Decode(wiretest.BytesOf(t, tt.body), newRequest(tt.op)); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestToleratedInputIsNotCanonical: input that ZooKeeper reads in a way of its own is read in the same
// way here. Canonical reports that the bytes differ from the usual encoding.
func TestToleratedInputIsNotCanonical(t *testing.T) {
	acl := func(entry string) string { return "00000000 00000000 00000001 0000001f" + entry + "00000000" }
	withACL := func(scheme, id string) *wire.CreateRequest {
		return &wire.CreateRequest{Data: []byte{}, ACL: []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: scheme, ID: id}}}}
	}
	for _, tt := range []struct {
		name  string
		input string
		want  wire.Record
	}{
		{"boolean of 2", wiretest.HexPath + "02", &wire.PathWatchRequest{Path: "/a", Watch: true}},
		{"boolean of 255", wiretest.HexPath + "ff", &wire.PathWatchRequest{Path: "/a", Watch: true}},
		{"count of -2", "fffffffe", &wire.ChildrenResponse{Children: []string{}}},
		{"count of -2^31", "00000000 00000000 80000000 00000000", &wire.CreateRequest{Data: []byte{}, ACL: []wire.ACL{}}},
		{"negative count of watches", "0000000000000000 00000000 fffffff9 00000000",
			&wire.SetWatchesRequest{Data: []string{}, Exist: []string{}, Child: []string{}}},
		{"null scheme", acl(wiretest.Null + "00000001 78"), withACL("", "x")},
		{"null id behind auth", acl("00000004 61757468" + wiretest.Null), withACL("auth", "")},
		{"null id behind an unknown scheme", acl("00000004 6e6f7065" + wiretest.Null), withACL("nope", "")},
		{"null scheme and id", acl(wiretest.Null + wiretest.Null), withACL("", "")},
		{"null path of a setData", wiretest.Null + wiretest.HexData + wiretest.Null, &wire.SetDataRequest{Data: []byte("x"), Version: -1}},
		{"null path of a setACL", wiretest.Null + "00000000" + wiretest.Null, &wire.SetACLRequest{ACL: []wire.ACL{}, Version: -1}},
		{"malformed UTF-8", "00000003 2f e2 82", &wire.PathRequest{Path: "/\ufffd"}},
		{"code in the header of a multi's operation", "00000002 00 00000007" + wiretest.HexPath + wiretest.Null + "ffffffff 01 ffffffff",
			&wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/a", Version: -1}}}}},
		{"type in the end of a multi", "00000063 01 ffffffff", &wire.MultiRequest{}},
		{"flag of 7 in the end of a multi", "ffffffff 07 ffffffff", &wire.MultiRequest{}},
		{"code in the end of a multi's results", "ffffffff 01 00000000", &wire.MultiResponse{}},
		{"two codes of one result", "ffffffff 00 00000000 ffffff9b ffffffff 01 ffffffff",
			&wire.MultiResponse{Results: []wire.OpResult{{Type: wire.OpError, Err: wire.ErrNoNode}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := reflect.New(reflect.TypeOf(tt.want).Elem()).Interface().(wire.Record)
			b := wiretest.BytesOf(t, tt.input)
			c := wire.Decoder(b)
			if got.Code(&c); c.Err() != nil || c.Left() != 0 {
				t.Fatalf("error %v, %d bytes left", c.Err(), c.Left())
			}
			if c.Canonical() {
				t.Errorf("canonical, but encodes to %x", wire.Append(nil, got))
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestNullPathsAreNoted: ZooKeeper notices the null path of some requests only after it has decoded them.
// Such a request decodes here too. It records that its path was null, and encodes it as null again.
func TestNullPathsAreNoted(t *testing.T) {
	create, watches := new(wire.CreateRequest), new(wire.WatchesRequest)
	for _, tt := range []struct {
		input string
		got   wire.Record
		null  *bool
	}{
		{wiretest.Null + wiretest.HexData + wiretest.HexACL + "00000007", create, &create.NullPath},
		{wiretest.Null + "00000003", watches, &watches.NullPath},
	} {
		b := wiretest.BytesOf(t, tt.input)
		c := wire.Decoder(b)
		tt.got.Code(&c)
		if !c.Canonical() || !*tt.null || !bytes.Equal(wire.Append(nil, tt.got), b) {
			t.Errorf("%s: %+v, error %v, encodes to %x", tt.input, tt.got, c.Err(), wire.Append(nil, tt.got))
		}
	}
}

// TestMalformedTextReadsAsUpstreamReadsIt: each invalid sequence of bytes is read as one U+FFFD. The
// sequences of the first case and their count were seen on a 3.8.0 server.
func TestMalformedTextReadsAsUpstreamReadsIt(t *testing.T) {
	for _, tt := range []struct{ input, want string }{
		{"/\xe2\x82A\xc0\x80\xed\xa0\x80\xf5\xf0\x9f\x98\xe0\x80\x80\xff", "/?A?????????"},
		{"\x80", "?"},
		{"\xc3", "?"},
		{"\xc3(", "?("},
		{"\xe0\xa0", "?"},
		{"\xe0\x9f\xbf", "???"},
		{"\xf0\x90\x80", "?"},
		{"\xf0\x8f\x80\x80", "????"},
		{"\xf4\x90\x80\x80", "????"},
		{"\xf4\x8f\xbf", "?"},
		{"\xed\xbf\xbf\xed\xa0\x80", "??"},
		{"a\u20ac\xffb\ufffd", "a\u20ac?b?"},
	} {
		want := strings.ReplaceAll(tt.want, "?", "\ufffd")
		for _, alias := range []bool{false, true} {
			var r wire.PathRequest
			c := wire.Decoder(wire.Append(nil, &wire.PathRequest{Path: tt.input}))
			c.Alias = alias
			if r.Code(&c); r.Path != want || c.Err() != nil {
				t.Errorf("%q reads as %q, want %q, error %v", tt.input, r.Path, want, c.Err())
			}
		}
		if got := wire.UTF8([]byte(tt.input)); got != want {
			t.Errorf("UTF8 of %q is %q, want %q", tt.input, got, want)
		}
		if a, b := wire.DigestID(tt.input+":x"), wire.DigestID(want+":x"); a != b {
			t.Errorf("the identity of %q is %q, that of its text %q", tt.input, a, b)
		}
	}
}

// TestHandshakeWithoutItsLastByte: old clients do not send the flag at the end. Bytes after the flag are
// ignored.
func TestHandshakeWithoutItsLastByte(t *testing.T) {
	full := wire.Append(nil, &wire.ConnectRequest{TimeoutMS: 10000, Password: make([]byte, wire.PasswordLen), ReadOnly: true, HasReadOnly: true})
	for _, tt := range []struct {
		name          string
		frame         []byte
		readOnly, has bool
		err           error
	}{
		{"with the flag", full, true, true, nil},
		{"with bytes behind the flag", append(full[:len(full):len(full)], 7, 7), true, true, nil},
		{"without the flag", full[:len(full)-1], false, false, nil},
		{"password cut short", full[:len(full)-2], false, false, wire.ErrShort},
		{"empty", nil, false, false, wire.ErrShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := wire.ConnectRequest{ReadOnly: true, HasReadOnly: true} // values that an earlier use has left in the record
			if err := wire.Decode(tt.frame, &r); !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if r.ReadOnly != tt.readOnly || r.HasReadOnly != tt.has {
				t.Errorf("read-only %v, present %v, want %v, %v", r.ReadOnly, r.HasReadOnly, tt.readOnly, tt.has)
			}
		})
	}
}

// TestAPasswordMayBeNull: a null or an empty password also requests a new session.
func TestAPasswordMayBeNull(t *testing.T) {
	for _, password := range [][]byte{nil, {}} {
		want := &wire.ConnectRequest{Password: password}
		got := new(wire.ConnectRequest)
		wiretest.DecodeWhole(t, wire.Append(nil, want), got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestElementsMayBeLargerThanTheDefaultLimit: jute.maxbuffer limits only whole frames, and can be raised.
func TestElementsMayBeLargerThanTheDefaultLimit(t *testing.T) {
	want := &wire.SASLRequest{Token: make([]byte, 2*wire.FrameMax+1)}
	got := new(wire.SASLRequest)
	wiretest.DecodeWhole(t, wire.Append(nil, want), got)
	if len(got.Token) != 2*wire.FrameMax+1 {
		t.Errorf("%d bytes, want %d", len(got.Token), 2*wire.FrameMax+1)
	}
}

// TestTheFirstErrorSticks: after the first error nothing more is read, and the error keeps its offset.
func TestTheFirstErrorSticks(t *testing.T) {
	c := wire.Decoder(wiretest.BytesOf(t, "00000001 00000002 2f"))
	var n int32
	var s string
	c.Int32(&n)
	c.String(&s)
	first := c.Err()
	b := byte(7)
	c.Byte(&b)
	if first == nil || c.Err() != first || b != 7 || !strings.HasPrefix(first.Error(), "offset 8: ") {
		t.Errorf("error %v then %v, byte %d", first, c.Err(), b)
	}
	if c.Canonical() {
		t.Error("what failed to decode is canonical")
	}
}

// TestAliasedStringsShareTheInput: with Alias, strings share the memory of the input, also inside the
// operations of a multi. Without Alias they do not.
func TestAliasedStringsShareTheInput(t *testing.T) {
	for _, alias := range []bool{true, false} {
		want := map[bool]string{true: "/b", false: "/a"}[alias]
		decode := func(r, to wire.Record) {
			b := wire.Append(nil, r)
			c := wire.Decoder(b)
			c.Alias = alias
			to.Code(&c)
			b[len(b)-1] = 'b'
		}
		var r wire.PathRequest
		if decode(&wire.PathRequest{Path: "/a"}, &r); r.Path != want {
			t.Errorf("alias %v: %q after the input changed, want %q", alias, r.Path, want)
		}
		var m record.MultiTxn
		decode(&record.MultiTxn{Ops: []record.SubTxn{{Type: wire.OpDelete, Body: &record.DeleteTxn{Path: "/a"}}}}, &m)
		if got := m.Ops[0].Body.(*record.DeleteTxn).Path; got != want {
			t.Errorf("alias %v: %q inside a multi after the input changed, want %q", alias, got, want)
		}
	}
}
