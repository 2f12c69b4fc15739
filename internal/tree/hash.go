package tree

import "math/bits"

// hashKey is the secret key of the tree's hashes. If the seed is random, a client cannot
// choose names that collide.
type hashKey struct{ k0, k1 uint64 }

// newHashKey spreads a seed over both halves of the key.
func newHashKey(seed uint64) hashKey {
	return hashKey{mix(seed + 0x9e3779b97f4a7c15), mix(seed + 0x3c6ef372fe94f82a)}
}

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// sum is SipHash-1-3 of s (Aumasson and Bernstein, 2012), which is fast enough for names
// and safe against chosen input.
func (k hashKey) sum(s string) uint64 {
	h := sipState{
		k.k0 ^ 0x736f6d6570736575, k.k1 ^ 0x646f72616e646f6d,
		k.k0 ^ 0x6c7967656e657261, k.k1 ^ 0x7465646279746573,
	}
	last := uint64(len(s)) << 56
	for len(s) >= 8 {
		h.word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
		s = s[8:]
	}
	for i := range len(s) {
		last |= uint64(s[i]) << (8 * i)
	}
	h.word(last)
	h.v2 ^= 0xff
	h.round()
	h.round()
	h.round()
	return h.v0 ^ h.v1 ^ h.v2 ^ h.v3
}

// name returns the hash by which a child with this name is found.
func (k hashKey) name(s string) uint32 { return uint32(k.sum(s) >> 32) }

type sipState struct{ v0, v1, v2, v3 uint64 }

func (h *sipState) word(m uint64) {
	h.v3 ^= m
	h.round()
	h.v0 ^= m
}

func (h *sipState) round() {
	h.v0 += h.v1
	h.v1 = bits.RotateLeft64(h.v1, 13) ^ h.v0
	h.v0 = bits.RotateLeft64(h.v0, 32)
	h.v2 += h.v3
	h.v3 = bits.RotateLeft64(h.v3, 16) ^ h.v2
	h.v0 += h.v3
	h.v3 = bits.RotateLeft64(h.v3, 21) ^ h.v0
	h.v2 += h.v1
	h.v1 = bits.RotateLeft64(h.v1, 17) ^ h.v2
	h.v2 = bits.RotateLeft64(h.v2, 32)
}
