package sasl

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// vectors holds what Record.java recorded with the JDK and ZooKeeper 3.8.0.
type vectors struct {
	Users   map[string]string
	Servers []serverVector
	Clients []clientVector
	Names   []nameVector
}

type serverVector struct {
	Name, Challenge, Token, Answer, ID, Error string
}

type clientVector struct {
	Protocol, Server, User, Password, Authzid, Challenge, Token, Error string
}

type nameVector struct {
	Rules, Principal, ID, Error string
	RemoveHost, RemoveRealm     bool
}

func readVectors(t testing.TB) *vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	v := new(vectors)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *vectors) users(s Service) *DigestUsers {
	passwords := map[string]Secret{}
	for user, password := range v.Users {
		passwords[user] = NewSecret(password)
	}
	return NewDigestUsers(s, passwords)
}

func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// field returns a quoted value of a recorded token.
func field(token, key string) string {
	m := regexp.MustCompile(key + `="(.*?)"`).FindStringSubmatch(token)
	if m == nil {
		return ""
	}
	return m[1]
}

var exampleNaming = Naming{DefaultRealm: "EXAMPLE.COM"}

// stricter lists tokens that the JDK accepts and this server refuses. JDK 17 does not check the nonce
// count.
var stricter = map[string]bool{"nc 2": true, "nc not a number": true}

// TestServerAnswersAsTheJDK plays each recorded answer of a client to a server with the recorded nonce.
// The challenge, the decision, the proof and the id must be those of the JDK.
func TestServerAnswersAsTheJDK(t *testing.T) {
	v := readVectors(t)
	users := v.users(ClientService)
	if len(v.Servers) < 60 {
		t.Errorf("%d vectors", len(v.Servers))
	}
	for _, x := range v.Servers {
		t.Run(x.Name, func(t *testing.T) {
			s := NewDigestServer(users, exampleNaming.Authorize, field(x.Challenge, "nonce"))
			challenge, done, err := s.Step([]byte{})
			if string(challenge) != x.Challenge || done || err != nil {
				t.Fatalf("challenge %s, %v, %v; want %s", challenge, done, err, x.Challenge)
			}
			answer, done, err := s.Step(unbase64(t, x.Token))
			if want := x.Error == "" && !stricter[x.Name]; done != want || (err == nil) != want {
				t.Fatalf("%s: done %v, error %v; the JDK's error is %q", unbase64(t, x.Token), done, err, x.Error)
			}
			if err != nil {
				t.Log(err)
			} else if string(answer) != x.Answer || s.AuthorizationID() != x.ID {
				t.Errorf("%s for %q, want %s for %q", answer, s.AuthorizationID(), x.Answer, x.ID)
			}
			if err != nil && s.AuthorizationID() != "" {
				t.Errorf("a refused client has the id %q", s.AuthorizationID())
			}
			if _, done, err := s.Step(unbase64(t, x.Token)); done || err == nil {
				t.Error("the server accepts one token more")
			}
		})
	}
}

// TestClientAnswersAsTheJDK checks that, with the recorded nonces, the client's answer is the same as the
// JDK's, byte for byte, and that the server of this package accepts it.
func TestClientAnswersAsTheJDK(t *testing.T) {
	v := readVectors(t)
	for i, x := range v.Clients {
		t.Run(fmt.Sprint(i, x.User), func(t *testing.T) {
			service := Service{x.Protocol, x.Server}
			want := unbase64(t, x.Token)
			c := NewDigestClient(DigestLogin{Service: service, User: x.User, Password: NewSecret(x.Password), AuthorizationID: x.Authzid,
				Nonce: field(string(want), "cnonce")})
			if token, done, err := c.Step(nil); token == nil || len(token) != 0 || done || err != nil {
				t.Fatalf("first step: %q, %v, %v", token, done, err)
			}
			got, done, err := c.Step([]byte(x.Challenge))
			if !bytes.Equal(got, want) || done || (err == nil) != (x.Error == "") {
				t.Fatalf("%s, %v, %v\nwant %s %s", got, done, err, want, x.Error)
			}
			if err != nil || !strings.Contains(x.Challenge, fmt.Sprintf("realm=%q", x.Server)) {
				return
			}
			s := NewDigestServer(v.users(service), AuthorizePeer(nil), field(x.Challenge, "nonce"))
			if _, _, err := s.Step(nil); err != nil {
				t.Fatal(err)
			}
			proof, done, err := s.Step(got)
			if !done || err != nil || s.AuthorizationID() != x.User {
				t.Fatalf("server: %v, %v, %q", done, err, s.AuthorizationID())
			}
			if token, done, err := c.Step(proof); token != nil || !done || err != nil {
				t.Errorf("last step: %q, %v, %v", token, done, err)
			}
		})
	}
}

// TestNamesAsZooKeeper checks that the rules give each principal the same id as in ZooKeeper.
func TestNamesAsZooKeeper(t *testing.T) {
	v := readVectors(t)
	for _, x := range v.Names {
		t.Run(x.Rules+" "+x.Principal, func(t *testing.T) {
			rules, err := ParseRules(x.Rules)
			n := Naming{rules, "EXAMPLE.COM", x.RemoveHost, x.RemoveRealm}
			id := ""
			if err == nil {
				id, err = n.Authorize(x.Principal, x.Principal)
			}
			if strings.HasPrefix(x.ID, "@") {
				x.ID = x.Principal // an empty short name is not valid here; ZooKeeper accepts it
			}
			if id != x.ID || (err == nil) != (x.Error == "") {
				t.Errorf("%q, %v; want %q, %s", id, err, x.ID, x.Error)
			}
		})
	}
}
