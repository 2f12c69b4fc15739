package claim

import (
	"math"
	"slices"
	"strings"
)

// Sequence numbers are int32 values that wrap. They are compared by their difference, which is correct
// while the oldest and the newest bid below a parent are less than 1<<31 creates apart.

// Before reports whether the server assigned sequence number a before b.
func Before(a, b int32) bool { return b-a > 0 }

// ParseBids returns the bids among the children, ordered by sequence number. It skips names without a
// sequence number.
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

// Preceding returns the bids before own, the nearest last. It leaves out the names in skip.
func Preceding(bids []Bid, own Bid, skip map[string]bool) []Bid {
	var ahead []Bid
	for _, b := range bids {
		if Before(b.Seq, own.Seq) && !skip[b.Name] {
			ahead = append(ahead, b)
		}
	}
	return ahead
}

// SequenceExhausted reports whether the sequence numbers no longer order the bids. The counter of a ZooKeeper server
// stops at its largest value. After that, bids share this number, and bids created in one multi can even
// have negative numbers. Only the czxids order such bids.
func SequenceExhausted(bids []Bid) bool {
	seen := make(map[int32]bool, len(bids))
	for _, b := range bids {
		if b.Seq < 0 || b.Seq == math.MaxInt32 || seen[b.Seq] {
			return true
		}
		seen[b.Seq] = true
	}
	return false
}
