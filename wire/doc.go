// Package wire holds the messages that clients and servers exchange: the jute
// primitives, the requests, replies and events, the frames around them, and the
// names of the codes that they carry. Programs that use package zk do not need it.
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
// Clients' messages come in frames: [ReadFrame], [AppendFrame]. [ReadRecord] reads
// a record that has no frame from a stream.
//
// A decoder copies only what it must: the byte slices that it returns share memory
// with its input, so the caller must not change the input afterwards. Strings are
// copied unless [Coder.Alias] is set. What is decoded from a stream has memory of
// its own. Whatever the input is, decoding does not panic, and it allocates in
// proportion to the bytes that have arrived, never to a length that the input claims.
//
// Null and empty are different values: a nil slice is null (length -1), an empty
// non-nil slice is empty (length 0). A field that may hold a null string is a
// [NullString].
//
// The package also holds the values that both ends must compute alike: session
// passwords, digest ids, the rules of paths.
//
// What servers say to each other is in internal/peerwire, and what logs and
// snapshots contain in internal/record. Both are made of this package's coder.
//
// The package decides nothing, opens nothing and starts no goroutine; its
// values are safe for concurrent reading. Read coder.go first, then request.go.
package wire
