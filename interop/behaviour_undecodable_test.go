package interop

import (
	"fmt"

	"bellwether/interop/target"
	"bellwether/wire"
)

// null is the encoding of an absent string, buffer or vector.
var null = []byte{0xff, 0xff, 0xff, 0xff}

// seeCutWrites sends each kind of write truncated at every byte, and with a null path. It
// records, for each length, the error code and the zxid, and shows that the connection stays
// usable.
func seeCutWrites(s *seen) {
	s.shifted = target.OtherZooKeeper()
	create := wire.CreateRequest{Path: s.at("/x"), Data: []byte("d"), ACL: wire.OpenACL()}
	ttl := wire.CreateTTLRequest{CreateRequest: create, TTL: 1000}
	ttl.Flags = wire.FlagPersistentTTL
	r := dialRaw(s, nil)
	for _, w := range []struct {
		op  wire.OpCode
		req wire.Record
	}{
		{wire.OpCreate, &create}, {wire.OpCreate2, &create}, {wire.OpCreateContainer, &create}, {wire.OpCreateTTL, &ttl},
		{wire.OpDelete, &wire.PathVersionRequest{Path: s.at("/none"), Version: -1}},
		{wire.OpSetData, &wire.SetDataRequest{Path: s.at("/none"), Data: []byte("d"), Version: -1}},
		{wire.OpSetACL, &wire.SetACLRequest{Path: s.at("/none"), ACL: wire.OpenACL(), Version: -1}},
		{wire.OpReconfig, &wire.ReconfigRequest{Joining: wire.Text("x"), ConfigID: -1}},
		{wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpCreate, Request: &create}}}},
		{wire.OpSync, &wire.NullPathRequest{Path: wire.Text("/")}},
	} {
		whole := wire.Append(nil, w.req)
		for n := range whole {
			r.sendBytes(1, w.op, whole[:n]...)
			r.sayFrame(fmt.Sprintf("%v cut at %d of %d", w.op, n, len(whole)))
		}
		r.send(2, wire.OpExists, &wire.PathWatchRequest{Path: s.at("/x")})
		r.sayFrame(fmt.Sprintf("%v made nothing", w.op))
		r.send(3, wire.OpDelete, &wire.PathVersionRequest{Path: s.at("/none"), Version: -1})
		r.sayFrame("zxid of the next write")
	}
}

// seeNullFields sends writes with null fields and shows which check comes first.
func seeNullFields(s *seen) {
	s.shifted = target.OtherZooKeeper()
	r := dialRaw(s, nil)
	xid := int32(0)
	do := func(what string, op wire.OpCode, parts ...[]byte) {
		xid++
		r.ops[xid] = op
		var body []byte
		for _, p := range parts {
			body = append(body, p...)
		}
		r.sendBytes(xid, op, body...)
		r.sayFrame(what)
	}
	word := func(n int32) []byte { return wire.Append(nil, &intRecord{n}) }
	open := wire.Append(nil, &aclRecord{wire.OpenACL()})
	path := wire.Append(nil, &wire.PathRequest{Path: s.at("/n")})
	empty := word(0)
	for _, flags := range []int32{0, 1, 2, 3, 4, 5, 6, 7, -1, 100} {
		for _, op := range []wire.OpCode{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL} {
			what := fmt.Sprintf("%v flags %d ", op, flags)
			do(what+"null path", op, null, null, open, word(flags), word(0), word(1))
			do(what+"null path and list", op, null, null, null, word(flags), word(0), word(1))
			do(what+"empty path", op, empty, null, open, word(flags), word(0), word(1))
			if flags <= 3 && op != wire.OpCreateTTL {
				do(what+"null list", op, path, null, null, word(flags), word(0), word(1))
			}
			if op != wire.OpCreateTTL || flags == wire.FlagPersistentTTL || flags == wire.FlagPersistentSequentialTTL {
				do(what+"bad TTL", op, null, null, open, word(flags), word(-1), word(-1))
			}
		}
	}
	do("delete null", wire.OpDelete, null, word(-1))
	do("delete empty", wire.OpDelete, empty, word(-1))
	do("setData null", wire.OpSetData, null, null, word(-1))
	do("setData null and bad length", wire.OpSetData, null, word(-2), word(-1))
	do("setACL null", wire.OpSetACL, null, open, word(-1))
	do("setACL null list", wire.OpSetACL, path, null, word(-1))
	do("setACL all null", wire.OpSetACL, null, null, word(-1))
	for _, kind := range []int32{-1, 0, 1, 2, 3, 4, 5, 6} {
		do(fmt.Sprint("checkWatches null ", kind), wire.OpCheckWatches, null, word(kind))
		do(fmt.Sprint("removeWatches null ", kind), wire.OpRemoveWatches, null, word(kind))
		do(fmt.Sprint("removeWatches empty ", kind), wire.OpRemoveWatches, empty, word(kind))
		do(fmt.Sprint("removeWatches path ", kind), wire.OpRemoveWatches, path, word(kind))
	}
	do("getAllChildrenNumber empty", wire.OpGetAllChildrenNumber, empty)
	do("getAllChildrenNumber root", wire.OpGetAllChildrenNumber, wire.Append(nil, &wire.PathRequest{Path: "/"}))
	for _, op := range []wire.OpCode{wire.OpGetChildren, wire.OpGetChildren2, wire.OpGetData, wire.OpExists} {
		do(op.String()+" empty", op, empty, []byte{0})
	}
	do("getACL empty", wire.OpGetACL, empty)
	do("getEphemerals empty", wire.OpGetEphemerals, empty)
	seeNullOps(s, do, word, open, path)
	do("zxid of the next write", wire.OpDelete, null, word(-1))
}

