package lines

import "bellwether/wire"

// Fence protects a resource: it refuses holders whose token is older than one that it has admitted. It
// compares only tokens. The zero Fence admits any first token.
type Fence struct {
	exclusive wire.Zxid // newest token of an exclusive holder
	shared    wire.Zxid // newest token of a reader
}

// Admit admits the token of an exclusive holder unless a newer token was admitted before. newest is the
// largest token admitted before.
func (f *Fence) Admit(token wire.Zxid) (newest wire.Zxid, admitted bool) {
	if newest = f.Seen(); token < newest {
		return newest, false
	}
	f.exclusive = token
	return newest, true
}

// AdmitShared admits the token of a reader unless a newer exclusive holder was admitted before. The order
// among readers does not matter.
func (f *Fence) AdmitShared(token wire.Zxid) (newest wire.Zxid, admitted bool) {
	if token < f.exclusive {
		return f.exclusive, false
	}
	f.shared = max(f.shared, token)
	return f.exclusive, true
}

// Seen returns the newest token admitted.
func (f *Fence) Seen() wire.Zxid { return max(f.exclusive, f.shared) }
