package replica

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"

	"bellwether/wire"
)

// Secret makes session passwords. The zero Secret stands for ZooKeeper's checksum of the
// session id, which anyone can compute.
type Secret struct{ Key string }

// Password returns the password of a session: its checksum, or a keyed MAC (HMAC-SHA256,
// shortened to the length of a password). Every server with the same secret computes the
// same password.
func (s Secret) Password(id wire.SessionID) (p [wire.PasswordLen]byte) {
	if s.Key == "" {
		return id.Password()
	}
	mac := hmac.New(sha256.New, []byte(s.Key))
	mac.Write([]byte("bellwether session"))
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(id)))
	copy(p[:], mac.Sum(nil))
	return p
}

// Secrets are the secrets of an ensemble: the first makes the passwords of new and resumed
// sessions, and every one of them is accepted. nil is ZooKeeper's checksum alone. A secret
// is replaced in steps, so that each server accepts what the others make: see
// docs/security.md.
type Secrets []Secret

// Password returns the password that a client gets for a session.
func (s Secrets) Password(id wire.SessionID) [wire.PasswordLen]byte {
	if len(s) == 0 {
		return id.Password()
	}
	return s[0].Password(id)
}

// Accepts reports whether password is that of a session, by any of the secrets. It takes
// the same time for every wrong password of the right length.
func (s Secrets) Accepts(id wire.SessionID, password []byte) bool {
	if len(s) == 0 {
		s = Secrets{{}}
	}
	found := 0
	for _, secret := range s {
		want := secret.Password(id)
		found |= subtle.ConstantTimeCompare(want[:], password)
	}
	return found == 1
}

// nativeOnly reports whether a ZooKeeper server could not resume the sessions of this
// server's clients.
func (s Secrets) nativeOnly() bool { return len(s) > 0 && s[0].Key != "" }

// Password returns the password of a session.
func (r *Replica) Password(id wire.SessionID) [wire.PasswordLen]byte {
	return r.opt.Secrets.Password(id)
}

// SetSecrets replaces the secrets. Connections that are open stay open. Whether ZooKeeper
// servers are refused changes with the next term.
func (r *Replica) SetSecrets(s Secrets) { r.opt.Secrets = s }
