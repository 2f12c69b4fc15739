package claim

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSharingUnderChanges: whatever order members and parts come and go in, and
// whoever hears of it late, a member stands for what is meant for it and for
// nothing else; and when all have heard, each part has one who stands for it.
func TestSharingUnderChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		all := map[string]*Sharing{}
		stood := map[string]map[string]bool{} // as the caller has it
		for _, n := range names {
			all[n], stood[n] = NewSharing(n, 0), map[string]bool{}
		}
		var members, parts []string
		settle := func(n string) {
			letGo, stand := all[n].Settle(members, parts)
			for _, p := range letGo {
				if !stood[n][p] {
					t.Fatalf("%s lets %s go, and did not stand for it", n, p)
				}
				delete(stood[n], p)
			}
			shares := Share(members, parts)
			for _, p := range stand {
				if stood[n][p] || shares[p] != n {
					t.Fatalf("%s is to stand for %s, which is %s's, and it stands for %v", n, p, shares[p], stood[n])
				}
				stood[n][p] = true
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			members, parts = nil, nil
			for _, n := range names {
				if rapid.Bool().Draw(t, n) {
					members = append(members, n)
				}
			}
			for i := range rapid.IntRange(0, 9).Draw(t, "parts") {
				parts = append(parts, fmt.Sprint("p", i))
			}
			for _, n := range names {
				if rapid.Bool().Draw(t, "hears") {
					settle(n)
				}
			}
		}
		for _, n := range names {
			settle(n)
		}
		for _, p := range parts {
			owners := 0
			for _, n := range names {
				if stood[n][p] {
					owners++
				}
			}
			if len(members) > 0 && owners != 1 {
				t.Fatalf("%d stand for %s", owners, p)
			}
		}
	})
}

// TestSharingKeepsWhatItStandsFor where it may have no more.
func TestSharingKeepsWhatItStandsFor(t *testing.T) {
	s := NewSharing("a", 1)
	if _, stand := s.Settle([]string{"a"}, []string{"q"}); !slices.Equal(stand, []string{"q"}) {
		t.Errorf("stands for %v", stand)
	}
	if letGo, stand := s.Settle([]string{"a"}, []string{"p", "q"}); len(letGo)+len(stand) > 0 {
		t.Errorf("lets %v go, and stands for %v", letGo, stand)
	}
	if letGo, stand := s.Settle([]string{"a"}, []string{"p"}); !slices.Equal(letGo, []string{"q"}) || !slices.Equal(stand, []string{"p"}) {
		t.Errorf("lets %v go, and stands for %v", letGo, stand)
	}
}
