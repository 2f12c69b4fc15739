package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// oddCredentials are user:password as bytes: Latin-1, UTF-8, and sequences that decoders of
// UTF-8 replace in different ways.
var oddCredentials = []string{
	"m\xfcller:secret", "anna:stra\xdfe", "\xff\xfe:\xff", "müller:geheim", "\xe2\x82:cut short", "x\xf0\x9f\x98:cut short",
	"\xed\xa0\x80:surrogate", "\xc0\x80:overlong", "\xe0\x80\x80:overlong", "\xf4\x90\x80\x80:too large", "\xf8\x88\x80\x80\x80:five bytes",
	"\x80\xbf:stray", "a\x00b:c\x00d", "\ufffd:\ufffd", ":\xfc", "\xfc", "", "a:b:\xe9:c",
}

// seeCredentials records the identity that each credential proves, and shows that its owner
// can read a znode whose ACL allows only this identity.
func seeCredentials(s *seen) {
	for i, text := range oddCredentials {
		what := fmt.Sprintf("%q", text)
		r := dialRaw(s, nil)
		r.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte(text)})
		r.sayFrame("login by " + what)
		r.send(1, wire.OpWhoAmI, nil)
		r.sayFrame("who is " + what)
		path := s.at(fmt.Sprint("/own", i))
		r.send(2, wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte("mine"), ACL: wire.CreatorACL()})
		r.sayFrame("create by " + what)
		r.send(3, wire.OpGetData, &wire.PathWatchRequest{Path: path})
		r.sayFrame("read by " + what)
		r.send(4, wire.OpGetACL, &wire.PathRequest{Path: path})
		r.sayFrame("list of " + what)
		r.send(5, wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1})
		r.sayFrame("write by " + what)
	}
	seeListedBytes(s)
}

// seeListedBytes sends ids that are not UTF-8 in access-control lists.
func seeListedBytes(s *seen) {
	r := dialRaw(s, nil)
	for i, id := range []string{"m\xfcller:x", "\xed\xa0\x80:x", "\xc3:x", "\xf0\x9f:\xff"} {
		path := s.at(fmt.Sprint("/listed", i))
		acl := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "digest", ID: id}}, {Perms: wire.PermAll, ID: wire.OpenACL()[0].ID}}
		r.send(10, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: acl})
		r.sayFrame(fmt.Sprintf("list %q", id))
		r.send(11, wire.OpGetACL, &wire.PathRequest{Path: path})
		r.sayFrame("get it")
		r.send(12, wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: acl[:1], Version: -1})
		r.sayFrame("set it alone")
	}
	r.send(13, wire.OpCreate, &wire.CreateRequest{Path: s.at("/scheme"), ACL: []wire.ACL{{Perms: 31, ID: wire.ID{Scheme: "digest\xff", ID: "a:b"}}}})
	r.sayFrame("a scheme that is not UTF-8")
}

// ownerOf opens a session that has authenticated with a credential.
func ownerOf(t *testing.T, s *target.Server, credential string) *zk.Client {
	t.Helper()
	c, err := zk.Connect(t.Context(), s.Addr, &zk.Options{SessionTimeout: longSession, Auth: []zk.Auth{{Scheme: "digest", Data: []byte(credential)}}})
	if err != nil {
		t.Fatalf("%s: %v", s.Kind, err)
	}
	t.Cleanup(func() { c.Close(t.Context()) })
	return c
}

// TestOwnersKeepAccessWhenTheDirectoryMoves shows that a user whose name or password is not
// UTF-8 can use the same znodes on both servers with one data directory, whether they are
// loaded from the log or from a snapshot.
func TestOwnersKeepAccessWhenTheDirectoryMoves(t *testing.T) {
	eachTarget(t, func(t *testing.T, first target.Kind) {
		data := t.TempDir()
		for turn, kind := range []target.Kind{first, otherKind(first), first} {
			s := target.StartFor(t, kind, target.Options{Data: data, Reap: noReap})
			for i, credential := range oddCredentials {
				if !strings.Contains(credential, ":") || strings.HasSuffix(credential, ":") {
					continue // not valid as the id of an owner
				}
				c := ownerOf(t, s, credential)
				for earlier := range turn {
					if _, _, err := c.Get(t.Context(), fmt.Sprintf("/turn%d-%d", earlier, i)); err != nil {
						t.Errorf("turn %d on %s: %q reads what it made in turn %d: %v", turn, kind, credential, earlier, err)
					}
				}
				if _, _, err := c.Create(t.Context(), fmt.Sprintf("/turn%d-%d", turn, i), nil, zk.ACLs(wire.CreatorACL())); err != nil {
					t.Fatalf("turn %d on %s: %q: %v", turn, kind, credential, err)
				}
			}
			s.Kill()
		}
	})
}

// TestMembersAgreeAboutOwners shows for ensembles of one kind and of both that an owner whose
// credential is not UTF-8 has access on every server, that others have not, and that no
// server's digest of the tree differs from the leader's.
func TestMembersAgreeAboutOwners(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]target.Kind{
		"bellwether follows": {target.Bellwether, target.Apache, target.Apache},
		"bellwether leads":   {target.Apache, target.Bellwether, target.Bellwether},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds, Extra: map[string]string{
				"initLimit": "50", "syncLimit": "20", "maxSessionTimeout": "120000"}})
			if _, err := e.AwaitWhole(3 * time.Minute); err != nil {
				t.Fatal(err)
			}
			for from, s := range e.Servers {
				ownersEverywhere(t, e, s, fmt.Sprint("/from", from))
			}
			for _, s := range e.Servers {
				if text, err := s.Word("mntr"); err != nil || !strings.Contains(text, "zk_digest_mismatches_count\t0") {
					t.Errorf("%s: digest mismatches: %v\n%s", s.Kind, err, text)
				}
			}
		})
	}
}

// ownersEverywhere creates a znode for each owner on one server and reads it on all servers.
func ownersEverywhere(t *testing.T, e *target.Ensemble, at *target.Server, prefix string) {
	t.Helper()
	for i, credential := range oddCredentials[:3] {
		path := fmt.Sprint(prefix, "-", i)
		if _, _, err := ownerOf(t, at, credential).Create(t.Context(), path, nil, zk.ACLs(wire.CreatorACL())); err != nil {
			t.Fatalf("%q creates at %s: %v", credential, at.Kind, err)
		}
		for _, s := range e.Servers {
			owner, stranger := ownerOf(t, s, credential), ownerOf(t, s, "stranger:secret")
			if err := owner.Sync(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			if _, _, err := owner.Get(t.Context(), path); err != nil {
				t.Errorf("%q reads at %s: %v", credential, s.Kind, err)
			}
			if _, err := owner.Set(t.Context(), path, nil, -1); err != nil {
				t.Errorf("%q writes at %s: %v", credential, s.Kind, err)
			}
			if _, _, err := stranger.Get(t.Context(), path); err == nil {
				t.Errorf("a stranger reads what %q owns at %s", credential, s.Kind)
			}
		}
	}
}
