package interop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// TestSASLAtApache shows that package zk can log in with DIGEST-MD5 at a ZooKeeper server with a
// JAAS file, that other clients cannot read its restricted znodes, and that a wrong password is
// a permanent error.
func TestSASLAtApache(t *testing.T) {
	jaas := filepath.Join(t.TempDir(), "jaas.conf")
	section := "Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  user_bob=\"bobsecret\";\n};\n"
	if err := os.WriteFile(jaas, []byte(section), 0o600); err != nil {
		t.Fatal(err)
	}
	s := target.StartFor(t, target.Apache, target.Options{
		JVM:   append([]string{"-Djava.security.auth.login.config=" + jaas}, target.JVM...),
		Extra: map[string]string{"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
	})
	ctx, cancel := context.WithTimeout(t.Context(), electionWait)
	defer cancel()
	open := func(opt *zk.Options) *zk.Client {
		c, err := zk.Connect(ctx, s.Addr, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		return c
	}

	bob := open(&zk.Options{SASL: zk.DigestMD5("bob", "bobsecret")})
	own := zk.ACLs{{Perms: wire.PermAll, ID: wire.ID{Scheme: "sasl", ID: "bob"}}}
	if _, _, err := bob.Create(ctx, "/bobs", []byte("x"), own); err != nil {
		t.Fatal(err)
	}
	if data, _, err := bob.Get(ctx, "/bobs"); err != nil || string(data) != "x" {
		t.Errorf("read %q, %v", data, err)
	}
	if _, _, err := open(&zk.Options{}).Get(ctx, "/bobs"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("without a login: %v", err)
	}
	mallory, err := zk.Connect(ctx, s.Addr, &zk.Options{SASL: zk.DigestMD5("bob", "guessed")})
	if err == nil {
		t.Cleanup(func() { _ = mallory.Close(context.Background()) })
		_, _, err = mallory.Get(ctx, "/bobs")
	}
	if !errors.Is(err, zk.ErrAuthFailed) {
		t.Errorf("with a wrong password: %v", err)
	}
}
