package sasl

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// DigestLogin holds what a client needs for a login.
type DigestLogin struct {
	Service  Service
	User     string
	Password Secret
	// AuthorizationID is the id that the client wants to act as. If it is empty, the
	// client names none. Java's clients and servers name the user.
	AuthorizationID string
	// Nonce is the client's nonce. If it is empty, a random one is made.
	Nonce string
}

// DigestClient is the client's end of one DIGEST-MD5 exchange. It also makes the server
// prove that it knows the password.
type DigestClient struct {
	login DigestLogin
	state digestState
	proof string // what the server must answer
}

// NewDigestClient returns the client's end of a new exchange.
func NewDigestClient(l DigestLogin) *DigestClient {
	if l.Nonce == "" {
		l.Nonce = newNonce()
	}
	return &DigestClient{login: l}
}

// Mechanism returns DIGEST-MD5.
func (c *DigestClient) Mechanism() string { return mechanismDigest }

// Step asks for a challenge, answers it, and verifies the server's proof.
func (c *DigestClient) Step(token []byte) (answer []byte, done bool, err error) {
	state := c.state
	c.state = digestOver
	if len(token) > ChallengeMax {
		return nil, false, fmt.Errorf("DIGEST-MD5: the server's token has %d bytes; the limit is %d", len(token), ChallengeMax)
	}
	switch state {
	case digestNew:
		c.state = digestChallenged
		return []byte{}, false, nil
	case digestChallenged:
		if answer, err = c.respond(token); err == nil {
			c.state = digestAnswered
		}
		return answer, false, err
	case digestAnswered:
		err = c.verify(token)
		return nil, err == nil, err
	}
	return nil, false, errOver
}

// respond answers the challenge in the JDK's form.
func (c *DigestClient) respond(challenge []byte) ([]byte, error) {
	d, err := parseDirectives(challenge, true)
	if err != nil {
		return nil, fmt.Errorf("the server's challenge: %w", err)
	}
	if err := checkChallenge(d); err != nil {
		return nil, err
	}
	l := &c.login
	p := digestProof{nonce: d["nonce"], cnonce: l.Nonce, uri: l.Service.uri()}
	if l.AuthorizationID != "" {
		p.authzid = &l.AuthorizationID
	}
	key := newDigestKey(l.User, d["realm"], l.Password)
	c.proof = p.rspauth(key)

	var b []byte
	if d["charset"] != "" {
		b = append(b, "charset=utf-8,"...)
	} else if !isASCII(l.User) || !isASCII(l.AuthorizationID) {
		return nil, fmt.Errorf("DIGEST-MD5: the server does not support UTF-8, which the user name %q needs", l.User)
	}
	b = appendQuoted(b, "username", l.User)
	if d["realm"] != "" {
		b = appendQuoted(append(b, ','), "realm", d["realm"])
	}
	b = appendQuoted(append(b, ','), "nonce", p.nonce)
	b = append(b, ",nc="+firstCount...)
	b = appendQuoted(append(b, ','), "cnonce", p.cnonce)
	b = appendQuoted(append(b, ','), "digest-uri", p.uri)
	b = append(b, ",maxbuf=65536,response="+p.response(key)+",qop=auth"...)
	if p.authzid != nil {
		b = appendQuoted(append(b, ','), "authzid", l.AuthorizationID)
	}
	if len(b) > ResponseMax {
		return nil, fmt.Errorf("DIGEST-MD5: the answer has %d bytes; servers accept %d", len(b), ResponseMax)
	}
	return b, nil
}

func checkChallenge(d directives) error {
	charset, named := d["charset"]
	qop, offered := d["qop"]
	qualities := strings.FieldsFunc(qop, func(r rune) bool { return strings.ContainsRune(","+blanks, r) })
	switch {
	case d["nonce"] == "":
		return errors.New("DIGEST-MD5: the server's challenge has no nonce")
	case d["algorithm"] != "md5-sess":
		return fmt.Errorf("DIGEST-MD5: the server's algorithm is %s, want md5-sess", quoteShort(d["algorithm"]))
	case named && charset != "utf-8":
		return fmt.Errorf("DIGEST-MD5: the server's charset is %s, want utf-8", quoteShort(charset))
	case offered && !slices.Contains(qualities, "auth"):
		return fmt.Errorf("DIGEST-MD5: the server requires one of the qualities %s; only auth is supported", quoteShort(qop))
	}
	return nil
}

func (c *DigestClient) verify(token []byte) error {
	d, err := parseDirectives(token, false)
	if err != nil {
		return fmt.Errorf("the server's proof: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(d["rspauth"]), []byte(c.proof)) != 1 {
		return errors.New("DIGEST-MD5: the server does not know the password")
	}
	return nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
