package quorumauth

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/sasl"
	"bellwether/wire"
)

// recording is one exchange between two ZooKeeper 3.8.0 servers: the packets of each end.
type recording struct {
	dialler, acceptor []byte
	nonce, cnonce     string
}

// recordings reads the exchanges in the golden file of package peerwire.
func recordings(t testing.TB) []recording {
	t.Helper()
	b, err := os.ReadFile("../../peerwire/testdata/election.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		SASL []struct{ Name, From, Kind, Hex string }
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	var out []recording
	last := ""
	for _, x := range file.SASL {
		if x.Kind != "QuorumAuthPacket" {
			continue
		}
		connection, _, _ := strings.Cut(x.Name[len("sasl/"):], "/")
		if connection != last {
			out, last = append(out, recording{}), connection
		}
		packet, err := hex.DecodeString(x.Hex)
		if err != nil {
			t.Fatal(err)
		}
		r := &out[len(out)-1]
		if x.From == "dialler" {
			r.dialler = append(r.dialler, packet...)
			r.cnonce = quoted(packet, "cnonce", r.cnonce)
		} else {
			r.acceptor = append(r.acceptor, packet...)
			r.nonce = quoted(packet, "nonce", r.nonce)
		}
	}
	if len(out) == 0 {
		t.Fatal("no recording")
	}
	return out
}

func quoted(packet []byte, key, otherwise string) string {
	if m := regexp.MustCompile(`\b` + key + `="(.*?)"`).FindSubmatch(packet); m != nil {
		return string(m[1])
	}
	return otherwise
}

const password = "mypassword"

func acceptor(nonce string) sasl.Acceptor {
	users := sasl.NewDigestUsers(sasl.QuorumService, map[string]sasl.Secret{"test": sasl.NewSecret(password)})
	return sasl.NewDigestServer(users, sasl.AuthorizePeer(nil), nonce)
}

func dialler(password, cnonce string) sasl.Exchange {
	return sasl.NewDigestClient(sasl.DigestLogin{Service: sasl.QuorumService, User: "test", Password: sasl.NewSecret(password), AuthorizationID: "test", Nonce: cnonce})
}

func reader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

// TestExchangesOfZooKeeper plays each end of the recorded exchanges: with the recorded nonces
// every byte is the same.
func TestExchangesOfZooKeeper(t *testing.T) {
	for _, x := range recordings(t) {
		var out bytes.Buffer
		id, err := Accept(reader(x.dialler), &out, acceptor(x.nonce))
		if id != "test" || err != nil || !bytes.Equal(out.Bytes(), x.acceptor) {
			t.Errorf("acceptor: %q, %v, %x", id, err, out.Bytes())
		}
		out.Reset()
		if err := Dial(reader(x.acceptor), &out, dialler(password, x.cnonce)); err != nil || !bytes.Equal(out.Bytes(), x.dialler) {
			t.Errorf("dialler: %v, %x", err, out.Bytes())
		}
	}
}

// between runs both ends over a connection.
func between(x sasl.Exchange, a sasl.Acceptor) (id string, dial, accept error) {
	near, far := net.Pipe()
	dialled := make(chan error, 1) // one result
	go func() {
		dialled <- Dial(bufio.NewReader(near), near, x)
		near.Close()
	}()
	id, accept = Accept(bufio.NewReader(far), far, a)
	far.Close()
	return id, <-dialled, accept
}

func TestBothEnds(t *testing.T) {
	if id, dial, accept := between(dialler(password, ""), acceptor("")); id != "test" || dial != nil || accept != nil {
		t.Errorf("%q, %v, %v", id, dial, accept)
	}
	id, dial, accept := between(dialler("guess", ""), acceptor(""))
	if id != "" || !errors.Is(dial, ErrRefused) || accept == nil || !strings.Contains(accept.Error(), `wrong password of user "test"`) {
		t.Errorf("a wrong password: %q, %v, %v", id, dial, accept)
	}
}

// TestPeerThatOffersNothing checks that the first bytes of a peer that begins no exchange are not
// consumed.
func TestPeerThatOffersNothing(t *testing.T) {
	r := reader([]byte("\xff\xff\xff\xff\xff\xff\x00\x00hello"))
	var out bytes.Buffer
	if id, err := Accept(r, &out, acceptor("")); id != "" || !errors.Is(err, ErrNotOffered) || out.Len() != 0 {
		t.Errorf("%q, %v, %x", id, err, out.Bytes())
	}
	if rest, err := io.ReadAll(r); len(rest) != 13 || err != nil {
		t.Errorf("%x is left", rest)
	}
	if _, err := Accept(reader([]byte("\xff\xff")), &out, acceptor("")); !errors.Is(err, io.EOF) {
		t.Errorf("a connection that ends: %v", err)
	}
}

// endless is an exchange that never ends.
type endless struct{ steps int }

func (*endless) Mechanism() string       { return "ENDLESS" }
func (*endless) AuthorizationID() string { return "" }

func (e *endless) Step([]byte) ([]byte, bool, error) {
	e.steps++
	return []byte("again"), false, nil
}

// TestEndlessExchange checks that both ends stop an exchange that does not end, the acceptor after
// five challenges, as ZooKeeper does.
func TestEndlessExchange(t *testing.T) {
	a := &endless{}
	id, dial, accept := between(&endless{}, a)
	if id != "" || !errors.Is(dial, ErrRefused) || accept == nil || a.steps != RoundsMax+1 {
		t.Errorf("%q, %v, %v after %d steps", id, dial, accept, a.steps)
	}
	again := wire.Append(nil, &peerwire.QuorumAuthPacket{Token: []byte("again")})
	if err := Dial(reader(bytes.Repeat(again, 100)), io.Discard, &endless{}); err == nil {
		t.Error("the dialler believes an endless acceptor")
	}
}

func packets(list ...peerwire.QuorumAuthPacket) []byte {
	var b []byte
	for _, p := range list {
		b = wire.Append(b, &p)
	}
	return b
}

// TestAcceptorRefuses lists what a peer that dialled must not send. The answer is an error with
// an empty token.
func TestAcceptorRefuses(t *testing.T) {
	refusal := packets(peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthError, Token: []byte{}})
	first := peerwire.QuorumAuthPacket{Token: []byte{}}
	for name, in := range map[string][]byte{
		"no token":        packets(peerwire.QuorumAuthPacket{}),
		"success":         packets(peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthSuccess, Token: []byte{}}),
		"error":           packets(first, peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthError, Token: []byte{}}),
		"cut":             packets(first)[:12],
		"cut later":       append(packets(first), packets(first)[:15]...),
		"other magic":     append(packets(first), 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"too long":        append(packets(first)[:12], 0, 2, 0, 0),
		"negative length": append(packets(first)[:12], 0xff, 0xff, 0xff, 0xfe),
		"too long for":    packets(first, peerwire.QuorumAuthPacket{Token: make([]byte, sasl.ResponseMax+1)}),
		"without proof":   packets(first, first),
	} {
		var out bytes.Buffer
		id, err := Accept(reader(in), &out, acceptor(""))
		if id != "" || err == nil || !bytes.HasSuffix(out.Bytes(), refusal) {
			t.Errorf("%s: %q, %v, %x", name, id, err, out.Bytes())
		}
	}
}

