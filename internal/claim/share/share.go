package share

import (
	"cmp"
	"slices"
)

// Share says which member each part belongs to. All who know the same members
// and parts come to the same result, whatever the order. No member has more
// than its even share, rounded up, and a member that comes or goes moves few
// parts of others: each part goes to the member that ranks highest for it by a hash
// (rendezvous hashing) and has room.
func Share(members, parts []string) map[string]string {
	members, parts = unique(members), unique(parts)
	out := make(map[string]string, len(parts))
	if len(members) == 0 {
		return out
	}
	most := (len(parts) + len(members) - 1) / len(members)
	load := make([]int, len(members))
	heads := make([]uint64, len(members)) // each name, hashed once
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

// fnvBasis and fnvPrime are those of FNV-1a with 64 bits.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// fnv64a goes on with a hash.
func fnv64a(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// spread moves hashes apart: FNV alone leaves names that differ at their end
// close together.
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
