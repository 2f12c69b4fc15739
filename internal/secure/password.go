package secure

import (
	"crypto/hmac"
	"encoding/binary"
	"hash"
	"unicode/utf16"
	"unicode/utf8"
)

// Passwords of files are handled as bytes and overwritten after use. So a core dump of the
// server does not contain them. What the functions of the standard library copy, such as
// crypto/pbkdf2, which takes a string, could not be overwritten.

// utf16Bytes returns the big-endian UTF-16 of a text in UTF-8. The result has space for two more
// bytes, and the caller overwrites it after use.
func utf16Bytes(text []byte) []byte {
	b := make([]byte, 0, 2*len(text)+2)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			b = binary.BigEndian.AppendUint16(b, uint16(high))
			r = low
		}
		b = binary.BigEndian.AppendUint16(b, uint16(r))
	}
	return b
}

// sumOnce returns the hash of several parts, and overwrites what the hash has buffered of them.
func sumOnce(h hash.Hash, parts ...[]byte) []byte {
	h.Reset()
	for _, p := range parts {
		h.Write(p)
	}
	sum := h.Sum(nil)
	h.Reset()
	h.Write(make([]byte, h.BlockSize()-1))
	return sum
}

// pbkdf2Key is the key derivation PBKDF2 of RFC 8018, section 5.2.
func pbkdf2Key(newHash func() hash.Hash, password, salt []byte, iterations, size int) []byte {
	mac := hmac.New(newHash, password)
	var out []byte
	for block := uint32(1); len(out) < size; block++ {
		mac.Reset()
		mac.Write(salt)
		mac.Write(binary.BigEndian.AppendUint32(nil, block))
		u := mac.Sum(nil)
		sum := append([]byte(nil), u...)
		for range iterations - 1 {
			mac.Reset()
			mac.Write(u)
			u = mac.Sum(u[:0])
			for i := range sum {
				sum[i] ^= u[i]
			}
		}
		out = append(out, sum...)
	}
	return out[:size]
}