// seeNullOps sends multis with null fields and with odd headers.
func seeNullOps(s *seen, do func(string, wire.OpCode, ...[]byte), word func(int32) []byte, open, path []byte) {
	header := func(op wire.OpCode, done bool) []byte {
		return wire.Append(nil, &wire.MultiHeader{Type: op, Done: done, Err: -1})
	}
	end := header(wire.OpError, true)
	other := wire.Append(nil, &wire.PathRequest{Path: s.at("/m")})
	good := append(append(append(header(wire.OpCreate, false), other...), null...), append(open, word(0)...)...)
	for _, w := range []struct {
		name string
		op   wire.OpCode
		body []byte
	}{
		{"create null", wire.OpCreate, append(append(append(null, null...), open...), word(0)...)},
		{"create null, bad flags", wire.OpCreate, append(append(append(null, null...), open...), word(9)...)},
		{"create bad flags", wire.OpCreate, append(append(append(path, null...), open...), word(9)...)},
		{"create null list", wire.OpCreate, append(append(append(path, null...), null...), word(0)...)},
		{"delete null", wire.OpDelete, append(null, word(-1)...)},
		{"setData null", wire.OpSetData, append(append(null, null...), word(-1)...)},
		{"check null", wire.OpCheck, append(null, word(-1)...)},
		{"setACL", wire.OpSetACL, append(append(path, open...), word(-1)...)},
		{"sync", wire.OpSync, path},
		{"getData", wire.OpGetData, append(path, 0)},
		{"getData null", wire.OpGetData, append(null, 0)},
		{"getChildren null", wire.OpGetChildren, append(null, 0)},
		{"unknown", 77, path},
		{"error", wire.OpError, word(-101)},
	} {
		one := append(header(w.op, false), w.body...)
		do("multi of "+w.name, wire.OpMulti, one, end)
		do("multi of good and "+w.name, wire.OpMulti, good, one, end)
		do("multi of good and "+w.name+" cut", wire.OpMulti, good, one[:len(one)-1])
		do("multiRead of "+w.name, wire.OpMultiRead, one, end)
		do("zxid of the next write", wire.OpDelete, null, word(-1))
	}
	for _, flags := range []int32{-1, 0, 1, 2, 3, 4, 5, 6, 7} {
		for _, op := range []wire.OpCode{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL} {
			if op == wire.OpCreateContainer && flags < wire.FlagContainer || op == wire.OpCreateTTL && flags >= 0 && flags <= wire.FlagContainer {
				continue // 3.8.0 does not treat the first as a container, and no version treats the second as a createTTL
			}
			f := wire.Append(nil, &wire.PathRequest{Path: s.at(fmt.Sprintf("/f%d-%d-", flags, op))})
			do(fmt.Sprintf("multi of %v with flags %d", op, flags), wire.OpMulti,
				header(op, false), f, null, open, word(flags), ttlWords(op), end)
		}
	}
	do("multi without an end", wire.OpMulti, good)
	do("multi with nothing", wire.OpMulti)
	do("multi with an end alone", wire.OpMulti, end)
	do("multi behind its end", wire.OpMulti, end, good)
	do("multi of the done flag", wire.OpMulti, header(wire.OpCreate, true))
	do("delete what was made", wire.OpDelete, other, word(-1))
}

