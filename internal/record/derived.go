package record

import (
	"math"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// What the owner field of a stored stat says besides 0 (persistent) and the
// id of a session (ephemeral).
const (
	// OwnerContainer marks a container.
	OwnerContainer int64 = math.MinInt64
	// TTLMax is the longest TTL of a znode in milliseconds.
	TTLMax int64 = 1<<40 - 1
)

// ownerTTL is the owner of a znode with a TTL of 0: a high byte of all ones,
// the feature number 0, and 40 bits for the TTL.
const ownerTTL int64 = -1 << 56

// TTLOwner returns the owner field of a znode with a TTL in milliseconds, from 1 to
// TTLMax.
func TTLOwner(ms int64) int64 { return ownerTTL | ms }

// OwnerTTL returns the TTL in milliseconds that an owner field holds, false if it holds
// none.
func OwnerTTL(owner int64) (ms int64, ok bool) {
	if owner&^TTLMax != ownerTTL {
		return 0, false
	}
	return owner & TTLMax, true
}

// VisibleCversion returns the cversion that a client sees: the number of creates plus the
// number of deletes of children. A server stores only the number of creates; the number of
// deletes is creates minus children. The result wraps around.
func VisibleCversion(creates, children int32) int32 { return 2*creates - children }

// FirstSessionID returns the first session id of a server's run: the low byte of the
// server's id, 40 bits of a millisecond clock, 16 zero bits. Each further session of the
// run adds one.
func FirstSessionID(sid ensemble.ServerID, clockMS int64) wire.SessionID {
	return wire.SessionID(int64(uint64(clockMS<<24)>>8) | int64(sid)<<56)
}

// SequenceSuffix returns what a server appends to the name of a sequential znode:
// counter, the parent's count of creates, with at least ten digits. The counter wraps to
// negative numbers.
func SequenceSuffix(counter int32) string {
	const digits = 10
	n := int64(counter)
	var b [digits + 1]byte // one more for the sign of a number of ten digits
	sign := n < 0
	if sign {
		n = -n
	}
	i := len(b)
	for range digits {
		i--
		b[i] = byte('0' + n%10)
		n /= 10
	}
	if sign {
		// In ZooKeeper's format the sign counts as one of the ten characters.
		if b[i] == '0' {
			i++
		}
		i--
		b[i] = '-'
	}
	return string(b[i:])
}
