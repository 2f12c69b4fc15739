package claim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const hex32 = "0123456789abcdef0123456789abcdef"

// TestParseBid checks the scheme and the number that ParseBid finds, for each form of name that servers and
// libraries produce.
func TestParseBid(t *testing.T) {
	for _, c := range []struct {
		name   string
		naming Naming
		seq    int32
	}{
		{hex32 + "-n_0000000007", Own, 7},
		{hex32 + "-n_2147483647", Own, math.MaxInt32},
		{hex32 + "-n_-2147483648", Own, math.MinInt32},
		{hex32 + "-n_-000000001", Own, -1},
		{"n_0000000000", Plain, 0},
		{"_c_01234567-89ab-cdef-0123-456789abcdef-latch-0000000012", CuratorLatch, 12},
		{"latch-1500000000", CuratorLatch, 1_500_000_000},
		{"_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000013", CuratorLock, 13},
		{"_c_01234567-89ab-cdef-0123-456789abcdef-lock--2147483648", CuratorLock, math.MinInt32},
		{"lock-1500000000", CuratorLock, 1_500_000_000},
		{hex32 + "__lock__0000000014", KazooLock, 14},
		{"_c_" + hex32 + "-lock-0000000015", GoZKLock, 15},
		{"candidate-0000000016", Foreign, 16},
		{"0000000017", Foreign, 17},
		{"x-2147483648", Foreign, math.MinInt32}, // ten digits that are not an int32
		{hex32 + "__rlock__0000000018", KazooRead, 18},
		{hex32 + "-r_0000000018", OwnRead, 18},
		{"_c_01234567-89ab-cdef-0123-456789abcdef-__READ__0000000018", CuratorRead, 18},
		{"_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__0000000018", CuratorWrite, 18},
		{"_c_01234567-89ab-cdef-0123-456789abcdef-lease-0000000018", CuratorLease, 18},
		{"__READ__0000000018", Foreign, 18},
		{strings.ToUpper(hex32) + "-n_0000000019", Foreign, 19},
		{"n_00000000020", Foreign, 20}, // a sequential create of n_0
	} {
		got, err := ParseBid(c.name)
		if want := (Bid{c.name, c.naming, c.seq}); err != nil || got != want {
			t.Errorf("ParseBid(%q) = %+v, %v, want %+v", c.name, got, err, want)
		}
	}
}

// TestChecklist11ParseBidSkipsOthers checks that names of znodes that exist beside bids in real trees, and names
// that only resemble those of bids, are not parsed as bids.
func TestChecklist11ParseBidSkipsOthers(t *testing.T) {
	for _, name := range []string{"", "LEADER", "locks", "leases", "n_", "n_12",
		"n_4294967296", "n_+000000001", hex32 + "-n_", "lease_holder", "latch-", "-", "0x00000001", "n_ 000000001",
		"0123456789abcdef012345" + "0000000007", "01234567-89ab-cdef-0123-45" + "0000000007", "_m_0123456789abcdef012345" + "0000000007"} {
		if got, err := ParseBid(name); err == nil {
			t.Errorf("ParseBid(%q) = %+v, want an error", name, got)
		}
	}
}

// TestNamesRoundTrip checks that ParseBid recognises every name that begins with the result of BidPrefix.
func TestNamesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		naming := Naming(rapid.IntRange(int(Own), int(GoZKLock)).Draw(t, "naming"))
		nonce := Nonce(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "nonce"))
		seq := rapid.Int32().Draw(t, "seq")
		name := BidPrefix(naming, nonce) + FormatSeq(seq)
		got, err := ParseBid(name)
		if want := (Bid{name, naming, seq}); err != nil || got != want {
			t.Fatalf("ParseBid(%q) = %+v, %v, want %+v", name, got, err, want)
		}
	})
}

// TestBidsSortAcrossTheWrap checks that bids are ordered by the difference of their numbers, even if the numbers
// wrap between the oldest and the newest bid.
func TestBidsSortAcrossTheWrap(t *testing.T) {
	for _, start := range []int32{0, 5, math.MaxInt32 - 3, math.MaxInt32, math.MinInt32, -4} {
		var names []string
		for i := range int32(8) {
			names = append(names, fmt.Sprintf("%032x-n_%010d", 99-i, start+i))
		}
		mixed := append([]string{"LEADER", "lock"}, names[5], names[1], names[7], names[0], names[3], names[2], names[6], names[4])
		var got []string
		for _, b := range ParseBids(mixed) {
			got = append(got, b.Name)
		}
		if !slices.Equal(got, names) {
			t.Errorf("from %d: %v, want %v", start, got, names)
		}
	}
}

// TestExhaustedSequenceNumbersAreDetected checks that repeated, negative and largest numbers are detected, because
// they do not order the bids.
func TestExhaustedSequenceNumbersAreDetected(t *testing.T) {
	for _, c := range []struct {
		seqs []int32
		want bool
	}{
		{[]int32{0, 1, 2}, false},
		{[]int32{math.MaxInt32 - 1, 5}, false},
		{[]int32{3, math.MaxInt32}, true},
		{[]int32{3, math.MinInt32}, true},
		{[]int32{3, 3}, true},
		{nil, false},
	} {
		var bids []Bid
		for i, seq := range c.seqs {
			bids = append(bids, Bid{fmt.Sprint(i), Own, seq})
		}
		if got := SequenceExhausted(bids); got != c.want {
			t.Errorf("SequenceExhausted(%v) = %v", c.seqs, got)
		}
	}
}

// FuzzParseBid checks that no name causes a panic, and that the number of a bid is the one at the end of
// its name.
func FuzzParseBid(f *testing.F) {
	for _, s := range []string{"LEADER", hex32 + "-n_0000000007", "_c_x-latch--2147483648", "n_-000000001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if b, err := ParseBid(name); err == nil && !strings.HasSuffix(name, FormatSeq(b.Seq)) {
			t.Fatalf("%q parsed as %d", name, b.Seq)
		}
	})
}

// TestOpKindsHaveNames checks that each kind has a name of its own.
func TestOpKindsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for k := OpSync; k <= OpAwait; k++ {
		seen[k.String()] = true
	}
	if len(seen) != int(OpAwait) || OpWatchAll.String() != "list and watch" || OpSet.String() != "set" || OpAwait.String() != "await" {
		t.Errorf("names: %v", seen)
	}
}
