package wire

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// bytesOf reads hex in which blanks are for the reader.
func bytesOf(t testing.TB, s string) []byte {
	t.Helper()
	return unhex(t, strings.ReplaceAll(s, " ", ""))
}

const null = "ffffffff "

// TestNullAndEmptyAreDifferent: each has its own encoding and comes back as
// what it was.
func TestNullAndEmptyAreDifferent(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rec     Record
		encoded string
	}{
		{"null buffer", &SASLRequest{}, null},
		{"empty buffer", &SASLRequest{Token: []byte{}}, "00000000"},
		{"null string", &NullPathRequest{}, null},
		{"empty string", &NullPathRequest{Path: Text("")}, "00000000"},
		{"null vector of strings", &ChildrenResponse{}, null},
		{"empty vector of strings", &ChildrenResponse{Children: []string{}}, "00000000"},
		{"null vector of identities", &WhoAmIResponse{}, null},
		{"empty vector of identities", &WhoAmIResponse{Clients: []ClientInfo{}}, "00000000"},
		{"null ACL", &SetACLTxn{}, "00000000" + null + "00000000"},
		{"empty ACL", &SetACLTxn{ACL: []ACL{}}, "00000000 00000000 00000000"},
		{"empty multi", &MultiRequest{}, "ffffffff 01 ffffffff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := Append(nil, tt.rec)
			equalBytes(t, b, bytesOf(t, tt.encoded))
			got := reflect.New(reflect.TypeOf(tt.rec).Elem()).Interface().(Record)
			decodeWhole(t, b, got)
			if !reflect.DeepEqual(got, tt.rec) {
				t.Errorf("%+v, want %+v", got, tt.rec)
			}
		})
	}
}

// TestSetWatchesWritesNilAsEmpty: upstream refuses null lists.
func TestSetWatchesWritesNilAsEmpty(t *testing.T) {
	equalBytes(t, Append(nil, &SetWatches2Request{}), make([]byte, 8+5*4))
}

// hexWorld is one entry of an ACL: world:anyone, all.
const hexWorld = "0000001f 00000005 776f726c64 00000006 616e796f6e65 "

