package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// object is a JSON object; what the golden files say of a record and what
// show makes of one are compared as objects.
type object = map[string]any

// readJSON fills v from a file of testdata. Numbers keep their digits.
func readJSON(t testing.TB, name string, v any) {
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

// text is v as JSON with sorted keys.
func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// equalJSON fails unless got and want are the same values.
func equalJSON(t testing.TB, got, want any) {
	t.Helper()
	if g, w := text(t, got), text(t, want); g != w {
		t.Errorf("decoded\n%s, want\n%s", g, w)
	}
}

// equalBytes fails unless got and want are the same bytes.
func equalBytes(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("encoded\n%x, want\n%x", got, want)
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// hexOrNil and base64OrNil show a buffer, null as null.
func hexOrNil(b []byte) any {
	if b == nil {
		return nil
	}
	return hex.EncodeToString(b)
}

func base64OrNil(b []byte) any {
	if b == nil {
		return nil
	}
	return base64.StdEncoding.EncodeToString(b)
}

// stringOrNil shows a string that may be null.
func stringOrNil(s NullString) any {
	if !s.Valid {
		return nil
	}
	return s.String
}

// long shows a 64-bit value as the client's vectors do.
func long[T ~int64](v T) string { return strconv.FormatInt(int64(v), 10) }

// hex0x shows a 64-bit value as the other files do.
func hex0x[T ~int64 | ~uint64](v T) string { return "0x" + strconv.FormatUint(uint64(v), 16) }

// list shows each element of a slice; null stays null.
func list[T any](v []T, show func(*T) object) any {
	if v == nil {
		return nil
	}
	out := []object{}
	for i := range v {
		out = append(out, show(&v[i]))
	}
	return out
}
