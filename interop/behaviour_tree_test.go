package interop

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

func seeCreate(s *seen) {
	for _, c := range []struct {
		path string
		data []byte
		opts []zk.CreateOption
	}{
		{"/p", nil, nil},
		{"/p", []byte("again"), nil},
		{"/empty", []byte{}, nil},
		{"/text", []byte("text"), nil},
		{"/no/parent", nil, nil},
		{"/e", []byte("x"), []zk.CreateOption{zk.Ephemeral}},
		{"/e/child", nil, nil},
		{"/s-", nil, []zk.CreateOption{zk.Sequential}},
		{"/es-", nil, []zk.CreateOption{zk.Sequential, zk.Ephemeral}},
		{"/c", nil, []zk.CreateOption{zk.Container}},
		{"/t", nil, []zk.CreateOption{zk.TTL(time.Hour)}},
		{"/ts-", nil, []zk.CreateOption{zk.TTL(time.Hour), zk.Sequential}},
		{"/umlaut-ä", []byte("ü"), nil},
		{"/acl", nil, []zk.CreateOption{zk.ACLs(wire.ReadACL())}},
		{"/acl/child", nil, nil},
		{"/bad-acl", nil, []zk.CreateOption{zk.ACLs{}}},
		{"/no/parent", nil, []zk.CreateOption{zk.ACLs{}}},
		{"/bad-scheme", nil, []zk.CreateOption{zk.ACLs{{Perms: 31, ID: wire.ID{Scheme: "nobody", ID: "x"}}}}},
	} {
		path, st, err := s.zc.Create(s.ctx, s.at(c.path), c.data, c.opts...)
		s.say("create %s: %s %q %s", c.path, result(err), strings.TrimPrefix(path, s.root), s.stat(st))
		data, st, err := s.zc.Get(s.ctx, s.at(c.path))
		s.say("get: %s %q null=%v %s", result(err), data, data == nil, s.stat(st))
	}
	_, st, err := s.zc.Get(s.ctx, s.root)
	s.say("parent: %s %s", result(err), s.stat(st))
}

func seeSequence(s *seen) {
	next := func(prefix string) {
		path, _, err := s.zc.Create(s.ctx, s.at(prefix), nil, zk.Sequential)
		s.say("%s -> %s %s", prefix, strings.TrimPrefix(path, s.root), result(err))
	}
	s.create("/plain", "")
	next("/a-")
	next("/b-")
	s.zc.Delete(s.ctx, s.at("/plain"), zk.AnyVersion)
	next("/a-")
	_, _, err := s.zc.Create(s.ctx, s.at("/a-0000000001"), nil)
	s.say("exists already: %s", result(err))
	next("/a-")
	s.create("/sub", "")
	next("/sub/")
	next("/sub/n")
	_, st, err := s.zc.Get(s.ctx, s.root)
	s.say("parent: %s %s", result(err), s.stat(st))
}

func seeDelete(s *seen) {
	s.create("/a", "1")
	s.create("/a/b", "2")
	for _, c := range []struct {
		path    string
		version int32
	}{{"/a", -1}, {"/a/b", 7}, {"/a/b", -2}, {"/a/b", 0}, {"/a/b", -1}, {"/nobody/here", -1}, {"/a", 0}} {
		err := s.zc.Delete(s.ctx, s.at(c.path), c.version)
		s.say("delete %s version %d: %s", c.path, c.version, result(err))
	}
	for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		s.say("delete %s: %s", path, result(s.zc.Delete(s.ctx, path, -1)))
	}
	_, st, err := s.zc.Get(s.ctx, s.root)
	s.say("parent: %s %s", result(err), s.stat(st))
}

