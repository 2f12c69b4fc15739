package wiretest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bellwether/wire"
)

// Object is a JSON object. Tests compare the object that a golden file has for a record with
// the object that the function show makes of the record.
type Object = map[string]any

// ReadJSON fills v from a file of testdata. Numbers keep their digits.
func ReadJSON(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Text returns v as JSON with sorted keys.
func Text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// EqualJSON fails unless got and want are the same values.
func EqualJSON(t testing.TB, got, want any) {
	t.Helper()
	if g, w := Text(t, got), Text(t, want); g != w {
		t.Errorf("decoded\n%s, want\n%s", g, w)
	}
}

// EqualBytes fails unless got and want are the same bytes.
func EqualBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("encoded\n%x, want\n%x", got, want)
	}
}

// Unhex decodes hex.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// HexOrNil shows a buffer in hex, null as null.
func HexOrNil(b []byte) any {
	if b == nil {
		return nil
	}
	return hex.EncodeToString(b)
}

// Base64OrNil shows a buffer in base64, null as null.
func Base64OrNil(b []byte) any {
	if b == nil {
		return nil
	}
	return base64.StdEncoding.EncodeToString(b)
}

// StringOrNil shows a string that may be null.
func StringOrNil(s wire.NullString) any {
	if !s.Valid {
		return nil
	}
	return s.String
}

// Long shows a 64-bit value in decimal, as the golden files of the client protocol do.
func Long[T ~int64](v T) string { return strconv.FormatInt(int64(v), 10) }

// Hex0x shows a 64-bit value in hex, as the other golden files do.
func Hex0x[T ~int64 | ~uint64](v T) string { return "0x" + strconv.FormatUint(uint64(v), 16) }

// List shows each element of a slice; null stays null.
func List[T any](v []T, show func(*T) Object) any {
	if v == nil {
		return nil
	}
	out := []Object{}
	for i := range v {
		out = append(out, show(&v[i]))
	}
	return out
}

// Unmarshal decodes JSON; numbers keep their digits.
func Unmarshal(t testing.TB, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// DecodeWhole decodes b into r. It fails if bytes are left over, or if encoding r would not
// give b again.
func DecodeWhole(t testing.TB, b []byte, r wire.Record) {
	t.Helper()
	c := wire.Decoder(b)
	r.Code(&c)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	if c.Left() != 0 || !c.Canonical() {
		t.Errorf("%d bytes left over, canonical %v", c.Left(), c.Canonical())
	}
}

// BytesOf decodes hex. It ignores blanks.
func BytesOf(t testing.TB, s string) []byte {
	t.Helper()
	return Unhex(t, strings.ReplaceAll(s, " ", ""))
}

// Parts of messages in hex, for [BytesOf], which ignores the blanks.
const (
	Null     = "ffffffff "                                           // the length of a null string, buffer or vector
	MaxInt   = "7fffffff "                                           // a count that is larger than any input
	HexWorld = "0000001f 00000005 776f726c64 00000006 616e796f6e65 " // one entry of a wire.ACL: world:anyone, all permissions
	HexPath  = "00000002 2f61 "                                      // the path /a
	HexData  = "00000001 78 "                                        // the data x
	HexACL   = "00000001 " + HexWorld                                // an ACL of that one entry
)
