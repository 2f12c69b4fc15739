package sasl

import (
	"errors"
	"strings"
	"testing"
)

// exchange runs both ends until one of them is done or fails, and returns the error of each end.
func exchange(c Exchange, s Acceptor) (client, server error) {
	token, _, err := c.Step(nil)
	for range 10 {
		if err != nil {
			return err, nil
		}
		answer, served, serr := s.Step(token)
		if serr != nil {
			return nil, serr
		}
		var done bool
		token, done, err = c.Step(answer)
		if served || done {
			return err, nil
		}
	}
	return errors.New("endless"), nil
}

func login(user, password string) DigestLogin {
	return DigestLogin{Service: ClientService, User: user, Password: NewSecret(password)}
}

var noRule = (&Naming{}).Authorize

// TestDigestExchange checks that both ends of this package accept each other, with random nonces.
func TestDigestExchange(t *testing.T) {
	users := readVectors(t).users(ClientService)
	for user, password := range readVectors(t).Users {
		s := NewDigestServer(users, noRule, "")
		if c, e := exchange(NewDigestClient(login(user, password)), s); c != nil || e != nil || s.AuthorizationID() != user {
			t.Errorf("%s: %v, %v, id %q", user, c, e, s.AuthorizationID())
		}
		s = NewDigestServer(users, noRule, "")
		if _, err := exchange(NewDigestClient(login(user, password+"x")), s); err == nil || s.AuthorizationID() != "" {
			t.Errorf("%s: a wrong password is accepted", user)
		}
	}
}

// TestAnswerCannotBeReplayed checks that an answer that one connection has accepted is refused by another
// connection, and by the same one.
func TestAnswerCannotBeReplayed(t *testing.T) {
	users := readVectors(t).users(ClientService)
	first := NewDigestServer(users, noRule, "")
	challenge, _, _ := first.Step(nil)
	c := NewDigestClient(login("bob", "bobsecret"))
	c.Step(nil)
	token, _, err := c.Step(challenge)
	if err != nil {
		t.Fatal(err)
	}
	if _, done, err := first.Step(token); !done || err != nil {
		t.Fatal(err)
	}
	second := NewDigestServer(users, noRule, "")
	second.Step(nil)
	for name, s := range map[string]*DigestServer{"same": first, "another": second} {
		if _, done, err := s.Step(token); done || err == nil {
			t.Errorf("%s connection accepts the token again", name)
		}
	}
}

// TestErrorEndsTheServersExchange checks that after a refused answer the server does not accept the right
// answer either.
func TestErrorEndsTheServersExchange(t *testing.T) {
	s := NewDigestServer(readVectors(t).users(ClientService), noRule, "")
	challenge, _, _ := s.Step(nil)
	c := NewDigestClient(login("bob", "bobsecret"))
	c.Step(nil)
	token, _, _ := c.Step(challenge)
	if _, _, err := s.Step([]byte("username=bob")); err == nil {
		t.Error("an answer without a proof is accepted")
	}
	if _, done, err := s.Step(token); done || err == nil {
		t.Error("the server gives a second try")
	}
}

