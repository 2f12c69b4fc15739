package measure

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"

	"bellwether/internal/mutants"
)

// Selection says which mutants are judged, and by what.
type Selection struct {
	Set  mutants.Set    // empty: both
	Only *regexp.Regexp // of the name; nil: all
	// Sample is how many of the generated mutants of each package are judged, which Seed
	// chooses; 0: all. With a larger Sample, the same seed adds mutants to those of a
	// smaller one.
	Sample          int
	Seed            uint64
	Unit, Simulator bool
}

// Of returns the selected mutants in their order. That none is selected is an error.
func (s *Selection) Of(all []mutants.Mutant) ([]*mutants.Mutant, error) {
	var selected []*mutants.Mutant
	generated := map[string][]*mutants.Mutant{} // by package
	for i := range all {
		m := &all[i]
		switch {
		case s.Set != "" && m.Set() != s.Set, s.Only != nil && !s.Only.MatchString(m.Name):
		case s.Sample > 0 && m.Set() == mutants.Generated:
			generated[m.Package()] = append(generated[m.Package()], m)
		default:
			selected = append(selected, m)
		}
	}
	for _, list := range generated {
		slices.SortFunc(list, func(a, b *mutants.Mutant) int { return cmp.Compare(s.rank(a), s.rank(b)) })
		selected = append(selected, list[:min(s.Sample, len(list))]...)
	}
	if len(selected) == 0 {
		return nil, errors.New("no mutant is selected; --list without --only prints the names of all")
	}
	order := make(map[*mutants.Mutant]int, len(all))
	for i := range all {
		order[&all[i]] = i
	}
	slices.SortFunc(selected, func(a, b *mutants.Mutant) int { return order[a] - order[b] })
	return selected, nil
}

// rank returns the random number by which mutants are chosen for a sample. It depends on the
// name only, so that other mutants of a package stay chosen when its code changes.
func (s *Selection) rank(m *mutants.Mutant) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", m.Name, s.Seed)
	return mix(h.Sum64())
}

// mix spreads the bits of a hash: FNV alone gives similar names similar numbers.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
