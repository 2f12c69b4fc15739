package claim

import (
	"cmp"
	"hash/fnv"
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
	load := make(map[string]int, len(members))
	for _, part := range parts {
		best, score := "", uint64(0)
		for _, m := range members {
			if load[m] >= most {
				continue
			}
			if s := rank(m, part); best == "" || s > score {
				best, score = m, s
			}
		}
		out[part] = best
		load[best]++
	}
	return out
}

// rank is how high a member stands for a part.
func rank(member, part string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(member))
	h.Write([]byte{0})
	h.Write([]byte(part))
	s := h.Sum64() // FNV alone leaves names that differ at their end close together
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
