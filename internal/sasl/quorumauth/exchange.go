package quorumauth

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"bellwether/internal/peerwire"
	"bellwether/internal/sasl"
	"bellwether/wire"
)

// RoundsMax is how many challenges an acceptor sends before it gives up.
const RoundsMax = 5

// Errors of an exchange. After ErrNotOffered the connection is as it was before; after each
// other error it is of no use.
var (
	// ErrNotOffered says that the peer does not begin an exchange.
	ErrNotOffered = errors.New("the peer does not authenticate itself: set quorum.auth.enableSasl and quorum.auth.learnerRequireSasl on it")
	// ErrRefused says that the acceptor does not accept the login.
	ErrRefused = errors.New("the peer refuses the login: compare the section of the learner in the JAAS file with that of the server on the peer")
)

// Accept authenticates the peer that dialled and returns the id that it has proved. It waits for
// the first 8 bytes, and leaves them in r if they do not begin an exchange.
func Accept(r *bufio.Reader, w io.Writer, a sasl.Acceptor) (id string, err error) {
	switch begins, err := offered(r); {
	case err != nil:
		return "", fmt.Errorf("quorum SASL: wait for the peer: %w", err)
	case !begins:
		return "", ErrNotOffered
	}
	for round := 0; ; round++ {
		token, err := receiveAnswer(r)
		if err != nil {
			return "", refuse(w, nil, err)
		}
		answer, done, err := a.Step(token)
		switch {
		case err != nil:
			return "", refuse(w, nil, err)
		case done:
			return a.AuthorizationID(), send(w, peerwire.QuorumAuthSuccess, answer)
		case round == RoundsMax:
			return "", refuse(w, answer, fmt.Errorf("the exchange did not end within %d rounds", RoundsMax))
		}
		if err := send(w, peerwire.QuorumAuthInProgress, answer); err != nil {
			return "", err
		}
	}
}

// Offered reports whether the peer that dialled begins an exchange. It waits for the first 8
// bytes, and leaves them in r. A peer that sends fewer begins none.
func Offered(r *bufio.Reader) bool {
	begins, err := offered(r)
	return begins && err == nil
}

func offered(r *bufio.Reader) (bool, error) {
	begin, err := r.Peek(8)
	return err == nil && int64(binary.BigEndian.Uint64(begin)) == peerwire.QuorumAuthMagic, err
}

// receiveAnswer reads the token of the peer that dialled.
func receiveAnswer(r *bufio.Reader) ([]byte, error) {
	p, err := receive(r)
	switch {
	case err != nil:
		return nil, err
	case p.Status != peerwire.QuorumAuthInProgress:
		return nil, fmt.Errorf("the peer that dialled sent the status %d", p.Status)
	case p.Token == nil:
		return nil, errors.New("the peer that dialled sent no token")
	}
	return p.Token, nil
}

// refuse tells the peer that it is refused, and returns the reason. A peer that cannot be told
// learns of the refusal when the connection ends.
func refuse(w io.Writer, token []byte, why error) error {
	if token == nil {
		token = []byte{}
	}
	_ = send(w, peerwire.QuorumAuthError, token)
	return fmt.Errorf("quorum SASL: %w", why)
}

// Dial authenticates this server at the peer that it has dialled.
func Dial(r *bufio.Reader, w io.Writer, x sasl.Exchange) error {
	token, done, err := x.Step(nil)
	for range RoundsMax + 2 {
		if err != nil {
			return fmt.Errorf("quorum SASL: %w", err)
		}
		if err := send(w, peerwire.QuorumAuthInProgress, token); err != nil {
			return err
		}
		p, err := receive(r)
		switch {
		case err != nil:
			return fmt.Errorf("quorum SASL: %w", err)
		case p.Status == peerwire.QuorumAuthError:
			return ErrRefused
		case p.Status == peerwire.QuorumAuthSuccess && done:
			return nil
		case done:
			return errors.New("quorum SASL: the peer wants one more token after the last")
		case p.Token == nil:
			return errors.New("quorum SASL: the peer sent no token")
		}
		if token, done, err = x.Step(p.Token); err != nil {
			return fmt.Errorf("quorum SASL: %w", err)
		}
		verified := done && token == nil
		switch over := p.Status == peerwire.QuorumAuthSuccess; {
		case verified && over:
			return nil
		case over:
			return errors.New("quorum SASL: the peer ended the exchange before it proved who it is")
		case verified:
			return errors.New("quorum SASL: the peer wants one more token after the last")
		}
	}
	return fmt.Errorf("quorum SASL: the exchange did not end within %d rounds", RoundsMax+2)
}

func receive(r *bufio.Reader) (*peerwire.QuorumAuthPacket, error) {
	p := new(peerwire.QuorumAuthPacket)
	if err := wire.ReadRecord(r, p, peerwire.QuorumAuthMax); err != nil {
		return nil, fmt.Errorf("read from the peer: %w", err)
	}
	return p, nil
}

func send(w io.Writer, status peerwire.QuorumAuthStatus, token []byte) error {
	if _, err := w.Write(wire.Append(nil, &peerwire.QuorumAuthPacket{Status: status, Token: token})); err != nil {
		return fmt.Errorf("quorum SASL: write to the peer: %w", err)
	}
	return nil
}
