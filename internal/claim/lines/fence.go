package lines

import "bellwether/wire"

// Fence stands before what claims protect, and refuses who has been overtaken.
// It knows nothing but tokens. The zero Fence admits everybody first.
type Fence struct {
	alone  wire.Zxid // newest of a holder that was alone
	shared wire.Zxid // newest of a reader
}

// Admit is for who holds alone: it is admitted if no newer token was. Newest is
// what it was compared with.
func (f *Fence) Admit(token wire.Zxid) (newest wire.Zxid, admitted bool) {
	if newest = f.Seen(); token < newest {
		return newest, false
	}
	f.alone = token
	return newest, true
}

// AdmitShared is for readers: they are admitted if no newer writer was, in any order.
func (f *Fence) AdmitShared(token wire.Zxid) (newest wire.Zxid, admitted bool) {
	if token < f.alone {
		return f.alone, false
	}
	f.shared = max(f.shared, token)
	return f.alone, true
}

// Seen is the newest token admitted.
func (f *Fence) Seen() wire.Zxid { return max(f.alone, f.shared) }
