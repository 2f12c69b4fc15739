package sasl

import (
	"crypto/md5"
	"encoding/hex"
)

const mechanismDigest = "DIGEST-MD5"

// Limits of the JDK, in bytes.
const (
	// ResponseMax is the longest token that a server accepts from a client.
	ResponseMax = 4096
	// ChallengeMax is the longest token that a client accepts from a server.
	ChallengeMax = 2048
)

// firstCount is the nonce count of the first use of a nonce. No nonce is used twice.
const firstCount = "00000001"

// digestKey is the hash of a user name, a realm and a password. It is all that a server
// has to know about a password.
type digestKey [md5.Size]byte

func newDigestKey(user, realm string, password Secret) digestKey {
	return md5.Sum([]byte(latin1(user) + ":" + latin1(realm) + ":" + latin1(password.Reveal())))
}

// latin1 encodes s as ISO 8859-1 if all characters are in that set; otherwise it returns s,
// which is UTF-8. RFC 2831 asks for it wherever a name or password is hashed.
func latin1(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// digestProof holds what both ends hash together with the key.
type digestProof struct {
	nonce, cnonce, uri string
	authzid            *string // nil if the client names none
}

// response is the client's proof that it knows the password, and rspauth is the server's.
func (p *digestProof) response(k digestKey) string { return p.hash(k, "AUTHENTICATE:"+p.uri) }
func (p *digestProof) rspauth(k digestKey) string  { return p.hash(k, ":"+p.uri) }

// hash combines the key with act, a text that differs between the two proofs (algorithm md5-sess, quality
// auth).
func (p *digestProof) hash(k digestKey, act string) string {
	session := string(k[:]) + ":" + p.nonce + ":" + p.cnonce
	if p.authzid != nil {
		session += ":" + *p.authzid
	}
	return hexMD5(hexMD5(session) + ":" + p.nonce + ":" + firstCount + ":" + p.cnonce + ":auth:" + hexMD5(act))
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}