func seeData(s *seen) {
	s.create("/d", "0")
	for _, c := range []struct {
		data    []byte
		version int32
	}{{[]byte("1"), -1}, {[]byte("1"), 1}, {[]byte("x"), 1}, {nil, 2}, {[]byte{}, 3}, {[]byte("y"), -2}, {make([]byte, 5000), -1}} {
		st, err := s.zc.Set(s.ctx, s.at("/d"), c.data, c.version)
		s.say("set %d bytes version %d: %s %s", len(c.data), c.version, result(err), s.stat(st))
		data, _, err := s.zc.Get(s.ctx, s.at("/d"))
		s.say("get: %s %d null=%v", result(err), len(data), data == nil)
	}
	_, err := s.zc.Set(s.ctx, s.at("/none"), nil, -1)
	s.say("set missing: %s", result(err))
	st, ok, err := s.zc.Exists(s.ctx, s.at("/d"))
	s.say("exists: %s %v %s", result(err), ok, s.stat(st))
	_, ok, err = s.zc.Exists(s.ctx, s.at("/none"))
	s.say("exists missing: %s %v", result(err), ok)
	s.say("check: %s", result(s.zc.Check(s.ctx, s.at("/d"), 5)))
	s.say("check wrong: %s", result(s.zc.Check(s.ctx, s.at("/d"), 4)))
	s.say("check missing: %s", result(s.zc.Check(s.ctx, s.at("/none"), -1)))
	s.say("sync: %s", result(s.zc.Sync(s.ctx, s.at("/none"))))
}

func seeChildren(s *seen) {
	for i := range 20 {
		s.create("/n"+strconv.Itoa(i), "")
	}
	s.create("/n3/deep", "")
	s.zc.Delete(s.ctx, s.at("/n7"), -1)
	names, st, err := s.zc.Children(s.ctx, s.root)
	s.say("children: %s %v %s", result(err), sorted(names), s.stat(st))
	names, st, err = s.zc.Children(s.ctx, s.at("/n5"))
	s.say("leaf: %s %v null=%v %s", result(err), names, names == nil, s.stat(st))
	_, _, err = s.zc.Children(s.ctx, s.at("/none"))
	s.say("missing: %s", result(err))
	n, err := s.zc.CountDescendants(s.ctx, s.root)
	s.say("descendants: %s %d", result(err), n)
	_, err = s.zc.CountDescendants(s.ctx, s.at("/none"))
	s.say("descendants of nothing: %s", result(err))
}

func seeACL(s *seen) {
	entry := func(perms int32, scheme, id string) wire.ACL {
		return wire.ACL{Perms: perms, ID: wire.ID{Scheme: scheme, ID: id}}
	}
	digest := "user:smGaoVKd/cQkjm7b88GyorAUz20="
	for i, list := range []zk.ACLs{
		{entry(31, "world", "anyone")},
		{entry(31, "world", "anyone"), entry(31, "world", "anyone")},
		{entry(31, "world", "someone")},
		{},
		{entry(31, "auth", "")},
		{entry(31, "digest", digest), entry(1, "world", "anyone")},
		{entry(31, "digest", "a:b:c")},
		{entry(31, "digest", "nocolon")},
		{entry(31, "digest", ":b"), entry(31, "world", "anyone")},
		{entry(31, "ip", "127.0.0.0/8"), entry(31, "world", "anyone")},
		{entry(31, "ip", "127.0.0.1/33")},
		{entry(31, "ip", "localhost")},
		{entry(31, "ip", "300.0.0.1")},
		{entry(31, "super", "x")},
		{entry(31, "", "x")},
		{entry(0, "world", "anyone"), entry(63, "world", "anyone"), entry(-1, "world", "anyone")},
	} {
		path := s.create("/a"+strconv.Itoa(i), "x")
		st, err := s.zc.SetACL(s.ctx, path, list, -1)
		s.say("set %v: %s %s", list, result(err), s.stat(st))
		got, _, err := s.zc.GetACL(s.ctx, path)
		s.say("get: %s %v", result(err), got)
	}
	s.create("/a", "x")
	_, err := s.zc.SetACL(s.ctx, s.at("/a"), wire.OpenACL(), 77)
	s.say("wrong version: %s", result(err))
	_, err = s.zc.SetACL(s.ctx, s.at("/none"), wire.OpenACL(), -1)
	s.say("missing: %s", result(err))
	_, err = s.zc.SetACL(s.ctx, s.at("/none"), zk.ACLs{}, -1)
	s.say("missing and bad: %s", result(err))
	seePermissions(s)
}

