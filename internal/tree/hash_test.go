package tree

import (
	"encoding/binary"
	"math/bits"
	"testing"
)

// sipHash is SipHash with c rounds for each word and d at the end, written down from the paper.
func sipHash(k0, k1 uint64, text []byte, c, d int) uint64 {
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[2] += v[3]
			v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
			v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[1]
			v[0] += v[3]
			v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
			v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	padded := append([]byte{}, text...)
	for len(padded)%8 != 7 {
		padded = append(padded, 0)
	}
	padded = append(padded, byte(len(text)))
	for ; len(padded) > 0; padded = padded[8:] {
		m := binary.LittleEndian.Uint64(padded)
		v[3] ^= m
		rounds(c)
		v[0] ^= m
	}
	v[2] ^= 0xff
	rounds(d)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// TestHashIsSipHash: the hash of names is SipHash-1-3. The function that it is compared with gives the example of the paper, which is of SipHash-2-4.
func TestHashIsSipHash(t *testing.T) {
	text := make([]byte, 200)
	for i := range text {
		text[i] = byte(i)
	}
	const k0, k1 = 0x0706050403020100, 0x0f0e0d0c0b0a0908
	if got := sipHash(k0, k1, text[:15], 2, 4); got != 0xa129ca6149be45e5 {
		t.Fatalf("the example of the paper: %x", got)
	}
	for n := range text {
		if got, want := (hashKey{k0, k1}).sum(string(text[:n])), sipHash(k0, k1, text[:n], 1, 3); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

// TestKeysDiffer: seeds that differ in one bit give keys that differ in many, and both halves of a key differ.
func TestKeysDiffer(t *testing.T) {
	for bit := range 64 {
		a, b := newHashKey(1), newHashKey(1^1<<bit)
		for what, x := range map[string]uint64{"first": a.k0 ^ b.k0, "second": a.k1 ^ b.k1, "both": b.k0 ^ b.k1} {
			if n := bits.OnesCount64(x); n < 12 || n > 52 {
				t.Errorf("seed %x: %d bits of the halves differ (%s)", uint64(1)^1<<bit, n, what)
			}
		}
	}
}

// TestHashKeyIsSplitMix checks the key of a seed with the first two outputs of SplitMix64 (Steele, Lea and Flood, 2014) from
// that state.
func TestHashKeyIsSplitMix(t *testing.T) {
	if got, want := newHashKey(0), (hashKey{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4}); got != want {
		t.Errorf("key %#x, want %#x", got, want)
	}
}
