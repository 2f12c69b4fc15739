package claim

import (
	"math"
	"slices"
	"strings"
)

// Sequence numbers are int32 and compare by their difference, so that an
// order survives the wrap. That holds while the oldest and the newest bid of
// a parent are less than 1<<31 creates apart.

// Before reports whether sequence number a was given out before b.
func Before(a, b int32) bool { return b-a > 0 }

// ParseBids returns the bids among the children, in the order of their
// sequence numbers. Names that carry no sequence number are skipped.
func ParseBids(children []string) []Bid {
	bids := make([]Bid, 0, len(children))
	for _, name := range children {
		if bid, err := ParseBid(name); err == nil {
			bids = append(bids, bid)
		}
	}
	if len(bids) == 0 {
		return bids
	}
	base := bids[0].Seq
	slices.SortFunc(bids, func(a, b Bid) int {
		if x, y := a.Seq-base, b.Seq-base; x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return bids
}

// Preceding returns the bids before own, nearest last. The names in skip are
// left out.
func Preceding(bids []Bid, own Bid, skip map[string]bool) []Bid {
	var ahead []Bid
	for _, b := range bids {
		if Before(b.Seq, own.Seq) && !skip[b.Name] {
			ahead = append(ahead, b)
		}
	}
	return ahead
}

// WornOut reports whether the sequence numbers of these bids cannot be
// trusted to order them. A ZooKeeper server's counter stops at its largest
// value: then bids share that number, and those made in one go even get
// negative ones before it comes up again. Only the czxids order such bids.
func WornOut(bids []Bid) bool {
	seen := make(map[int32]bool, len(bids))
	for _, b := range bids {
		if b.Seq < 0 || b.Seq == math.MaxInt32 || seen[b.Seq] {
			return true
		}
		seen[b.Seq] = true
	}
	return false
}