// seePermissions tries every operation on a znode with each single permission.
func seePermissions(s *seen) {
	for perm := int32(1); perm <= wire.PermAdmin; perm *= 2 {
		path := "/perm" + strconv.Itoa(int(perm))
		s.create(path, "x")
		s.create(path+"/child", "")
		acl := zk.ACLs{{Perms: perm, ID: wire.ID{Scheme: "world", ID: "anyone"}}}
		_, err := s.zc.SetACL(s.ctx, s.at(path), acl, -1)
		s.say("permission %d: %s", perm, result(err))
		_, _, err = s.zc.Get(s.ctx, s.at(path))
		s.say("get: %s", result(err))
		_, _, err = s.zc.Exists(s.ctx, s.at(path))
		s.say("exists: %s", result(err))
		_, _, err = s.zc.Children(s.ctx, s.at(path))
		s.say("children: %s", result(err))
		_, err = s.zc.CountDescendants(s.ctx, s.at(path))
		s.say("descendants: %s", result(err))
		_, err = s.zc.Set(s.ctx, s.at(path), nil, 9)
		s.say("set: %s", result(err))
		_, _, err = s.zc.Create(s.ctx, s.at(path+"/new"), nil)
		s.say("create: %s", result(err))
		s.say("delete child: %s", result(s.zc.Delete(s.ctx, s.at(path+"/child"), -1)))
		s.say("check: %s", result(s.zc.Check(s.ctx, s.at(path), -1)))
		got, _, err := s.zc.GetACL(s.ctx, s.at(path))
		s.say("getACL: %s %v", result(err), got)
		_, err = s.zc.SetACL(s.ctx, s.at(path), wire.OpenACL(), -1)
		s.say("setACL: %s", result(err))
		s.say("delete: %s", result(s.zc.Delete(s.ctx, s.at(path), -1)))
	}
}

func seeAuth(s *seen) {
	who := func(c *zk.Client) {
		list, err := c.WhoAmI(s.ctx)
		var ids []string
		for _, i := range list {
			ids = append(ids, i.Scheme+":"+i.User)
		}
		s.say("who: %s %v", result(err), sorted(ids))
	}
	who(s.zc)
	ann := s.client(&zk.Options{Auth: []zk.Auth{{Scheme: "digest", Data: []byte("ann:secret")}}})
	who(ann)
	_, _, err := ann.Create(s.ctx, s.at("/hers"), []byte("x"), zk.ACLs(wire.CreatorACL()))
	s.say("create as creator: %s", result(err))
	acl, _, err := ann.GetACL(s.ctx, s.at("/hers"))
	s.say("her ACL: %s %v", result(err), acl)
	_, _, err = s.zc.Get(s.ctx, s.at("/hers"))
	s.say("stranger reads: %s", result(err))
	acl, _, err = s.zc.GetACL(s.ctx, s.at("/hers"))
	s.say("stranger sees ACL: %s %v", result(err), acl)
	_, _, err = s.zc.Exists(s.ctx, s.at("/hers"))
	s.say("stranger asks whether it exists: %s", result(err))
	s.say("second login: %s", result(ann.AddAuth(s.ctx, zk.Auth{Scheme: "digest", Data: []byte("ben:secret")})))
	who(ann)
	_, _, err = ann.Create(s.ctx, s.at("/both"), nil, zk.ACLs(wire.CreatorACL()))
	s.say("create as both: %s", result(err))
	acl, _, err = ann.GetACL(s.ctx, s.at("/both"))
	s.say("both in ACL: %s %v", result(err), acl)
	s.say("ip login: %s", result(ann.AddAuth(s.ctx, zk.Auth{Scheme: "ip", Data: nil})))
	who(ann)
	super := s.client(&zk.Options{Auth: []zk.Auth{{Scheme: "digest", Data: []byte("super:interop")}}})
	who(super)
	_, _, err = super.Get(s.ctx, s.at("/hers"))
	s.say("super reads: %s", result(err))
	s.say("no colon: %s", result(s.client(nil).AddAuth(s.ctx, zk.Auth{Scheme: "digest", Data: []byte("nocolon")})))
	for _, scheme := range []string{"nobody", "world", "auth", "sasl", "x509"} {
		s.say("login by %s: %s", scheme, result(s.client(&zk.Options{OneSession: true}).AddAuth(s.ctx, zk.Auth{Scheme: scheme, Data: []byte("x")})))
	}
}

