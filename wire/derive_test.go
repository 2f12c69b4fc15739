package wire_test

import (
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/sasl"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// derivation is one computed value of testdata/client.json. Its kind decides which fields are set.
type derivation struct {
	Kind      string
	SessionID string
	Passwd    string

	Input string
	ID    string

	ElapsedMs    string
	ServerID     ensemble.ServerID
	SessionIDHex string

	TTLMs    string
	OwnerHex string

	StoredCreates int32
	NumChildren   int32
	Cversion      int32

	Counter int32
	Suffix  string

	Requested int32
	TickTime  int32
	Result    int32

	Username    string
	Password    string
	Challenge   string
	Cnonce      string
	NC          string
	DigestURI   string
	Response    string
	ServerFinal string

	Path  string
	Valid bool
}

// TestDerivedValues computes every derived value of the golden file.
func TestDerivedValues(t *testing.T) {
	var file struct{ Derivations []json.RawMessage }
	wiretest.ReadJSON(t, "client.json", &file)
	if len(file.Derivations) != 67 {
		t.Errorf("%d derivations, want 67", len(file.Derivations))
	}
	for i, raw := range file.Derivations {
		var d derivation
		wiretest.Unmarshal(t, raw, &d)
		t.Run(d.Kind+"/"+strconv.Itoa(i), func(t *testing.T) {
			if got, want := d.values(t); got != want {
				t.Errorf("%s: %q, want %q", raw, got, want)
			}
		})
	}
}

// values returns the computed and the recorded value as texts.
func (d *derivation) values(t *testing.T) (got, want string) {
	switch d.Kind {
	case "session-password":
		p := wire.SessionID(parse(t, d.SessionID)).Password()
		return hex.EncodeToString(p[:]), d.Passwd
	case "digest-id":
		return wire.DigestID(d.Input), d.ID
	case "first-session-id":
		return record.FirstSessionID(d.ServerID, parse(t, d.ElapsedMs)).String(), d.SessionIDHex
	case "ttl-ephemeral-owner":
		owner := record.TTLOwner(parse(t, d.TTLMs))
		if ms, ok := record.OwnerTTL(owner); !ok || ms != parse(t, d.TTLMs) {
			t.Errorf("owner %x holds TTL %d, %v", owner, ms, ok)
		}
		return wiretest.Hex0x(owner), d.OwnerHex
	case "visible-cversion":
		return decimal(record.VisibleCversion(d.StoredCreates, d.NumChildren)), decimal(d.Cversion)
	case "sequence-suffix":
		return record.SequenceSuffix(d.Counter), d.Suffix
	case "negotiated-timeout":
		return decimal(min(max(d.Requested, 2*d.TickTime), 20*d.TickTime)), decimal(d.Result)
	case "sasl-digest-md5":
		return d.exchange(t), d.Response + " " + d.ServerFinal
	case "path-validation":
		return strconv.FormatBool(wire.ValidPath(d.Path)), strconv.FormatBool(d.Valid)
	}
	return "nothing", d.Kind
}

// exchange gives the recorded challenge and proof to a client that has the recorded nonce.
func (d *derivation) exchange(t *testing.T) string {
	c := sasl.NewDigestClient(sasl.DigestLogin{Service: sasl.ClientService, User: d.Username, Password: sasl.NewSecret(d.Password), Nonce: d.Cnonce})
	if _, _, err := c.Step(nil); err != nil {
		t.Fatal(err)
	}
	token, _, err := c.Step([]byte(d.Challenge))
	if err != nil {
		t.Fatal(err)
	}
	if _, done, err := c.Step([]byte(d.ServerFinal)); !done || err != nil {
		t.Errorf("the proof %s: %v", d.ServerFinal, err)
	}
	return regexp.MustCompile("response=([0-9a-f]+)").FindStringSubmatch(string(token))[1] + " " + d.ServerFinal
}

func parse(t *testing.T, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func decimal(n int32) string { return strconv.Itoa(int(n)) }

// TestPathsWithCharactersAtTheEdge checks the first and last character of every refused range, and their
// neighbours.
func TestPathsWithCharactersAtTheEdge(t *testing.T) {
	for _, tt := range []struct {
		char  rune
		valid bool
	}{
		{0x1f, false}, {0x20, true}, {0x7e, true}, {0x7f, false}, {0x9f, false}, {0xa0, true},
		{0xd7ff, true}, {0xe000, false}, {0xf8ff, false}, {0xf900, true}, {0xffef, true},
		{0xfff0, false}, {0xffff, false}, {0x10000, false}, {0x10ffff, false},
	} {
		if got := wire.ValidPath("/a" + string(tt.char) + "/b"); got != tt.valid {
			t.Errorf("%U: %v, want %v", tt.char, got, tt.valid)
		}
	}
	for path, want := range map[string]bool{
		"/": true, "/...": true, "/.b": true, "/a/..b": true, "/a b": true, "/\u4e2d\u6587/x": true, "/" + strings.Repeat("x", 100_000): true,
		"": false, "a": false, "a/b": false, "//": false, "//a": false, "///": false, "/a/": false, "/a//b": false,
		"/.": false, "/..": false, "/./a": false, "/../a": false, "/a/.": false, "/a/..": false, "/a/./b": false, "/a/../b": false,
		"/a\x00": false, "/a\xff": false, "/\xc0\x80": false, "/a\xed\xa0\x80": false,
	} {
		if got := wire.ValidPath(path); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
}
