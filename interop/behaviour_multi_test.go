package interop

import (
	"strings"
	"time"

	"bellwether/zk"
)

// sayMulti records every result of a multi.
func (s *seen) sayMulti(what string, results []zk.Result, err error) {
	s.say("%s: %s", what, result(err))
	for i, r := range results {
		s.say("  %d: %s %q %q %v %s", i, result(r.Err), strings.TrimPrefix(r.Path, s.root), r.Data, sorted(r.Children), s.stat(r.Stat))
	}
}

func seeMulti(s *seen) {
	s.create("/d", "0")
	results, err := s.zc.Multi(s.ctx,
		zk.CreateOp(s.at("/m"), []byte("1")),
		zk.SetOp(s.at("/m"), []byte("2"), 0),
		zk.CheckOp(s.at("/m"), 1),
		zk.SetOp(s.at("/m"), []byte("3"), 1),
		zk.CreateOp(s.at("/m/s-"), nil, zk.Sequential),
		zk.CreateOp(s.at("/m/s-"), nil, zk.Sequential, zk.Ephemeral),
		zk.CreateOp(s.at("/c"), nil, zk.Container),
		zk.CreateOp(s.at("/t"), nil, zk.TTL(time.Hour)),
		zk.CreateOp(s.at("/gone"), nil),
		zk.DeleteOp(s.at("/gone"), 0),
		zk.DeleteOp(s.at("/d"), -1),
	)
	s.sayMulti("multi", results, err)
	for _, p := range []string{"", "/m", "/m/s-0000000000", "/m/s-0000000001", "/c", "/t", "/gone", "/d"} {
		st, ok, err := s.zc.Exists(s.ctx, s.at(p))
		s.say("%s: %s %v %s", p, result(err), ok, s.stat(st))
	}
	results, err = s.zc.Multi(s.ctx)
	s.sayMulti("empty", results, err)
}

func seeMultiFailing(s *seen) {
	s.create("/d", "0")
	s.create("/d/child", "")
	ok := zk.CreateOp(s.at("/new"), nil)
	for _, c := range []struct {
		name string
		ops  []zk.Op
	}{
		{"version", []zk.Op{ok, zk.SetOp(s.at("/d"), nil, 5), zk.DeleteOp(s.at("/d"), -1)}},
		{"missing", []zk.Op{ok, zk.DeleteOp(s.at("/none"), -1)}},
		{"not empty", []zk.Op{ok, zk.DeleteOp(s.at("/d"), -1), ok}},
		{"exists", []zk.Op{ok, ok}},
		{"check", []zk.Op{zk.CheckOp(s.at("/none"), -1), ok, ok}},
		{"no parent", []zk.Op{zk.CreateOp(s.at("/x/y"), nil), ok}},
		{"made then emptied", []zk.Op{ok, zk.CreateOp(s.at("/new/c"), nil), zk.DeleteOp(s.at("/new"), -1)}},
		{"bad ACL", []zk.Op{ok, zk.CreateOp(s.at("/x"), nil, zk.ACLs{})}},
		{"sequence", []zk.Op{zk.CreateOp(s.at("/s-"), nil, zk.Sequential), zk.CheckOp(s.at("/none"), -1)}},
	} {
		results, err := s.zc.Multi(s.ctx, c.ops...)
		s.sayMulti(c.name, results, err)
	}
	path, _, err := s.zc.Create(s.ctx, s.at("/s-"), nil, zk.Sequential)
	s.say("no number was used: %s %s", result(err), strings.TrimPrefix(path, s.root))
	_, st, err := s.zc.Get(s.ctx, s.root)
	s.say("nothing happened: %s %s", result(err), s.stat(st))
}

func seeMultiRead(s *seen) {
	s.create("/a", "1")
	s.create("/a/b", "2")
	results, err := s.zc.MultiRead(s.ctx, zk.GetOp(s.at("/a")), zk.ChildrenOp(s.at("/a")), zk.GetOp(s.at("/none")), zk.GetOp(s.at("/a/b")))
	s.sayMulti("multiRead", results, err)
}