// TestBadRequestsAreUndecodable: the sender gets a marshalling error.
func TestBadRequestsAreUndecodable(t *testing.T) {
	const multiDone = "ffffffff 01 ffffffff"
	for _, tt := range []struct {
		name string
		op   OpCode
		body string
		want error
	}{
		{"no body", OpGetData, "", ErrShort},
		{"path without its length", OpGetData, "000000", ErrShort},
		{"path cut short", OpGetData, "00000002 2f", ErrShort},
		{"flag missing", OpGetData, hexPath, ErrShort},
		{"length below null", OpGetData, "fffffffe 00", ErrLength},
		{"most negative length", OpGetData, "80000000 00", ErrLength},
		{"longest length", OpGetData, maxInt + "00", ErrShort},
		{"null path of a read", OpGetData, null + "00", ErrNull},
		{"null path of a delete", OpDelete, null + null, ErrNull},
		{"null path of a create in a multi", OpMulti, "00000001 00 ffffffff" + null + hexData + hexACL + "00000000" + multiDone, ErrNull},
		{"null path of an addWatch", OpAddWatch, null + "00000000", ErrNull},
		{"data of negative length", OpSetData, hexPath + "fffffffe 00000000", ErrLength},
		{"count beyond the frame", OpCreate, hexPath + hexData + maxInt + hexWorld + "00000000", ErrLength},
		{"count of one too many", OpCreate, hexPath + hexData + "00000002" + hexWorld + "00000000", ErrShort},
		{"null id of scheme world", OpCreate, hexPath + hexData + "00000001 0000001f 00000005 776f726c64" + null + "00000000", ErrNull},
		{"null id of scheme digest", OpCreate, hexPath + hexData + "00000001 0000001f 00000006 646967657374" + null + "00000000", ErrNull},
		{"null id of scheme ip", OpCreate, hexPath + hexData + "00000001 0000001f 00000002 6970" + null + "00000000", ErrNull},
		{"watch mode 2", OpAddWatch, hexPath + "00000002", ErrValue},
		{"watch mode -1", OpAddWatch, hexPath + null, ErrValue},
		{"watcher type 0", OpCheckWatches, hexPath + "00000000", ErrValue},
		{"watcher type 6", OpRemoveWatches, hexPath + "00000006", ErrValue},
		{"null list of watches", OpSetWatches, "0000000000000000" + null + "00000000 00000000", ErrNull},
		{"null path in a list of watches", OpSetWatches, "0000000000000000 00000001" + null + "00000000 00000000", ErrNull},
		{"list of watches missing", OpSetWatches2, "0000000000000000 00000000 00000000 00000000 00000000", ErrShort},
		{"multi without an end", OpMulti, "", ErrShort},
		{"multi with setACL", OpMulti, "00000007 00 ffffffff" + multiDone, ErrValue},
		{"multi with a type of results", OpMulti, "ffffffff 00 ffffffff" + multiDone, ErrValue},
		{"multi in a multi", OpMulti, "0000000e 00 ffffffff" + multiDone + multiDone, ErrValue},
		{"null path of setData in a multi", OpMulti, "00000005 00 ffffffff" + null + hexData + null + multiDone, ErrNull},
		{"null path of check in a multi", OpMulti, "0000000d 00 ffffffff" + null + null + multiDone, ErrNull},
		{"multi cut inside an operation", OpMulti, "00000002 00 ffffffff" + hexPath, ErrShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := Decode(bytesOf(t, tt.body), newRequest(tt.op)); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestToleratedInputIsNotCanonical: what upstream reads in its own way is
// read so here, and Canonical says that the bytes were others.
func TestToleratedInputIsNotCanonical(t *testing.T) {
	acl := func(entry string) string { return "00000000 00000000 00000001 0000001f" + entry + "00000000" }
	withACL := func(scheme, id string) *CreateRequest {
		return &CreateRequest{Data: []byte{}, ACL: []ACL{{PermAll, ID{scheme, id}}}}
	}
	for _, tt := range []struct {
		name  string
		input string
		want  Record
	}{
		{"boolean of 2", hexPath + "02", &PathWatchRequest{Path: "/a", Watch: true}},
		{"boolean of 255", hexPath + "ff", &PathWatchRequest{Path: "/a", Watch: true}},
		{"count of -2", "fffffffe", &ChildrenResponse{Children: []string{}}},
		{"count of -2^31", "00000000 00000000 80000000 00000000", &CreateRequest{Data: []byte{}, ACL: []ACL{}}},
		{"negative count of watches", "0000000000000000 00000000 fffffff9 00000000",
			&SetWatchesRequest{Data: []string{}, Exist: []string{}, Child: []string{}}},
		{"null scheme", acl(null + "00000001 78"), withACL("", "x")},
		{"null id behind auth", acl("00000004 61757468" + null), withACL("auth", "")},
		{"null id behind an unknown scheme", acl("00000004 6e6f7065" + null), withACL("nope", "")},
		{"null scheme and id", acl(null + null), withACL("", "")},
		{"null path of a setData", null + hexData + null, &SetDataRequest{Data: []byte("x"), Version: -1}},
		{"null path of a setACL", null + "00000000" + null, &SetACLRequest{ACL: []ACL{}, Version: -1}},
		{"malformed UTF-8", "00000003 2f e2 82", &PathRequest{Path: "/\ufffd"}},
		{"code in the header of a multi's operation", "00000002 00 00000007" + hexPath + null + "ffffffff 01 ffffffff",
			&MultiRequest{Ops: []Op{{OpDelete, &PathVersionRequest{"/a", -1}}}}},
		{"type in the end of a multi", "00000063 01 ffffffff", &MultiRequest{}},
		{"flag of 7 in the end of a multi", "ffffffff 07 ffffffff", &MultiRequest{}},
		{"code in the end of a multi's results", "ffffffff 01 00000000", &MultiResponse{}},
		{"two codes of one result", "ffffffff 00 00000000 ffffff9b ffffffff 01 ffffffff",
			&MultiResponse{Results: []OpResult{{Type: OpError, Err: ErrNoNode}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := reflect.New(reflect.TypeOf(tt.want).Elem()).Interface().(Record)
			b := bytesOf(t, tt.input)
			c := Decoder(b)
			if got.Code(&c); c.Err() != nil || c.Left() != 0 {
				t.Fatalf("error %v, %d bytes left", c.Err(), c.Left())
			}
			if c.Canonical() {
				t.Errorf("canonical, but encodes to %x", Append(nil, got))
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestNullPathsAreNoted: the requests whose null path upstream finds out late
// say that it was null, and encode it again.
func TestNullPathsAreNoted(t *testing.T) {
	create, watches := new(CreateRequest), new(WatchesRequest)
	for _, tt := range []struct {
		input string
		got   Record
		null  *bool
	}{
		{null + hexData + hexACL + "00000007", create, &create.NullPath},
		{null + "00000003", watches, &watches.NullPath},
	} {
		b := bytesOf(t, tt.input)
		c := Decoder(b)
		tt.got.Code(&c)
		if !c.Canonical() || !*tt.null || !bytes.Equal(Append(nil, tt.got), b) {
			t.Errorf("%s: %+v, error %v, encodes to %x", tt.input, tt.got, c.Err(), Append(nil, tt.got))
		}
	}
}

// TestMalformedTextReadsAsUpstreamReadsIt: one U+FFFD for each bad sequence.
// The sequences of the first case and their count were seen on a 3.8.0 server.
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
			var r PathRequest
			c := Decoder(Append(nil, &PathRequest{Path: tt.input}))
			c.Alias = alias
			if r.Code(&c); r.Path != want || c.Err() != nil {
				t.Errorf("%q reads as %q, want %q, error %v", tt.input, r.Path, want, c.Err())
			}
		}
		if got := UTF8([]byte(tt.input)); got != want {
			t.Errorf("UTF8 of %q is %q, want %q", tt.input, got, want)
		}
		if a, b := DigestID(tt.input+":x"), DigestID(want+":x"); a != b {
			t.Errorf("the identity of %q is %q, that of its text %q", tt.input, a, b)
		}
	}
}

// TestHandshakeWithoutItsLastByte: old clients leave the flag out, and what
// follows the flag is ignored.
func TestHandshakeWithoutItsLastByte(t *testing.T) {
	full := Append(nil, &ConnectRequest{TimeoutMS: 10000, Password: make([]byte, PasswordLen), ReadOnly: true, HasReadOnly: true})
	for _, tt := range []struct {
		name          string
		frame         []byte
		readOnly, has bool
		err           error
	}{
		{"with the flag", full, true, true, nil},
		{"with bytes behind the flag", append(full[:len(full):len(full)], 7, 7), true, true, nil},
		{"without the flag", full[:len(full)-1], false, false, nil},
		{"password cut short", full[:len(full)-2], false, false, ErrShort},
		{"empty", nil, false, false, ErrShort},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := ConnectRequest{ReadOnly: true, HasReadOnly: true} // left from an earlier use
			if err := Decode(tt.frame, &r); !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if r.ReadOnly != tt.readOnly || r.HasReadOnly != tt.has {
				t.Errorf("read-only %v, present %v, want %v, %v", r.ReadOnly, r.HasReadOnly, tt.readOnly, tt.has)
			}
		})
	}
}

// TestAPasswordMayBeNull: null and empty ones ask for a new session as well.
func TestAPasswordMayBeNull(t *testing.T) {
	for _, password := range [][]byte{nil, {}} {
		want := &ConnectRequest{Password: password}
		got := new(ConnectRequest)
		decodeWhole(t, Append(nil, want), got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestElementsMayBeLargerThanTheDefaultLimit: jute.maxbuffer is the frame's
// to enforce, and it can be raised.
func TestElementsMayBeLargerThanTheDefaultLimit(t *testing.T) {
	want := &SASLRequest{Token: make([]byte, ElementMax+1)}
	got := new(SASLRequest)
	decodeWhole(t, Append(nil, want), got)
	if len(got.Token) != ElementMax+1 {
		t.Errorf("%d bytes, want %d", len(got.Token), ElementMax+1)
	}
}

// TestTheFirstErrorSticks: nothing is read behind it, and it keeps its place.
func TestTheFirstErrorSticks(t *testing.T) {
	c := Decoder(bytesOf(t, "00000001 00000002 2f"))
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

// TestAliasedStringsShareTheInput is what Alias is for, also inside the
// operations of a multi; without it they do not.
func TestAliasedStringsShareTheInput(t *testing.T) {
	for _, alias := range []bool{true, false} {
		want := map[bool]string{true: "/b", false: "/a"}[alias]
		decode := func(r, to Record) {
			b := Append(nil, r)
			c := Decoder(b)
			c.Alias = alias
			to.Code(&c)
			b[len(b)-1] = 'b'
		}
		var r PathRequest
		if decode(&PathRequest{Path: "/a"}, &r); r.Path != want {
			t.Errorf("alias %v: %q after the input changed, want %q", alias, r.Path, want)
		}
		var m MultiTxn
		decode(&MultiTxn{Ops: []SubTxn{{OpDelete, &DeleteTxn{"/a"}}}}, &m)
		if got := m.Ops[0].Body.(*DeleteTxn).Path; got != want {
			t.Errorf("alias %v: %q inside a multi after the input changed, want %q", alias, got, want)
		}
	}
}
