package wire

import (
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// DigestID returns the id of the scheme digest for the text user:password: the part
// before the first colon, a colon, and the base64 SHA-1 of the text. Text that is not
// UTF-8 is decoded first, as servers do; see UTF8.
func DigestID(userPassword string) string {
	userPassword = UTF8([]byte(userPassword))
	user, _, _ := strings.Cut(userPassword, ":")
	sum := sha1.Sum([]byte(userPassword))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// DigestMD5 holds what both ends of a SASL exchange DIGEST-MD5 know when the client
// answers the challenge (RFC 2831, algorithm md5-sess, quality auth).
type DigestMD5 struct {
	Username string
	Password string
	Realm    string
	Nonce    string // of the server
	Cnonce   string // of the client
	Count    string // nc, eight hex digits
	URI      string // service/name
	Authzid  string // may be empty
}

// Response returns the client's proof that it knows the password.
func (d *DigestMD5) Response() string { return d.proof("AUTHENTICATE:" + d.URI) }

// Rspauth returns the server's proof in return.
func (d *DigestMD5) Rspauth() string { return d.proof(":" + d.URI) }

// proof hashes the secret together with act, which says what is proved.
func (d *DigestMD5) proof(act string) string {
	secret := md5.Sum([]byte(d.Username + ":" + d.Realm + ":" + d.Password))
	session := string(secret[:]) + ":" + d.Nonce + ":" + d.Cnonce
	if d.Authzid != "" {
		session += ":" + d.Authzid
	}
	parts := []string{hexMD5(session), d.Nonce, d.Count, d.Cnonce, "auth", hexMD5(act)}
	return hexMD5(strings.Join(parts, ":"))
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}
