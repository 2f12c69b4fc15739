package claim

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// PriorityDefault is the priority of items whose names contain none.
const PriorityDefault = 100

// Item is a parsed name of a queue item.
type Item struct {
	Name     string
	Priority int
	Seq      int32
}

// ParseItem parses the name of a queue item. The forms are <32 hex digits>-entry-<priority>-<seq>,
// entry-<priority>-<seq> and qn-<seq>. It returns false for any other name.
func ParseItem(name string) (Item, bool) {
	bid, err := ParseBid(name)
	if err != nil {
		return Item{}, false
	}
	head := strings.TrimSuffix(name, FormatSeq(bid.Seq))
	if i := strings.Index(head, "-entry-"); i == 32 && IsHex32(head[:i]) {
		head = head[i+1:]
	}
	if head == "qn-" {
		return Item{name, PriorityDefault, bid.Seq}, true
	}
	digits, ok := strings.CutPrefix(head, "entry-")
	if !ok || len(digits) != 4 || digits[3] != '-' || strings.Trim(digits[:3], "0123456789") != "" {
		return Item{}, false
	}
	priority, err := strconv.Atoi(digits[:3])
	return Item{name, priority, bid.Seq}, err == nil
}

// ParseItems returns the items among the names in the order of delivery: by priority, then by age.
func ParseItems(names []string) []Item {
	var all []Item
	for _, name := range names {
		if it, ok := ParseItem(name); ok {
			all = append(all, it)
		}
	}
	slices.SortFunc(all, func(a, b Item) int {
		return cmp.Or(a.Priority-b.Priority, int(a.Seq-b.Seq), strings.Compare(a.Name, b.Name))
	})
	return all
}
