package secure

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha512"
	"hash"
	"testing"
	"unicode/utf16"
)

// TestPasswordFunctionsMatchTheStandardLibrary: the functions that leave no copy of a password
// return what those of the standard library do.
func TestPasswordFunctionsMatchTheStandardLibrary(t *testing.T) {
	for _, password := range []string{"", "changeit", "pässwörd€", "𝄞 clef", "not \xff UTF-8 \xed\xa0\x80", string(bytes.Repeat([]byte("long "), 60))} {
		for _, h := range []func() hash.Hash{sha1.New, sha512.New} {
			for _, size := range []int{16, 20, 64, 100} {
				want, err := pbkdf2.Key(h, password, []byte("0123456789abcdef"), 3, size)
				if err != nil {
					t.Fatal(err)
				}
				if got := pbkdf2Key(h, []byte(password), []byte("0123456789abcdef"), 3, size); !bytes.Equal(got, want) {
					t.Errorf("PBKDF2 of %q with %d bytes: %x, want %x", password, size, got, want)
				}
			}
		}
		var want []byte
		for _, u := range utf16.Encode([]rune(password)) {
			want = append(want, byte(u>>8), byte(u))
		}
		if got := utf16Bytes([]byte(password)); !bytes.Equal(got, want) || cap(got) < len(got)+2 {
			t.Errorf("UTF-16 of %q: %x, want %x with space for two more bytes", password, got, want)
		}
		h := sha1.New()
		if got, want := sumOnce(h, []byte(password), []byte("more")), sha1.Sum([]byte(password+"more")); !bytes.Equal(got, want[:]) {
			t.Errorf("SHA-1 of %q: %x, want %x", password, got, want)
		}
	}
}
