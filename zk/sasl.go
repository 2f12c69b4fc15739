package zk

import (
	"context"
	"errors"
	"fmt"

	"bellwether/internal/sasl"
	"bellwether/wire"
)

// saslStepsMax bounds an exchange; the longest mechanism in use needs four.
const saslStepsMax = 16

// beginSASL begins the login, if the options ask for one. It is called before the client
// asks for a session, so that a login that cannot begin leaves no session at the server.
func (c *Client) beginSASL(ctx context.Context, l *link) (Exchange, error) {
	if c.opt.SASL == nil {
		return nil, nil
	}
	x, err := c.opt.SASL(ctx, l.address.server())
	if err != nil {
		return nil, fmt.Errorf("SASL: the login cannot begin: %w", err)
	}
	return x, nil
}

// exchangeSASL carries out the login on a connection that has a session, before anything
// else is sent there.
func (c *Client) exchangeSASL(l *link, x Exchange) error {
	if x == nil {
		return nil
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

// saslRound sends one token and returns the token with which the server answers. over says
// that the server has ended the exchange.
func (c *Client) saslRound(l *link, token []byte) (challenge []byte, over bool, err error) {
	if token == nil {
		token = []byte{} // the server closes the connection if the token is null
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
		return nil, false, &credentialError{"sasl", fmt.Errorf("the server refuses the login, and its log says why: %w", rh.Err)}
	}
	var resp wire.SASLResponse
	if resp.Code(&d); d.Err() != nil {
		return nil, false, protocolErrorf("SASL token: %v", d.Err())
	}
	return resp.Token, resp.Token == nil, nil
}

// DigestMD5 logs in with a user name and a password, by the mechanism DIGEST-MD5 (RFC
// 2831). The password is not sent, and the server also proves that it knows it.
func DigestMD5(user, password string) Mechanism {
	login := sasl.DigestLogin{Service: sasl.ClientService, User: user, Password: sasl.NewSecret(password)}
	return func(context.Context, Server) (Exchange, error) {
		return sasl.NewDigestClient(login), nil
	}
}