func seeEphemerals(s *seen) {
	other := s.client(nil)
	for _, p := range []string{"/b", "/a", "/a2"} {
		if _, _, err := other.Create(s.ctx, s.at(p), nil, zk.Ephemeral); err != nil {
			s.t.Fatal(err)
		}
	}
	s.create("/mine", "", zk.Ephemeral)
	for _, prefix := range []string{"/", s.at("/a"), s.at("/zzz")} {
		paths, err := other.Ephemerals(s.ctx, prefix)
		s.say("ephemerals %s: %s %v", prefix, result(err), sorted(paths))
	}
	st, ok, err := s.zc.Exists(s.ctx, s.at("/a"))
	s.say("seen by another: %s %v %s", result(err), ok, s.stat(st))
	s.say("close: %s", result(other.Close(s.ctx)))
	names, st, err := s.zc.Children(s.ctx, s.root)
	s.say("left: %s %v %s", result(err), sorted(names), s.stat(st))
	_, err = other.Ephemerals(s.ctx, "/")
	s.say("after close: %s", result(err))
}

func seeContainers(s *seen) {
	s.create("/c", "", zk.Container)
	s.create("/c/child", "")
	s.create("/c/eph", "", zk.Ephemeral)
	_, st, err := s.zc.Get(s.ctx, s.at("/c"))
	s.say("container: %s %s", result(err), s.stat(st))
	for _, ttl := range []time.Duration{time.Millisecond, 1<<40*time.Millisecond - time.Millisecond, 1 << 40 * time.Millisecond} {
		_, st, err := s.zc.Create(s.ctx, s.at("/t"+ttl.String()), nil, zk.TTL(ttl))
		s.say("ttl %v: %s %s", ttl, result(err), s.stat(st))
	}
	_, _, err = s.zc.Create(s.ctx, s.at("/t1ms/child"), nil)
	s.say("below a TTL: %s", result(err))
}

func seeQuota(s *seen) {
	s.create("/q", "1234")
	limits := "/zookeeper/quota" + s.at("/q")
	for _, p := range []string{"/zookeeper/quota" + s.root, limits} {
		_, _, err := s.zc.Create(s.ctx, p, nil)
		s.say("%s: %s", p, result(err))
	}
	_, _, err := s.zc.Create(s.ctx, limits+"/zookeeper_limits", []byte("count=2,bytes=20=;byteHardLimit=30;countHardLimit=4"))
	s.say("limits: %s", result(err))
	_, _, err = s.zc.Create(s.ctx, limits+"/zookeeper_stats", []byte("count=0,bytes=0"))
	s.say("stats: %s", result(err))
	show := func(what string, err error) {
		data, st, got := s.zc.Get(s.ctx, limits+"/zookeeper_stats")
		s.say("%s: %s; stats %s %q %s", what, result(err), result(got), data, s.stat(st))
	}
	show("begin", nil)
	for _, n := range []string{"/q/1", "/q/2", "/q/3", "/q/4"} {
		_, _, err := s.zc.Create(s.ctx, s.at(n), []byte("abcde"))
		show("create "+n, err)
	}
	_, err = s.zc.Set(s.ctx, s.at("/q/1"), make([]byte, 16), -1)
	show("set within", err)
	_, err = s.zc.Set(s.ctx, s.at("/q/1"), make([]byte, 17), -1)
	show("set beyond", err)
	_, err = s.zc.Multi(s.ctx, zk.DeleteOp(s.at("/q/2"), -1), zk.CreateOp(s.at("/q/4"), []byte("12345678")))
	show("multi", err)
	show("delete", s.zc.Delete(s.ctx, s.at("/q/1"), -1))
	show("delete limits", s.zc.Delete(s.ctx, limits+"/zookeeper_limits", -1))
	_, _, err = s.zc.Create(s.ctx, s.at("/q/5"), make([]byte, 100))
	show("create unlimited", err)
}

// quotaTexts are limits in forms that unusual clients may write.
var quotaTexts = []string{
	"", "garbage", "count", "count=", "count=1", "count=x,bytes=2", "=", "=5", "=x", "==5", ",", ";;", ",,count=9", ",count=9", "count=9,",
	"count=9,,bytes=9", "count=9;,bytes=900", "count=-1,bytes=-1", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1",
	"countHardLimit=1", "countHardLimit=+1", "countHardLimit= 1", "countHardLimit=01", "countHardLimit=1=2", "countHardLimit==1", "countHardLimit=1=",
	"countHardLimit=1==", "countHardLimit=1x", "countHardLimit=9223372036854775808", "countHardLimit=-9223372036854775808", "countHardLimit=0x1",
	"countHardLimit=1,countHardLimit=9", "countHardLimit=9,countHardLimit=1", "CountHardLimit=1", " countHardLimit=1", "countHardLimit =1",
	"countHardLimit=1\n", "countHardLimit=1\x00", "byteHardLimit=0", "byteHardLimit=0;count=x", "other=1", "other=x", "count=1.5", "\xff=1", "count=\xff",
	"countHardLimit=1;", "countHardLimit=1;;", "bytes=0;byteHardLimit=3", "byteHardLimit=-0", "byteHardLimit=-2",
}

