package wire

import "math"

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

// TTLOwner is the owner field of a znode with a TTL in milliseconds, from 1
// to TTLMax.
func TTLOwner(ms int64) int64 { return ownerTTL | ms }

// OwnerTTL is the TTL in milliseconds that an owner field holds, false if it
// holds none.
func OwnerTTL(owner int64) (ms int64, ok bool) {
	if owner&^TTLMax != ownerTTL {
		return 0, false
	}
	return owner & TTLMax, true
}

// VisibleCversion is the cversion a client sees, creates plus deletes of
// children: a server stores only how many were created, and has as many as
// were not deleted. It wraps.
func VisibleCversion(creates, children int32) int32 { return 2*creates - children }
