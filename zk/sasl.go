package zk

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"strings"

	"bellwether/wire"
)

// saslStepsMax bounds an exchange; the longest mechanism in use needs four.
const saslStepsMax = 16

// exchangeSASL carries out the SASL exchange on a new connection, before
// anything else is sent there.
func (c *Client) exchangeSASL(ctx context.Context, l *link) error {
	if c.opt.SASL == nil {
		return nil
	}
	x, err := c.opt.SASL(ctx, net.JoinHostPort(l.address.name, l.address.port))
	if err != nil {
		return fmt.Errorf("SASL: %w", err)
	}
	var challenge []byte
	for range saslStepsMax {
		token, done, err := x.Step(challenge)
		switch {
		case err != nil:
			return &credentialError{"sasl", err}
		case done && token == nil:
			return nil
		}
		over := false
		if challenge, over, err = c.saslRound(l, token); err != nil || done {
			return err
		}
		if over {
			return &credentialError{"sasl", errors.New("the server ended the exchange early; is SASL configured there?")}
		}
	}
	return &credentialError{"sasl", fmt.Errorf("the exchange did not end within %d steps", saslStepsMax)}
}

// saslRound sends one token and returns the server's.
func (c *Client) saslRound(l *link, token []byte) (challenge []byte, over bool, err error) {
	if token == nil {
		token = []byte{} // null would cut the connection
	}
	c.mu.Lock()
	h := wire.RequestHeader{Xid: c.nextXid(), Op: wire.OpSASL}
	c.mu.Unlock()
	if _, err := l.conn.Write(wire.AppendFrame(nil, &h, &wire.SASLRequest{Token: token})); err != nil {
		return nil, false, err
	}
	frame, err := wire.ReadFrame(l.r, nil, smallFrameMax)
	if err != nil {
		return nil, false, err
	}
	d := wire.Decoder(frame)
	var rh wire.ReplyHeader
	rh.Code(&d)
	switch {
	case d.Err() != nil || rh.Xid != h.Xid:
		return nil, false, protocolErrorf("answer to xid %d in place of a SASL token", rh.Xid)
	case rh.Err != wire.OK:
		return nil, false, &credentialError{"sasl", rh.Err}
	}
	var resp wire.SASLResponse
	if resp.Code(&d); d.Err() != nil {
		return nil, false, protocolErrorf("SASL token: %v", d.Err())
	}
	return resp.Token, resp.Token == nil, nil
}

// DigestMD5 returns a value for Options.SASL: the mechanism DIGEST-MD5 (RFC 2831) for
// the service zookeeper. The server also proves that it knows the password.
func DigestMD5(user, password string) func(ctx context.Context, server string) (SASL, error) {
	return func(context.Context, string) (SASL, error) {
		return &digestMD5{user: user, password: password, cnonce: rand.Text()}, nil
	}
}

// digestURI names the service and the server as ZooKeeper does.
const digestURI = "zookeeper/zk-sasl-md5"

type digestMD5 struct {
	user, password, cnonce string
	step                   int
	proof                  string // what the server must answer
}

func (d *digestMD5) Step(challenge []byte) ([]byte, bool, error) {
	d.step++
	switch d.step {
	case 1:
		return []byte{}, false, nil
	case 2:
		token, err := d.respond(challenge)
		return token, false, err
	}
	fields := parseDigest(string(challenge))
	if subtle.ConstantTimeCompare([]byte(fields["rspauth"]), []byte(d.proof)) != 1 {
		return nil, false, errors.New("the server does not know the password")
	}
	return nil, true, nil
}

func (d *digestMD5) respond(challenge []byte) ([]byte, error) {
	f := parseDigest(string(challenge))
	if f["nonce"] == "" || f["algorithm"] != "md5-sess" {
		return nil, fmt.Errorf("challenge %q does not belong to DIGEST-MD5", challenge)
	}
	x := wire.DigestMD5{
		Username: d.user, Password: d.password, Realm: f["realm"],
		Nonce: f["nonce"], Cnonce: d.cnonce, Count: "00000001", URI: digestURI,
	}
	d.proof = x.Rspauth()
	return fmt.Appendf(nil, `charset=utf-8,username=%s,realm=%s,nonce=%s,nc=%s,cnonce=%s,digest-uri=%s,maxbuf=65536,response=%s,qop=auth`,
		quoteDigest(x.Username), quoteDigest(x.Realm), quoteDigest(x.Nonce), x.Count, quoteDigest(x.Cnonce), quoteDigest(x.URI), x.Response()), nil
}

func quoteDigest(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// parseDigest reads key=value and key="value" pairs separated by commas.
func parseDigest(s string) map[string]string {
	out := make(map[string]string)
	for s != "" {
		key, rest, ok := strings.Cut(s, "=")
		if !ok {
			break
		}
		var value string
		value, s = digestValue(rest)
		out[strings.TrimSpace(key)] = value
		s = strings.TrimLeft(s, ", ")
	}
	return out
}

// digestValue takes one value off the front of s.
func digestValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, ",")
		return value, rest
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}