// seeQuotaTexts records which writes each text of a quota's limits allows.
func seeQuotaTexts(s *seen) {
	s.create("/q", "1234")
	s.create("/q/gone", "")
	limits := "/zookeeper/quota" + s.at("/q")
	for _, p := range []string{"/zookeeper/quota" + s.root, limits, limits + "/zookeeper_limits", limits + "/zookeeper_stats"} {
		if _, _, err := s.zc.Create(s.ctx, p, []byte("count=-1,bytes=-1")); err != nil {
			s.t.Fatalf("%s: %v", s.server.Kind, err)
		}
	}
	try := func(what string, err error) {
		_, st, got := s.zc.Get(s.ctx, s.at("/q"))
		usage, _, _ := s.zc.Get(s.ctx, limits+"/zookeeper_stats")
		s.say("%s: %s; %s %s usage %q", what, result(err), result(got), s.stat(st), usage)
	}
	for i, text := range append(quotaTexts, "null") {
		data := []byte(text)
		if text == "null" {
			data = nil
		}
		_, err := s.zc.Set(s.ctx, limits+"/zookeeper_limits", data, -1)
		try(fmt.Sprintf("limits %q", text), err)
		name := fmt.Sprint("/q/", i)
		_, _, err = s.zc.Create(s.ctx, s.at(name), []byte("abc"))
		try("create", err)
		_, _, err = s.zc.Create(s.ctx, s.at(name+"-"), nil, zk.Ephemeral, zk.Sequential)
		try("create without data", err)
		_, err = s.zc.Set(s.ctx, s.at("/q"), []byte("5678"), -1)
		try("set as long", err)
		_, err = s.zc.Set(s.ctx, s.at("/q"), []byte("12345"), 77)
		try("set with a wrong version", err)
		results, err := s.zc.Multi(s.ctx, zk.CreateOp(s.at("/m"), nil), zk.CreateOp(s.at("/q/m"), nil), zk.DeleteOp(s.at("/q/m"), -1), zk.DeleteOp(s.at("/m"), -1))
		s.sayMulti("multi", results, err)
		try("delete", s.zc.Delete(s.ctx, s.at(name), -1))
	}
}

func seeBuiltIn(s *seen) {
	for _, p := range []string{"/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		st, ok, err := s.zc.Exists(s.ctx, p)
		s.say("%s: %s %v czxid=%v version=%d aversion=%d", p, result(err), ok, st.Czxid, st.Version, st.Aversion)
		acl, _, err := s.zc.GetACL(s.ctx, p)
		s.say("acl: %s %v", result(err), acl)
	}
	data, _, err := s.zc.Get(s.ctx, "/zookeeper/config")
	s.say("config: %s %q null=%v", result(err), data, data == nil)
	_, err = s.zc.Set(s.ctx, "/zookeeper/config", []byte("x"), -1)
	s.say("set config: %s", result(err))
	_, err = s.zc.Set(s.ctx, "/zookeeper", []byte("x"), -1)
	s.say("set /zookeeper: %s", result(err))
	_, err = s.zc.Set(s.ctx, "/zookeeper", nil, -1)
	s.say("set back: %s", result(err))
	names, _, err := s.zc.Children(s.ctx, "/zookeeper")
	s.say("children: %s %v", result(err), sorted(names))
}

func seeReconfig(s *seen) {
	_, _, err := s.zc.Reconfig(s.ctx, "server.9=127.0.0.1:1:2;3", "", "", -1)
	s.say("reconfig: %s", result(err))
	super := s.client(&zk.Options{Auth: []zk.Auth{{Scheme: "digest", Data: []byte("super:interop")}}})
	_, _, err = super.Reconfig(s.ctx, "", "9", "", -1)
	s.say("reconfig as super: %s", result(err))
	_, err = super.Set(s.ctx, "/zookeeper/config", nil, -1)
	s.say("super sets config: %s", result(err))
}