// ttlWords returns the bytes of a TTL, if the operation has one.
func ttlWords(op wire.OpCode) []byte {
	if op != wire.OpCreateTTL {
		return nil
	}
	return []byte{0, 0, 0, 0, 0, 0, 3, 0xe8}
}

type intRecord struct{ n int32 }

func (r *intRecord) Code(c *wire.Coder) { c.Int32(&r.n) }

type aclRecord struct{ list []wire.ACL }

func (r *aclRecord) Code(c *wire.Coder) { c.ACLs(&r.list) }

// seeCutLogins sends auth and sasl packets truncated at every byte, each on its own
// connection, and then records what a server reports about it.
func seeCutLogins(s *seen) {
	s.blind = true
	for _, w := range []struct {
		op  wire.OpCode
		req wire.Record
	}{
		{wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte("a:b")}},
		{wire.OpSASL, &wire.SASLRequest{Token: []byte("token")}},
	} {
		whole := wire.Append(nil, w.req)
		for n := range len(whole) + 1 {
			r := dialRaw(s, nil)
			r.sendBytes(1, w.op, whole[:n]...)
			r.send(2, wire.OpExists, &wire.PathWatchRequest{Path: "/"})
			r.sayFrame(fmt.Sprintf("%v cut at %d of %d", w.op, n, len(whole)))
			r.sayFrame("then")
		}
	}
	for _, body := range [][]byte{null, {0xff, 0xff, 0xff, 0xfe}, {0, 0, 0, 0}} {
		r := dialRaw(s, nil)
		r.sendBytes(1, wire.OpSASL, body...)
		r.sayFrame(fmt.Sprintf("sasl %x", body))
		r.send(2, wire.OpExists, &wire.PathWatchRequest{Path: "/"})
		r.sayFrame("then")
	}
	for n := range 8 {
		r := dialRaw(s, nil)
		r.write(append([]byte{0, 0, 0, byte(n)}, make([]byte, n)...))
		r.sayFrame(fmt.Sprint("a header of ", n))
	}
}

// seeNullWatches sends setWatches in which a list, or a path in a list, is null. It records
// whether the lists before it were accepted.
func seeNullWatches(s *seen) {
	s.blind = true
	s.create("/a", "")
	one := func(path string) []byte {
		list := []string{s.at(path)}
		c := wire.Encoder(nil)
		c.Strings(&list)
		return c.Bytes()
	}
	nullPath := append([]byte{0, 0, 0, 1}, null...)
	empty := []byte{0, 0, 0, 0}
	future := []byte{0x7f, 0, 0, 0, 0, 0, 0, 0}
	for _, w := range []struct {
		name  string
		op    wire.OpCode
		lists [][]byte
	}{
		{"null first", wire.OpSetWatches, [][]byte{null, one("/a"), one("/a")}},
		{"null path first", wire.OpSetWatches, [][]byte{nullPath, one("/a"), one("/a")}},
		{"null second", wire.OpSetWatches, [][]byte{one("/a"), null, empty}},
		{"null third", wire.OpSetWatches, [][]byte{one("/a"), empty, null}},
		{"null path third", wire.OpSetWatches, [][]byte{one("/a"), empty, nullPath}},
		{"null fourth", wire.OpSetWatches2, [][]byte{one("/a"), empty, empty, null, empty}},
		{"null fifth", wire.OpSetWatches2, [][]byte{one("/a"), empty, empty, empty, null}},
		{"count beyond the frame", wire.OpSetWatches, [][]byte{one("/a"), empty, {0, 0, 0, 9}}},
		{"cut", wire.OpSetWatches, [][]byte{one("/a"), empty, {0, 0}}},
		{"trailing bytes", wire.OpSetWatches, [][]byte{one("/a"), empty, empty, {1, 2, 3}}},
	} {
		r := dialRaw(s, nil)
		body := future
		for _, l := range w.lists {
			body = append(body[:len(body):len(body)], l...)
		}
		r.sendBytes(wire.XidSetWatches, w.op, body...)
		r.sayFrame("setWatches, " + w.name)
		r.send(1, wire.OpSetData, &wire.SetDataRequest{Path: s.at("/a"), Version: -1})
		r.sayFrame("what setData brings first, " + w.name)
	}
}
