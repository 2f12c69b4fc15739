package shadow

import (
	"strconv"

	"bellwether/wire"
)

// part is a part of a znode that changes as a whole.
type part int

// The parts. For each one, the stat says when it was last changed, except for the ACL.
const (
	identityPart part = iota // fixed at the create: czxid
	dataPart                 // changed by setData: mzxid
	childPart                // changed by creates and deletes of children: pzxid
	aclPart                  // changed by setACL, which leaves no zxid
)

// settled reports whether the observer's stat s, read at the zxid at, shows the part as it was at zxid z. z is not
// later than at.
func (p part) settled(s *wire.Stat, z, at wire.Zxid) bool {
	if z == at {
		return true
	}
	switch p {
	case identityPart:
		return s.Czxid <= z
	case dataPart:
		return s.Mzxid <= z
	case childPart:
		return s.Pzxid <= z
	}
	return false
}

// fields is a set of fields of a stat.
type fields uint16

// The fields, in the order of statFields.
const (
	fieldCzxid fields = 1 << iota
	fieldCtime
	fieldOwner
	fieldMzxid
	fieldMtime
	fieldVersion
	fieldLength
	fieldPzxid
	fieldCversion
	fieldChildren
	fieldAversion

	allFields   = fieldAversion<<1 - 1
	timeFields  = fieldCtime | fieldMtime
	childFields = fieldPzxid | fieldCversion | fieldChildren
)

// statFields describes the fields of a stat.
var statFields = []struct {
	name string
	part part
	hex  bool
	get  func(*wire.Stat) int64
}{
	{"czxid", identityPart, true, func(s *wire.Stat) int64 { return int64(s.Czxid) }},
	{"ctime", identityPart, false, func(s *wire.Stat) int64 { return s.Ctime }},
	{"ephemeralOwner", identityPart, true, func(s *wire.Stat) int64 { return int64(s.EphemeralOwner) }},
	{"mzxid", dataPart, true, func(s *wire.Stat) int64 { return int64(s.Mzxid) }},
	{"mtime", dataPart, false, func(s *wire.Stat) int64 { return s.Mtime }},
	{"version", dataPart, false, func(s *wire.Stat) int64 { return int64(s.Version) }},
	{"dataLength", dataPart, false, func(s *wire.Stat) int64 { return int64(s.DataLength) }},
	{"pzxid", childPart, true, func(s *wire.Stat) int64 { return int64(s.Pzxid) }},
	{"cversion", childPart, false, func(s *wire.Stat) int64 { return int64(s.Cversion) }},
	{"numChildren", childPart, false, func(s *wire.Stat) int64 { return int64(s.NumChildren) }},
	{"aversion", aclPart, false, func(s *wire.Stat) int64 { return int64(s.Aversion) }},
}

// number prints a field of a stat.
func number(v int64, hex bool) string {
	if hex {
		return "0x" + strconv.FormatUint(uint64(v), 16)
	}
	return strconv.FormatInt(v, 10)
}
