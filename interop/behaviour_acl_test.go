package interop

import (
	"fmt"

	"bellwether/wire"
	"bellwether/zk"
)

// oddIDs are valid and invalid ids of access-control lists, by scheme. Both versions of
// ZooKeeper agree about all of them. internal/tree tests IPv6 ids, which 3.8.0 does not
// support.
var oddIDs = map[string][]string{
	"ip": {
		"127.0.0.1", "127.000.000.001", "0127.0.0.1", "00000000127.0.0.1", "127.0.0.010", "+127.0.0.1", "127.-0.0.1", "127.0.0.-1",
		"127.0.0.256", "127.0.0.99999999999", "127.0.0", "127.0.0.1.", ".127.0.0.1", "127..0.1", "127.0.0.1.1", "0x7f.0.0.1",
		"127.0.0.1 ", " 127.0.0.1", "127.0. 0.1", "127.0.0.1\x00", "127.1", "2130706433", "0.0.0.0", "255.255.255.255",
		"127.0.0.1/0", "127.0.0.1/1", "127.0.0.1/8", "127.0.0.9/31", "127.0.0.0/31", "127.0.0.1/32", "127.0.0.1/33", "127.0.0.1/-1",
		"127.0.0.1/+8", "127.0.0.1/08", "127.0.0.1/-0", "127.0.0.1/", "127.0.0.1/ 8", "127.0.0.1/8 ", "127.0.0.1/8/8", "127.0.0.1/255.0.0.0",
		"127.0.0.1/8.", "127.0.0.1/4294967304", "10.0.0.1/0", "10.0.0.1/8", "126.0.0.1/7", "/8", "/", "", ".", "...", "0.0.0.0/0",
		"::ffff:127.0.0.1", "::127.0.0.1", "::ffff:127.0.0.1/128", "localhost", "127.0.0.1%lo", "1_27.0.0.1", "127.0.0.1\n",
	},
	"x509":     {"CN=a", "CN=a,O=b", "", "a", "CN", "CN=a, O=b", "CN=\"a", "1.2.3=a"},
	"sasl":     {"", "bob", "bob@REALM", "bob/host@REALM", "a/b/c@d"},
	"super":    {"", "x", "super:D/InIHSb7yEEbrWz8b9l71RjZJU="},
	"world":    {"anyone", "", "Anyone", "anyone ", "someone"},
	"World":    {"anyone"},
	"auth":     {"", "x", "ann:x"},
	"digest":   {"", ":", "a", "a:", ":b", "a:b", "a:b:", "a::", "a::b", "a:b:c", "a:b::", " : ", "a:b\n"},
	"DIGEST":   {"a:b"},
	"":         {"", "anyone"},
	"nobody":   {"", "x"},
	"host":     {"localhost"},
	"ensemble": {"", "x"},
}

// oddSchemes is the order in which the test tries oddIDs.
var oddSchemes = []string{"ip", "x509", "sasl", "super", "world", "World", "auth", "digest", "DIGEST", "", "nobody", "host", "ensemble"}

// seeOddACLs sends each id in a create, a setACL and a multi, on a connection without and on
// one with two authenticated identities, and records whether the stored list lets them read.
func seeOddACLs(s *seen) {
	stranger, ann := dialRaw(s, nil), dialRaw(s, nil)
	for _, login := range []string{"ann:secret", "ben:secret"} {
		ann.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte(login)})
		ann.sayFrame("login")
	}
	n := 0
	for _, scheme := range oddSchemes {
		for _, id := range oddIDs[scheme] {
			n++
			path := s.at(fmt.Sprint("/a", n))
			what := fmt.Sprintf("%q %q", scheme, id)
			acl := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: scheme, ID: id}}}
			for _, r := range []*rawConn{stranger, ann} {
				r.send(1, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: acl})
				r.sayFrame("create " + what)
				r.send(2, wire.OpGetACL, &wire.PathRequest{Path: path})
				r.sayFrame("get " + what)
			}
			stranger.send(3, wire.OpGetData, &wire.PathWatchRequest{Path: path})
			stranger.sayFrame("stranger reads " + what)
			ann.send(4, wire.OpSetACL, &wire.SetACLRequest{Path: s.root, ACL: append(acl, wire.OpenACL()...), Version: -1})
			ann.sayFrame("set " + what)
			ann.send(5, wire.OpGetACL, &wire.PathRequest{Path: s.root})
			ann.sayFrame("get what was set")
			ann.send(6, wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
				{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: path + "m", ACL: append(wire.OpenACL(), acl...)}},
				{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: path + "m", Version: -1}},
			}})
			ann.sayFrame("multi " + what)
		}
	}
}

// seeListForms sends lists of several entries. It shows which entries count as equal, and
// how one invalid entry affects the others.
func seeListForms(s *seen) {
	entry := func(perms int32, scheme, id string) wire.ACL {
		return wire.ACL{Perms: perms, ID: wire.ID{Scheme: scheme, ID: id}}
	}
	open, local := entry(31, "world", "anyone"), entry(31, "ip", "127.0.0.1")
	for _, login := range []bool{false, true} {
		r := dialRaw(s, nil)
		if login {
			r.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte("ann:secret")})
			r.sayFrame("login")
		}
		for i, list := range []zk.ACLs{
			nil, {}, {open, open}, {local, entry(31, "ip", "127.000.000.001")}, {open, entry(1, "world", "anyone")},
			{entry(1, "auth", ""), entry(2, "auth", "")}, {entry(1, "auth", ""), entry(1, "auth", "x")}, {open, entry(31, "auth", "")},
			{open, entry(31, "x509", "CN=a")}, {open, entry(31, "nobody", "")}, {entry(0, "ip", "127.0.0.1"), open}, {entry(0, "world", "anyone")},
			{entry(-1, "world", "anyone")}, {entry(64, "digest", "a:b"), open},
		} {
			path := s.at(fmt.Sprint("/", login, i))
			what := fmt.Sprintf("%q", list)
			r.send(1, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: list})
			r.sayFrame("create " + what)
			r.send(2, wire.OpGetACL, &wire.PathRequest{Path: path})
			r.sayFrame("get " + what)
		}
	}
}
