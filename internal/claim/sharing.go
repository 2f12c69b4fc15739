package claim

import (
	"maps"
	"slices"
)

// Sharing is what one of those who share parts stands for. It knows of the
// others no more than that they are there: that no part has two owners rests on
// the part's own [Election], in which each stands for whom the part is meant.
type Sharing struct {
	id     string
	most   int // of parts at a time; 0: no limit
	stands map[string]bool
}

// NewSharing begins as a member that stands for nothing.
func NewSharing(id string, most int) *Sharing {
	return &Sharing{id: id, most: most, stands: map[string]bool{}}
}

// Settle takes note of the members and parts that are there, and returns the
// parts that the member is to let go, and those that it is to stand for from
// now on. What it stands for it keeps as long as that is meant for it.
func (s *Sharing) Settle(members, parts []string) (letGo, stand []string) {
	mine := s.mine(Share(members, parts))
	for _, part := range slices.Sorted(maps.Keys(s.stands)) {
		if !slices.Contains(mine, part) {
			delete(s.stands, part)
			letGo = append(letGo, part)
		}
	}
	for _, part := range mine {
		if !s.stands[part] {
			s.stands[part] = true
			stand = append(stand, part)
		}
	}
	return letGo, stand
}

// mine are the parts meant for this member, those that it stands for first,
// and no more than it may have.
func (s *Sharing) mine(shares map[string]string) []string {
	var old, fresh []string
	for _, part := range slices.Sorted(maps.Keys(shares)) {
		switch {
		case shares[part] != s.id:
		case s.stands[part]:
			old = append(old, part)
		default:
			fresh = append(fresh, part)
		}
	}
	all := append(old, fresh...)
	if s.most > 0 {
		all = all[:min(len(all), s.most)]
	}
	return all
}
