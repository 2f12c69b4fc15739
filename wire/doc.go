// Package wire holds every byte that crosses a socket or lies in a log: the
// jute primitives, the requests, replies and events that clients and servers
// exchange, what servers say to each other, the transaction records, the
// frames around them, and the names of the codes they carry.
//
// A record lists its fields once, in its method Code, which both writes and
// reads: a [Coder] made by [Encoder] appends, one made by [Decoder] consumes.
// So the two directions cannot drift apart. [Append] and [Decode] are the
// one-line forms.
//
//	c := wire.Decoder(frame)
//	var h wire.RequestHeader
//	h.Code(&c)
//	var r wire.PathWatchRequest
//	r.Code(&c)
//	if err := c.Err(); err != nil { … }
//
// Clients' messages and election notifications come in frames: [ReadFrame],
// [ReadElectionFrame], [AppendFrame]. Packets between a leader and a learner
// have none: [ReadPacket], and [ReadRecord] for other records of a stream.
//
// A decoder copies nothing it need not: byte slices it hands out alias its
// input, which the caller therefore must not change afterwards. Strings are
// copied unless [Coder.Alias] is set. What comes from a stream owns its
// memory. Whatever the input, decoding does not panic, and what it allocates
// is bounded by the length of what has arrived, never by a length that the
// input claims.
//
// Null and empty are different values on the wire: a nil slice is null
// (length -1), an empty non-nil slice is empty (length 0). Where a string may
// be null the field is a [NullString].
//
// Beside the records stand the values that both ends must compute alike:
// session passwords, digest ids, owners with a TTL, the rules of paths.
//
// The package decides nothing, opens nothing and starts no goroutine; its
// values are safe for concurrent reading. Read coder.go first, then txn.go
// and quorum.go.
package wire
