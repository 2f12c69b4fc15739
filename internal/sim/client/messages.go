package client

import "bellwether/wire"

// Messages of a client.
type (
	Hello struct { // Hello stands for a ConnectRequest
		Session   wire.SessionID
		Password  []byte
		TimeoutMS int32
		Seen      wire.Zxid
		ReadOnly  bool    // the client accepts a server without a quorum
		Identity  wire.ID // stands for an auth packet
	}
	Request struct {
		Xid  int32
		Op   wire.OpCode
		Body []byte
	}
)

// Messages of a server.
type (
	Welcome struct { // Welcome stands for a ConnectResponse
		Session   wire.SessionID
		TimeoutMS int32
		Password  [wire.PasswordLen]byte
		ReadOnly  bool
	}
	Response struct {
		Header wire.ReplyHeader
		Record wire.Record
	}
)