// TestDiallerRefuses lists answers by which an acceptor does not prove that it knows the
// password.
func TestDiallerRefuses(t *testing.T) {
	x := recordings(t)[0]
	challenge := x.acceptor[:bytes.LastIndex(x.acceptor, x.acceptor[:8])]
	for name, in := range map[string][]byte{
		"success at once":    packets(peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthSuccess, Token: []byte{}}),
		"success, no token":  packets(peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthSuccess}),
		"no token":           packets(peerwire.QuorumAuthPacket{}),
		"success, challenge": append(packets(peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthSuccess})[:12], challenge[12:]...),
		"no proof":           append(bytes.Clone(challenge), packets(peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthSuccess})...),
		"wrong proof":        append(bytes.Clone(challenge), packets(peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthSuccess, Token: []byte("rspauth=00")})...),
		"proof, no success":  append(bytes.Clone(challenge), packets(peerwire.QuorumAuthPacket{Token: []byte(`rspauth=688a3423d1c05b98cace04f78d7a4bd2`)})...),
		"refusal":            packets(peerwire.QuorumAuthPacket{Status: peerwire.QuorumAuthError, Token: []byte{}}),
		"cut":                challenge[:20],
		"nothing":            nil,
		"other magic":        make([]byte, 16),
		"other status":       append(bytes.Clone(challenge[:8]), 0, 0, 0, 2, 0, 0, 0, 0),
	} {
		if err := Dial(reader(in), io.Discard, dialler(password, x.cnonce)); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			t.Log(name+":", err)
		}
	}
}

// TestWriteErrors checks that a write error ends the exchange.
func TestWriteErrors(t *testing.T) {
	x := recordings(t)[0]
	r, w := io.Pipe()
	r.Close()
	if _, err := Accept(reader(x.dialler), w, acceptor(x.nonce)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if err := Dial(reader(x.acceptor), w, dialler(password, x.cnonce)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// FuzzExchange checks that bytes from a peer can only lead to an error, and that no end accepts
// a peer that does not know the password.
func FuzzExchange(f *testing.F) {
	for _, x := range recordings(f) {
		f.Add(x.dialler)
		f.Add(x.acceptor)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if id, err := Accept(reader(in), io.Discard, acceptor("")); id != "" || err == nil {
			t.Errorf("accepted as %q", id)
		}
		if err := Dial(reader(in), io.Discard, dialler(password, "")); err == nil {
			t.Error("accepted")
		}
	})
}
