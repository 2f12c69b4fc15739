package share

import (
	"cmp"
	"slices"
)

// Share assigns each part to a member. All clients that know the same members and parts compute the same
// result, in whatever order the names are given. No member gets more than its even share, rounded up. When
// a member joins or leaves, few of the other members' parts move. Each part goes to the member with the
// highest hash for it that still has room (rendezvous hashing).
func Share(members, parts []string) map[string]string {
	members, parts = unique(members), unique(parts)
	out := make(map[string]string, len(parts))
	if len(members) == 0 {
		return out
	}
	most := (len(parts) + len(members) - 1) / len(members)
	load := make([]int, len(members))
	heads := make([]uint64, len(members)) // hash of each member's name, computed once
	for i, m := range members {
		heads[i] = fnv64a(fnv64a(fnvBasis, m), "\x00")
	}
	for _, part := range parts {
		best, score := -1, uint64(0)
		for i := range members {
			if load[i] >= most {
				continue
			}
			if s := spread(fnv64a(heads[i], part)); best < 0 || s > score {
				best, score = i, s
			}
		}
		out[part] = members[best]
		load[best]++
	}
	return out
}

// fnvBasis and fnvPrime are the constants of the 64-bit FNV-1a hash.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// fnv64a extends an FNV-1a hash by a string.
func fnv64a(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// spread mixes the bits of a hash. FNV alone gives similar values for names that differ only at the end.
func spread(s uint64) uint64 {
	s ^= s >> 33
	s *= 0xff51afd7ed558ccd
	s ^= s >> 33
	return s
}

func unique(names []string) []string {
	names = slices.Clone(names)
	slices.SortFunc(names, cmp.Compare[string])
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}
