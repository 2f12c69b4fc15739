package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"bellwether/internal/authority"
	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// mixedACL is an ACL whose order, ids and permissions must stay as they are: two schemes, an id
// that is there twice, and characters that have a meaning in subjects and principals.
var mixedACL = []gozk.ACL{
	{Perms: gozk.PermRead, Scheme: "x509", ID: `CN=alice\, the first,OU=R\+D,O="Bell, Wether",C=DE`},
	{Perms: gozk.PermAll, Scheme: "sasl", ID: "zookeeper/host.example.com@EXAMPLE.COM"},
	{Perms: gozk.PermWrite | gozk.PermAdmin, Scheme: "x509", ID: "CN=alice"},
	{Perms: gozk.PermRead, Scheme: "sasl", ID: "bob"},
	{Perms: gozk.PermCreate, Scheme: "x509", ID: "CN=alice"},
	{Perms: gozk.PermRead | gozk.PermDelete, Scheme: "sasl", ID: "jürgen@EXAMPLE.COM"},
}

// TestRestrictedZnodesMoveBetweenServers moves a data directory whose znodes have ACLs of the
// schemes x509 and sasl from one kind of server to the other and back. Each server must show the
// same ACLs, and give access to the client with the right certificate or login and to no other.
func TestRestrictedZnodesMoveBetweenServers(t *testing.T) {
	dir := certificates(t, "mallory")
	jaas := writeJAAS(t)
	eachTarget(t, func(t *testing.T, first target.Kind) {
		data := t.TempDir()
		var before map[string]znode
		for turn, kind := range []target.Kind{first, otherKind(first), first, otherKind(first)} {
			h := restricted(t, kind, data, dir, jaas)
			super := dialSuper(t, h.Addr, longSession)
			sameTree(t, walk(t, super), before)
			for at := range turn {
				h.visit(t, at)
			}
			h.populate(t, super, turn)
			h.visit(t, turn)
			before = walk(t, super)
			h.Kill()
		}
	})
}

// restrictedServer is the server of one step of the test, with a port for TLS.
type restrictedServer struct {
	*target.Server
	secure string // the address of the port for TLS
	dir    string // the folder of the certificates
}

// writeJAAS writes a JAAS file with the user bob and returns its name.
func writeJAAS(t *testing.T) string {
	t.Helper()
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	section := "Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  user_bob=\"bobsecret\"\n  user_mallory=\"mallorysecret\";\n};\n"
	if err := os.WriteFile(jaas, []byte(section), 0o600); err != nil {
		t.Fatal(err)
	}
	return jaas
}

// restricted starts a server of a kind with a data directory. The server also accepts
// logins.
func restricted(t *testing.T, kind target.Kind, data, dir, jaas string) *restrictedServer {
	t.Helper()
	port := target.FreePort(t)
	extra := target.SecureKeys("ssl.", dir, map[string]string{"secureClientPort": port, "secureClientPortAddress": "127.0.0.1",
		"serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory", "maxSessionTimeout": "120000"})
	h := &restrictedServer{secure: "127.0.0.1:" + port, dir: dir}
	extra["authProvider.1"] = saslProvider
	h.Server = target.StartFor(t, kind, target.Options{Data: data, Extra: extra, Reap: noReap,
		Properties: []string{jaasProperty + jaas}})
	return h
}

// connect opens a session that ends with the test.
func (h *restrictedServer) connect(t *testing.T, addr string, opt *zk.Options) *zk.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := zk.Connect(ctx, addr, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Detach() })
	return c
}

// holder opens a session over TLS with the certificate of a name.
func (h *restrictedServer) holder(t *testing.T, name string) *zk.Client {
	t.Helper()
	pem := filepath.Join(h.dir, name+".pem")
	return h.connect(t, h.secure, &zk.Options{TLSFiles: &zk.TLSFiles{CA: filepath.Join(h.dir, authority.CertFile), Cert: pem, Key: pem}})
}

// populate creates restricted znodes for the turn.
func (h *restrictedServer) populate(t *testing.T, super client, turn int) {
	t.Helper()
	create := func(name string, acl []gozk.ACL) {
		if _, err := super.Create(fmt.Sprintf("/%s%d", name, turn), []byte("secret"), 0, acl); err != nil {
			t.Fatalf("create %s%d: %v", name, turn, err)
		}
	}
	create("alice", []gozk.ACL{{Perms: gozk.PermAll, Scheme: "x509", ID: "CN=alice"}})
	create("bob", []gozk.ACL{{Perms: gozk.PermAll, Scheme: "sasl", ID: "bob"}})
	create("mixed", mixedACL)
}

// visit checks who has access to the znodes of a turn. mixedACL lets alice only write and bob
// only read.
func (h *restrictedServer) visit(t *testing.T, turn int) {
	t.Helper()
	visitors := map[string]*zk.Client{"alice": h.holder(t, "client"), "mallory": h.holder(t, "mallory"), "": h.connect(t, h.Addr, nil)}
	visitors["bob"] = h.connect(t, h.Addr, &zk.Options{SASL: zk.DigestMD5("bob", "bobsecret")})
	visitors["mallory by SASL"] = h.connect(t, h.Addr, &zk.Options{SASL: zk.DigestMD5("mallory", "mallorysecret")})
	for _, znode := range []struct {
		name             string
		readers, writers []string // who may read, and who may write
	}{
		{"alice", []string{"alice"}, []string{"alice"}},
		{"bob", []string{"bob"}, []string{"bob"}},
		{"mixed", []string{"bob"}, []string{"alice"}},
	} {
		path := fmt.Sprintf("/%s%d", znode.name, turn)
		for who, c := range visitors {
			_, _, err := c.Get(t.Context(), path)
			h.checkAccess(t, "read", path, who, err, slices.Contains(znode.readers, who))
			_, err = c.Set(t.Context(), path, []byte("secret"), zk.AnyVersion)
			h.checkAccess(t, "write", path, who, err, slices.Contains(znode.writers, who))
		}
	}
	if acl, _, err := visitors["alice"].GetACL(t.Context(), fmt.Sprintf("/alice%d", turn)); err != nil ||
		!slices.Equal(acl, zk.ACLs{{Perms: wire.PermAll, ID: wire.ID{Scheme: "x509", ID: "CN=alice"}}}) {
		t.Errorf("%s: the ACL of /alice%d is %v, %v", h.Kind, turn, acl, err)
	}
}

// checkAccess compares the outcome of a request with what the ACL allows.
func (h *restrictedServer) checkAccess(t *testing.T, what, path, who string, err error, allowed bool) {
	t.Helper()
	if allowed && err != nil || !allowed && !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("%s: %s of %s by %q: %v, allowed is %v", h.Kind, what, path, who, err, allowed)
	}
}
