package interop

import (
	"fmt"

	"bellwether/wire"
)

// nullID is the encoding of an access-control list with one entry whose id is null.
type nullID struct{ scheme string }

func (n nullID) Code(c *wire.Coder) {
	entries, perms, scheme, null := int32(1), wire.PermAll, n.scheme, wire.NullString{}
	c.Int32(&entries)
	c.Int32(&perms)
	c.String(&scheme)
	c.NullString(&null)
}

// createNullID and setNullID are requests with a list that has a null id.
type createNullID struct{ path, scheme string }

func (r createNullID) Code(c *wire.Coder) {
	data, flags := []byte("x"), int32(0)
	c.String(&r.path)
	c.Buffer(&data)
	nullID{r.scheme}.Code(c)
	c.Int32(&flags)
}

type setNullID struct{ path, scheme string }

func (r setNullID) Code(c *wire.Coder) {
	version := int32(-1)
	c.String(&r.path)
	nullID{r.scheme}.Code(c)
	c.Int32(&version)
}

// seeNullIDs records the replies to a request whose ACL entry has no id, sent alone and
// in a multi. In the multi the other operations have replies of their own.
func seeNullIDs(s *seen) {
	s.blind = true
	s.create("/old", "")
	r := dialRaw(s, nil)
	xid := int32(0)
	do := func(what string, op wire.OpCode, req wire.Record) {
		xid++
		r.send(xid, op, req)
		r.sayFrame(what)
	}
	create := func(p string) *wire.CreateRequest { return &wire.CreateRequest{Path: s.at(p), ACL: wire.OpenACL()} }
	for _, scheme := range []string{"", "nope", "world", "sasl", "key", "super", "auth", "digest", "ip", "x509"} {
		do("create "+scheme, wire.OpCreate, createNullID{s.at("/new"), scheme})
		do("setACL "+scheme, wire.OpSetACL, setNullID{s.at("/old"), scheme})
		do("setACL of a missing znode "+scheme, wire.OpSetACL, setNullID{s.at("/missing"), scheme})
		do("multi "+scheme, wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpCreate, Request: create("/m")},
			{Type: wire.OpCreate, Request: createNullID{s.at("/n"), scheme}},
			{Type: wire.OpCreate, Request: createNullID{s.at("/m"), scheme}},
		}})
		for _, p := range []string{"/new", "/m", "/n"} {
			do(fmt.Sprintf("%s is %s", p, scheme), wire.OpExists, &wire.PathWatchRequest{Path: s.at(p)})
		}
	}
	r.sayAlive()
}
