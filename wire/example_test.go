package wire_test

import (
	"bytes"
	"errors"
	"fmt"

	"bellwether/wire"
)

// A client's side of one request: it writes the frame. The header of the reply says whether a record
// follows.
func Example_client() {
	request := wire.AppendFrame(nil,
		&wire.RequestHeader{Xid: 1, Op: wire.OpGetData},
		&wire.PathWatchRequest{Path: "/a", Watch: true})
	fmt.Printf("%x\n", request)

	reply := wire.AppendFrame(nil, // what a server would send
		&wire.ReplyHeader{Xid: 1, Zxid: 0x2a},
		&wire.DataResponse{Data: []byte("hello"), Stat: wire.Stat{Version: 3}})
	frame, err := wire.ReadFrame(bytes.NewReader(reply), nil, wire.FrameMax)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := wire.Decoder(frame)
	var header wire.ReplyHeader
	header.Code(&c)
	if err := header.Err.Err(); err != nil {
		fmt.Println(err)
		return
	}
	var data wire.DataResponse
	data.Code(&c)
	fmt.Printf("%v: %s, version %d, error %v\n", header.Zxid, data.Data, data.Stat.Version, c.Err())
	// Output:
	// 0000000f0000000100000004000000022f6101
	// 0x2a: hello, version 3, error <nil>
}

// A server's side: the coder is reused, and strings share the frame's memory because the frame is never
// written again.
func Example_server() {
	frame := wire.Append(nil, &wire.RequestHeader{Xid: 7, Op: wire.OpSetData})
	frame = append(frame, wire.Append(nil, &wire.SetDataRequest{Path: "/a", Data: []byte("x"), Version: -1})...)

	c := wire.Decoder(frame)
	c.Alias = true
	var header wire.RequestHeader
	header.Code(&c)
	var request wire.SetDataRequest
	request.Code(&c)
	if c.Err() != nil {
		fmt.Println(wire.ErrMarshalling) // the code of the reply; the connection stays open
		return
	}
	fmt.Println(header.Op, request.Path, string(request.Data))

	out, mark := wire.BeginFrame(nil)
	c = wire.Encoder(out)
	(&wire.ReplyHeader{Xid: header.Xid, Zxid: 9, Err: wire.ErrBadVersion}).Code(&c)
	fmt.Printf("%x\n", wire.EndFrame(c.Bytes(), mark))
	// Output:
	// setData /a x
	// 00000010000000070000000000000009ffffff99
}

func ExampleDecode() {
	var r wire.PathRequest
	err := wire.Decode([]byte{0, 0, 0, 2, '/'}, &r)
	fmt.Println(err, errors.Is(err, wire.ErrShort))
	// Output: offset 4: record is cut short true
}

func ExampleCode() {
	reply := wire.ReplyHeader{Err: wire.ErrNoNode}
	err := fmt.Errorf("delete /a: %w", reply.Err.Err())
	fmt.Println(err, errors.Is(err, wire.ErrNoNode))
	// Output: delete /a: node does not exist true
}

// If one operation of a multi fails, none is carried out.
func ExampleMultiRequest() {
	request := &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpCheck, Request: &wire.PathVersionRequest{Path: "/leader", Version: 3}},
		{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/job", Version: -1}},
	}}
	var again wire.MultiRequest
	if err := wire.Decode(wire.Append(nil, request), &again); err != nil {
		fmt.Println(err)
		return
	}
	for _, op := range again.Ops {
		fmt.Println(op.Type, op.Request.(*wire.PathVersionRequest).Path)
	}
	// Output:
	// check /leader
	// delete /job
}

func ExampleSessionID_Password() {
	fmt.Printf("%x\n", wire.SessionID(0x100001959950000).Password())
	// Output: 2196045d9ac3d68a6770269773aef06a
}

func ExampleValidPath() {
	for _, path := range []string{"/service/leader", "service", "/service/", "/a/../b"} {
		fmt.Println(path, wire.ValidPath(path))
	}
	// Output:
	// /service/leader true
	// service false
	// /service/ false
	// /a/../b false
}

func ExampleDigestID() {
	acl := wire.ACL{Perms: wire.PermAll, ID: wire.ID{Scheme: "digest", ID: wire.DigestID("bob:secret")}}
	fmt.Println(acl.ID.ID)
	// Output: bob:fyVmFCwVbTJYrznoSu1koqYEYF0=
}