// TestUnknownUserIsAskedForAProof checks that the exchange ends in the same way for unknown users and for
// wrong passwords, so that a client cannot find out which users exist. The log names the user.
func TestUnknownUserIsAskedForAProof(t *testing.T) {
	users := readVectors(t).users(ClientService)
	for user, want := range map[string]string{"mallory": `there is no user "mallory"`, "bob": `wrong password of user "bob"`} {
		_, err := exchange(NewDigestClient(login(user, "guess")), NewDigestServer(users, noRule, ""))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// TestClientVerifiesTheServer checks that a server that does not know the password cannot pretend to know
// it.
func TestClientVerifiesTheServer(t *testing.T) {
	challenge := []byte(`realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`)
	for _, proof := range []string{"rspauth=00", "", "rspauth=", "x", `rspauth="`, "rspauth=00,rspauth=01", "rspauth=" + strings.Repeat("0", ChallengeMax)} {
		c := NewDigestClient(login("bob", "bobsecret"))
		c.Step(nil)
		if _, _, err := c.Step(challenge); err != nil {
			t.Fatal(err)
		}
		if _, done, err := c.Step([]byte(proof)); done || err == nil {
			t.Errorf("the proof %q is accepted", proof)
		}
		if _, done, err := c.Step([]byte(proof)); done || err == nil {
			t.Errorf("after the proof %q the exchange goes on", proof)
		}
	}
}

// TestClientRefuses lists challenges that a client does not answer, and logins that a
// server would not understand.
func TestClientRefuses(t *testing.T) {
	usual := `realm="zk-sasl-md5",nonce="n",charset=utf-8,algorithm=md5-sess`
	for _, x := range []struct{ user, challenge, want string }{
		{"bob", "", "no nonce"},
		{"bob", "x", `"x" has no value`},
		{"bob", `nonce="",algorithm=md5-sess`, "no nonce"},
		{"bob", `nonce="n",algorithm=md5`, `algorithm is "md5"`},
		{"bob", usual + `,qop="auth-int"`, "only auth is supported"},
		{"bob", usual + `,nonce="m"`, "more than one nonce"},
		{"bob", strings.Replace(usual, "utf-8", "x", 1), `charset is "x"`},
		{"é", strings.Replace(usual, "charset=utf-8,", "", 1), "does not support UTF-8"},
		{strings.Repeat("x", ResponseMax), usual, "servers accept 4096"},
		{"bob", strings.Repeat("x", ChallengeMax+1), "the limit is 2048"},
	} {
		c := NewDigestClient(login(x.user, "p"))
		c.Step(nil)
		if token, done, err := c.Step([]byte(x.challenge)); token != nil || done || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%.80q is answered with %.80q, %v; want an error with %q", x.challenge, token, err, x.want)
		}
	}
}

// TestFirstOfSeveralRealmsIsChosen checks a challenge that offers several realms.
func TestFirstOfSeveralRealmsIsChosen(t *testing.T) {
	c := NewDigestClient(login("bob", "p"))
	c.Step(nil)
	token, _, err := c.Step([]byte(`realm="one",realm="two",nonce="n",charset=utf-8,algorithm=md5-sess`))
	if err != nil || !strings.Contains(string(token), `realm="one"`) {
		t.Errorf("%s, %v", token, err)
	}
}

// TestErrorsQuoteLittle checks that text from the other end does not fill the log, and cannot add lines
// to it.
func TestErrorsQuoteLittle(t *testing.T) {
	for _, token := range []string{"color=" + `"` + strings.Repeat("x", 4000), strings.Repeat("k", 4000), `username="` + strings.Repeat("\n", 4000) + `"`,
		"charset=" + strings.Repeat("y", 4000), "\x1b[2J=\x1b"} {
		s := NewDigestServer(NewDigestUsers(ClientService, nil), noRule, "")
		s.Step(nil)
		_, _, err := s.Step([]byte(token))
		if err == nil || len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%.40q: %v", token, err)
		}
	}
}

// FuzzServer checks that a token can only lead to an error, and that none is accepted, because the fuzzer
// knows no password of the server.
func FuzzServer(f *testing.F) {
	v := readVectors(f)
	for _, x := range v.Servers {
		f.Add(unbase64(f, x.Token))
	}
	users := v.users(ClientService)
	f.Fuzz(func(t *testing.T, token []byte) {
		s := NewDigestServer(users, noRule, "")
		s.Step(token)
		if answer, done, err := s.Step(token); done || err == nil || answer != nil || s.AuthorizationID() != "" {
			t.Errorf("%q is accepted", token)
		}
	})
}

// FuzzClient checks that a server's tokens can only lead to an error, and that the client never believes
// that the server knows the password. The client's answers can be parsed again, and name the same user.
func FuzzClient(f *testing.F) {
	v := readVectors(f)
	for _, x := range v.Clients {
		f.Add(x.User, []byte(x.Challenge), []byte("rspauth=00"))
	}
	f.Fuzz(func(t *testing.T, user string, challenge, proof []byte) {
		c := NewDigestClient(login(user, "bobsecret"))
		c.Step(nil)
		token, _, err := c.Step(challenge)
		if err != nil {
			return
		}
		d, err := parseDirectives(token, false)
		if err != nil || d["username"] != user || d["cnonce"] != c.login.Nonce {
			t.Errorf("%q reads back as %q, %v", token, d, err)
		}
		if _, done, err := c.Step(proof); done || err == nil {
			t.Errorf("the proof %q is accepted", proof)
		}
	})
}
