package interop

import (
	"fmt"
	"math/rand/v2"

	"bellwether/interop/target"
	"bellwether/wire"
)

// The size of seeRandomRequests, which sends the same requests to every server.
const (
	randomSeed     = 1
	randomRequests = 1500
	randomRound    = 50 // requests below one root, on one connection
	randomCut      = 8  // one in so many requests is damaged
)

// seeRandomRequests sends requests of every kind, some of them damaged, whose arguments often
// name the same few znodes. It leaves out what differences.md lists: a difference would
// change all later replies.
func seeRandomRequests(s *seen) {
	s.shifted = target.OtherZooKeeper()
	g := &generator{Rand: rand.New(rand.NewPCG(randomSeed, 0))}
	var r *rawConn
	for i := range randomRequests {
		if i%randomRound == 0 {
			g.root = s.create(fmt.Sprint("/", i/randomRound), "")
			r = nil
		}
		if r == nil || r.ended {
			r = dialRaw(s, nil)
		}
		op, req := g.request()
		body := wire.Append(nil, req)
		if g.IntN(randomCut) == 0 && op != wire.OpMulti && op != wire.OpSetWatches {
			body = g.damage(op, body)
		}
		r.sendBytes(int32(i+1), op, body...)
		for !r.ended && !r.sayFrame(fmt.Sprintf("%d %v %q", i, op, body)) {
		}
	}
}

// generator generates requests.
type generator struct {
	*rand.Rand
	root string
}

// one returns a random one of several values.
func one[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) path() string {
	if g.IntN(20) == 0 {
		return one(g, "", "/", "a", "//", g.root+"/", g.root+"//a", g.root+"/.", g.root+"/\x00", g.root+"/\xff", "/zookeeper/quota", "/zookeeper/none")
	}
	return g.root + one(g, "", "/a", "/a", "/b", "/b", "/c", "/a/a", "/a/b", "/b/a", "/b/-", "/a/a/a", "/ü")
}

func (g *generator) data() []byte { return one(g, nil, []byte{}, []byte("x"), []byte("\x00\xff")) }

func (g *generator) version() int32 { return one[int32](g, -1, -1, -1, 0, 0, 1, 2, -2) }

// list returns an access-control list that lets everybody read, or an invalid one.
func (g *generator) list() []wire.ACL {
	perms := one[int32](g, 31, 31, 31, 31, 1, 3, 5, 9, 17, -1)
	id := one(g, wire.ID{Scheme: "ip", ID: "127.000.0.1/8"}, wire.ID{Scheme: "digest", ID: "\xff:x"}, wire.ID{Scheme: "auth"},
		wire.ID{Scheme: "x509", ID: "CN=a"}, wire.ID{Scheme: "ip", ID: "::ffff:127.0.0.1"}, wire.ID{Scheme: "world"})
	switch g.IntN(8) {
	case 0:
		return one(g, nil, []wire.ACL{})
	case 1, 2:
		return []wire.ACL{{Perms: perms, ID: id}, {Perms: wire.PermRead, ID: wire.OpenACL()[0].ID}}
	}
	return []wire.ACL{{Perms: perms, ID: wire.OpenACL()[0].ID}}
}

func (g *generator) create(flags ...int32) wire.CreateRequest {
	return wire.CreateRequest{Path: g.path(), Data: g.data(), ACL: g.list(), Flags: one(g, flags...)}
}

// request returns a request of any kind.
func (g *generator) request() (wire.OpCode, wire.Record) {
	read := &wire.PathWatchRequest{Path: g.path(), Watch: g.IntN(2) == 0}
	switch g.IntN(12) {
	case 0, 1, 2, 3:
		return g.write()
	case 4:
		return wire.OpSetACL, &wire.SetACLRequest{Path: g.path(), ACL: g.list(), Version: g.version()}
	case 5:
		return one(g, wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2), read
	case 6:
		return one(g, wire.OpGetACL, wire.OpGetAllChildrenNumber), &wire.PathRequest{Path: g.path()}
	case 7:
		return one(g, wire.OpSync, wire.OpGetEphemerals), &wire.NullPathRequest{Path: wire.NullString{String: g.path(), Valid: g.IntN(4) > 0}}
	case 8:
		return wire.OpRemoveWatches, &wire.WatchesRequest{Path: g.path(), Type: one[wire.WatcherType](g, 1, 2, 3, 0, 6), NullPath: g.IntN(5) == 0}
	case 9:
		scheme := wire.NullString{String: one(g, "digest", "digest", "ip", "world"), Valid: g.IntN(6) > 0}
		return wire.OpAuth, &wire.AuthRequest{Scheme: scheme, Auth: []byte(one(g, "u:p", "\xff:x", ""))}
	case 10:
		return wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: one[wire.Zxid](g, 0, 1<<60), Data: []string{g.path()}, Exist: []string{g.path()}, Child: []string{g.path()}}
	}
	return g.multi()
}

// write returns a write that is also allowed in a multi.
func (g *generator) write() (wire.OpCode, wire.Record) {
	switch g.IntN(6) {
	case 0, 1:
		c := g.create(0, 0, 0, 1, 2, 3)
		return wire.OpCreate, &c
	case 2:
		c := g.create(wire.FlagContainer)
		return wire.OpCreateContainer, &c
	case 3:
		ttl := one[int64](g, 1<<30, 0, -1, 1<<40)
		return wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: g.create(5, 6), TTL: ttl}
	case 4:
		return wire.OpDelete, &wire.PathVersionRequest{Path: g.path(), Version: g.version()}
	}
	return wire.OpSetData, &wire.SetDataRequest{Path: g.path(), Data: g.data(), Version: g.version()}
}

func (g *generator) multi() (wire.OpCode, wire.Record) {
	var q wire.MultiRequest
	for range g.IntN(5) {
		op, rec := g.write()
		if g.IntN(5) == 0 {
			op, rec = wire.OpCheck, &wire.PathVersionRequest{Path: g.path(), Version: g.version()}
		}
		q.Ops = append(q.Ops, wire.Op{Type: op, Request: rec})
	}
	return wire.OpMulti, &q
}

// damage truncates a request, appends to it, or changes a bit. It only truncates a
// createTTL: one with other flags kills ZooKeeper.
func (g *generator) damage(op wire.OpCode, b []byte) []byte {
	if len(b) == 0 {
		return []byte{0}
	}
	switch i := g.IntN(len(b)); g.IntN(3) {
	case 0:
		if op != wire.OpCreateTTL {
			b[i] ^= 1 << g.IntN(8)
		}
	case 1:
		return append(b, byte(g.IntN(256)))
	default:
		return b[:i]
	}
	return b
}
