package replica

import (
	"testing"

	"bellwether/wire"
)

// TestSecrets shows which passwords a server accepts while a secret is replaced.
func TestSecrets(t *testing.T) {
	const id = wire.SessionID(0x100000ed48f0000)
	zookeeper, old, next := Secret{}, Secret{"old secret"}, Secret{"next secret"}
	if zookeeper.Password(id) != id.Password() || old.Password(id) == next.Password(id) || old.Password(id) == old.Password(id+1) {
		t.Fatal("passwords are not as they should be")
	}
	for _, c := range []struct {
		name    string
		secrets Secrets
		makes   Secret
		accepts []Secret
		refuses []Secret
		native  bool
	}{
		{"none", nil, zookeeper, []Secret{zookeeper}, []Secret{old, next}, false},
		{"prepared", Secrets{zookeeper, old}, zookeeper, []Secret{zookeeper, old}, []Secret{next}, false},
		{"switched", Secrets{old, zookeeper}, old, []Secret{zookeeper, old}, []Secret{next}, true},
		{"alone", Secrets{old}, old, []Secret{old}, []Secret{zookeeper, next}, true},
		{"replaced", Secrets{next, old}, next, []Secret{old, next}, []Secret{zookeeper}, true},
	} {
		if c.secrets.Password(id) != c.makes.Password(id) {
			t.Errorf("%s: makes other passwords", c.name)
		}
		for _, s := range c.accepts {
			if p := s.Password(id); !c.secrets.Accepts(id, p[:]) {
				t.Errorf("%s: refuses a password of %q", c.name, s.Key)
			}
		}
		for _, s := range c.refuses {
			if p := s.Password(id); c.secrets.Accepts(id, p[:]) {
				t.Errorf("%s: accepts a password of %q", c.name, s.Key)
			}
		}
		good := c.secrets.Password(id)
		for _, p := range [][]byte{nil, {}, good[:15], append(good[:], 0), make([]byte, 16)} {
			if c.secrets.Accepts(id, p) {
				t.Errorf("%s: accepts %x", c.name, p)
			}
		}
		if p := c.secrets.Password(id); c.secrets.Accepts(id+1, p[:]) {
			t.Errorf("%s: accepts the password of another session", c.name)
		}
		if c.secrets.nativeOnly() != c.native {
			t.Errorf("%s: nativeOnly is %v", c.name, !c.native)
		}
	}
}

// TestSetSecrets: after the secrets were replaced, clients get passwords by the first of the new ones.
func TestSetSecrets(t *testing.T) {
	const id = wire.SessionID(0x100000ed48f0000)
	_, s := leaderFirst(t, true)
	next := Secrets{{"next secret"}, {"old secret"}}
	s[0].r.SetSecrets(next)
	if s[0].r.Password(id) != next.Password(id) {
		t.Error("it gives passwords by the former secrets")
	}
}
