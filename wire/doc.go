// Package wire holds every byte that crosses a socket or lies in a log: the
// jute primitives, the requests, replies and events that clients and servers
// exchange, the packets between servers, the transaction records, the frames
// around them, and the names of the codes they carry.
//
// A record lists its fields once, in its method Code, which both writes and
// reads: a [Coder] made by [Encoder] appends, one made by [Decoder] consumes.
// So the two directions cannot drift apart. [Append] and [Decode] are the
// one-line forms.
//
//	c := wire.Decoder(frame)
//	var h wire.RequestHeader
//	h.Code(&c)
//	var r wire.GetDataRequest
//	r.Code(&c)
//	if err := c.Err(); err != nil { … }
//
// A decoder copies nothing it need not: byte slices it hands out alias its
// input, which the caller therefore must not change afterwards. Strings are
// copied unless [Coder.Alias] is set.
//
// Null and empty are different values on the wire: a nil slice is null
// (length -1), an empty non-nil slice is empty (length 0). Where a string may
// be null the field is a [NullString].
//
// The package decides nothing, opens nothing and starts no goroutine; its
// values are safe for concurrent reading. Read coder.go first, then txn.go.
package wire
