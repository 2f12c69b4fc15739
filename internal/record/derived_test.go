package record_test

import (
	"testing"

	"bellwether/internal/record"
)

// TestOwnersWithoutTTL: the owners of sessions and of containers are not taken for a TTL.
func TestOwnersWithoutTTL(t *testing.T) {
	for _, owner := range []int64{0, 1, record.OwnerContainer, 0x100000ed48f0000, -1, record.OwnerTTLMark | 1<<40, -2 << 56} {
		if ms, ok := record.OwnerTTL(owner); ok {
			t.Errorf("owner %x: TTL %d", owner, ms)
		}
	}
}

// TestSequenceSuffixHasTenCharactersWhereItCan: the sign of a negative number counts as one of the ten
// characters.
func TestSequenceSuffixHasTenCharactersWhereItCan(t *testing.T) {
	for counter, want := range map[int32]string{
		-1: "-000000001", -999999999: "-999999999", -1000000000: "-1000000000", 1234567890: "1234567890",
	} {
		if got := record.SequenceSuffix(counter); got != want {
			t.Errorf("%d: %q, want %q", counter, got, want)
		}
	}
}
