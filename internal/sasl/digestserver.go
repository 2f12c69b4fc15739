package sasl

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DigestUsers are the users that a server knows, with hashes in place of their passwords.
// It does not change, so exchanges may share it.
type DigestUsers struct {
	service Service
	keys    map[string]digestKey
	decoy   digestKey // the key that is compared for unknown users; no password leads to it
}

// NewDigestUsers returns the users of a service with their passwords.
func NewDigestUsers(s Service, passwords map[string]Secret) *DigestUsers {
	u := &DigestUsers{service: s, keys: make(map[string]digestKey, len(passwords))}
	for user, password := range passwords {
		u.keys[user] = newDigestKey(user, s.Server, password)
	}
	rand.Read(u.decoy[:]) // never fails
	return u
}

// DigestServer is the server's end of one DIGEST-MD5 exchange.
type DigestServer struct {
	users     *DigestUsers
	authorize Authorize
	nonce     string
	state     digestState
	id        string
}

// digestState is how far an exchange is, at either end.
type digestState int

const (
	digestNew digestState = iota
	digestChallenged
	digestAnswered // only for a client: it waits for one more token
	digestOver
)

var errOver = errors.New("DIGEST-MD5: the exchange is over, so no further token is accepted")

// NewDigestServer returns the server's end of a new exchange. The nonce must never be used
// twice; if it is empty, a random one is made.
func NewDigestServer(users *DigestUsers, authorize Authorize, nonce string) *DigestServer {
	if nonce == "" {
		nonce = newNonce()
	}
	return &DigestServer{users: users, authorize: authorize, nonce: nonce}
}

// Mechanism returns DIGEST-MD5.
func (s *DigestServer) Mechanism() string { return mechanismDigest }

// AuthorizationID returns the client's id, or an empty text before the exchange is done.
func (s *DigestServer) AuthorizationID() string { return s.id }

// Step answers the first token, whatever it contains, with the challenge, and the second token with the
// server's own proof.
func (s *DigestServer) Step(token []byte) (answer []byte, done bool, err error) {
	state := s.state
	s.state = digestOver
	if len(token) > ResponseMax {
		return nil, false, fmt.Errorf("DIGEST-MD5: a token of %d bytes; the limit is %d", len(token), ResponseMax)
	}
	switch state {
	case digestNew:
		s.state = digestChallenged
		return s.challenge(), false, nil
	case digestChallenged:
		answer, err = s.verify(token)
		return answer, err == nil, err
	}
	return nil, false, errOver
}

// challenge returns the challenge in the JDK's form, which has no list of qualities. Without a list the
// quality is auth.
func (s *DigestServer) challenge() []byte {
	b := appendQuoted(nil, "realm", s.users.service.Server)
	b = appendQuoted(append(b, ','), "nonce", s.nonce)
	return append(b, ",charset=utf-8,algorithm=md5-sess"...)
}

// verify checks the client's answer to the challenge.
func (s *DigestServer) verify(token []byte) ([]byte, error) {
	d, err := parseDirectives(token, false)
	if err != nil {
		return nil, err
	}
	if err := s.check(d); err != nil {
		return nil, err
	}
	user := d["username"]
	p := digestProof{nonce: s.nonce, cnonce: d["cnonce"], uri: d["digest-uri"]}
	authzid := user
	if given, ok := d["authzid"]; ok {
		authzid = given
		p.authzid = &given
	}
	// An unknown user costs the same work as a known one, so that the time of the
	// answer does not tell which users there are.
	key, exists := s.users.keys[user]
	if !exists {
		key = s.users.decoy
	}
	proved := subtle.ConstantTimeCompare([]byte(d["response"]), []byte(p.response(key))) == 1
	switch {
	case !exists:
		return nil, fmt.Errorf("DIGEST-MD5: there is no user %s", quoteShort(user))
	case !proved:
		return nil, fmt.Errorf("DIGEST-MD5: wrong password of user %s", quoteShort(user))
	}
	id, err := s.authorize(user, authzid)
	if err != nil {
		return nil, fmt.Errorf("DIGEST-MD5: %w", err)
	}
	s.id = id
	return []byte("rspauth=" + p.rspauth(key)), nil
}

// check refuses an answer that does not belong to the challenge.
func (s *DigestServer) check(d directives) error {
	for _, key := range []string{"username", "realm", "nonce", "cnonce", "digest-uri", "response"} {
		if _, ok := d[key]; !ok {
			return fmt.Errorf("DIGEST-MD5: the answer has no %s", key)
		}
	}
	want := s.users.service
	charset, named := d["charset"]
	switch {
	case named && charset != "utf-8":
		return fmt.Errorf("DIGEST-MD5: charset %s, want utf-8", quoteShort(charset))
	case !utf8.ValidString(d["username"]) || !utf8.ValidString(d["authzid"]):
		return errors.New("DIGEST-MD5: the user name is not UTF-8")
	case d["realm"] != want.Server:
		return fmt.Errorf("DIGEST-MD5: realm %s, want %q", quoteShort(d["realm"]), want.Server)
	case subtle.ConstantTimeCompare([]byte(d["nonce"]), []byte(s.nonce)) != 1:
		return errors.New("DIGEST-MD5: the nonce is not the one of this connection; the token may be a replay")
	case !strings.EqualFold(d["digest-uri"], want.uri()):
		return fmt.Errorf("DIGEST-MD5: digest-uri %s, want %q", quoteShort(d["digest-uri"]), want.uri())
	}
	return checkNumbers(d)
}

// checkNumbers refuses a nonce count other than 1, a quality other than auth, and a buffer
// size that is not a number.
func checkNumbers(d directives) error {
	if nc, ok := d["nc"]; ok {
		if n, err := strconv.ParseUint(nc, 16, 31); err != nil || n != 1 {
			return fmt.Errorf("DIGEST-MD5: nonce count %s, want %s", quoteShort(nc), firstCount)
		}
	}
	if qop, ok := d["qop"]; ok && qop != "auth" {
		return fmt.Errorf("DIGEST-MD5: quality %s; only auth is supported", quoteShort(qop))
	}
	if size, ok := d["maxbuf"]; ok {
		if _, err := strconv.ParseUint(size, 10, 31); err != nil {
			return fmt.Errorf("DIGEST-MD5: maxbuf %s is not a number of bytes", quoteShort(size))
		}
	}
	return nil
}
