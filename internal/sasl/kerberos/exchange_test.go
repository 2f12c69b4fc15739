package kerberos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"bellwether/internal/sasl"
)

const (
	testRealm   = "EXAMPLE.COM"
	serviceName = "zookeeper/host.example.com"
)

// realm plays a KDC without a network. It knows the key of a service and makes tickets for the service.
type realm struct {
	keys    *keytab.Keytab
	path    string
	service *Service
	etype   int32
}

func newRealm(t testing.TB, etype int32) *realm {
	t.Helper()
	r := &realm{keys: keytab.New(), path: filepath.Join(t.TempDir(), "keytab"), etype: etype}
	if err := r.keys.AddEntry(serviceName, testRealm, "service password", time.Now(), 1, etype); err != nil {
		t.Fatal(err)
	}
	r.write(t)
	s, err := NewService(serviceName+"@"+testRealm, r.path)
	if err != nil {
		t.Fatal(err)
	}
	r.service = s
	return r
}

func (r *realm) write(t testing.TB) {
	t.Helper()
	b, err := r.keys.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// initiator returns a client with a ticket that is valid from begin to end, both counted from now.
func (r *realm) initiator(t testing.TB, service string, begin, end time.Duration) *initiator {
	t.Helper()
	name := types.NewPrincipalName(1, "bob")
	now := time.Now().UTC()
	ticket, key, err := messages.NewTicket(name, testRealm, types.NewPrincipalName(2, service), testRealm, types.NewKrbFlags(), r.keys, r.etype, 1,
		now.Add(begin), now.Add(begin), now.Add(end), now.Add(end))
	if err != nil {
		t.Fatal(err)
	}
	return &initiator{ticket: ticket, key: key, name: name, realm: testRealm}
}

func (r *realm) acceptor(t testing.TB) sasl.Acceptor {
	t.Helper()
	a, err := r.service.Accept((&sasl.Naming{DefaultRealm: testRealm, RemoveRealm: true}).Authorize)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// run plays an exchange to its end.
func run(c sasl.Exchange, a sasl.Acceptor) error {
	token, _, err := c.Step(nil)
	for range 5 {
		if err != nil {
			return err
		}
		answer, done, err := a.Step(token)
		if err != nil || done {
			return err
		}
		if token, _, err = c.Step(answer); err != nil {
			return err
		}
	}
	return errors.New("endless")
}

// etypes are the types of keys that the tests use. Type 20 is missing because gokrb5 makes session keys
// of a wrong size for it. A KDC makes them correctly, and the tests with a KDC use that type.
var etypes = []int32{etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128}

// TestBothEnds checks that a client with a ticket is accepted under its name, with each type of key.
func TestBothEnds(t *testing.T) {
	for _, e := range etypes {
		r := newRealm(t, e)
		a := r.acceptor(t)
		if err := run(r.initiator(t, serviceName, -time.Minute, time.Hour), a); err != nil || a.AuthorizationID() != "bob" {
			t.Errorf("type %d: %v, id %q", e, err, a.AuthorizationID())
		}
		if _, done, err := a.Step(nil); done || err == nil {
			t.Errorf("type %d: a finished exchange goes on", e)
		}
	}
}

// TestTicketsThatAreRefused checks that the error says what is wrong with the ticket.
func TestTicketsThatAreRefused(t *testing.T) {
	r := newRealm(t, etypes[1])
	if err := r.keys.AddEntry("other/host.example.com", testRealm, "x", time.Now(), 1, r.etype); err != nil {
		t.Fatal(err)
	}
	r.write(t)
	other := newRealm(t, etypes[1])
	other.keys = keytab.New()
	if err := other.keys.AddEntry(serviceName, testRealm, "another password", time.Now(), 1, r.etype); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		client *initiator
		want   string
	}{
		"expired":         {r.initiator(t, serviceName, -2*time.Hour, -time.Hour), "expired"},
		"not yet valid":   {r.initiator(t, serviceName, time.Hour, 2*time.Hour), "not yet valid"},
		"another service": {r.initiator(t, "other/host.example.com", -time.Minute, time.Hour), `the ticket is for "other/host.example.com"`},
		"another key":     {other.initiator(t, serviceName, -time.Minute, time.Hour), "decrypt"},
	} {
		a := r.acceptor(t)
		err := run(x.client, a)
		if err == nil || !strings.Contains(err.Error(), x.want) || a.AuthorizationID() != "" {
			t.Errorf("%s: %v, id %q", name, err, a.AuthorizationID())
		}
	}
}

// forge makes a first token in which the authenticator was changed.
func forge(t *testing.T, c *initiator, change func(*types.Authenticator)) []byte {
	t.Helper()
	a, err := types.NewAuthenticator(c.realm, c.name)
	if err != nil {
		t.Fatal(err)
	}
	flags := make([]byte, 24)
	flags[0] = 16
	a.Cksum = types.Checksum{CksumType: 0x8003, Checksum: flags}
	change(&a)
	c.sequence = uint64(a.SeqNumber)
	q, err := messages.NewAPReq(c.ticket, c.key, a)
	if err != nil {
		t.Fatal(err)
	}
	b, err := q.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return appendToken(nil, idRequest, b)
}

// TestAuthenticatorsThatAreRefused checks that the owner of a ticket cannot log in as another user, and
// cannot log in with a clock that differs too much.
func TestAuthenticatorsThatAreRefused(t *testing.T) {
	r := newRealm(t, etypes[1])
	for name, x := range map[string]struct {
		change func(*types.Authenticator)
		want   string
	}{
		"another name":  {func(a *types.Authenticator) { a.CName.NameString = []string{"super"} }, "CName"},
		"no name":       {func(a *types.Authenticator) { a.CName.NameString = nil }, "CName"},
		"another realm": {func(a *types.Authenticator) { a.CRealm = "OTHER.ORG" }, "realm"},
		"clock behind":  {func(a *types.Authenticator) { a.CTime = a.CTime.Add(-time.Hour) }, "skew"},
		"clock ahead":   {func(a *types.Authenticator) { a.CTime = a.CTime.Add(time.Hour) }, "skew"},
		"no flags":      {func(a *types.Authenticator) { a.Cksum.Checksum = nil }, "no flags"},
		"short flags":   {func(a *types.Authenticator) { a.Cksum.Checksum = a.Cksum.Checksum[:20] }, "no flags"},
		"a checksum":    {func(a *types.Authenticator) { a.Cksum.CksumType = 7 }, "no flags"},
		"weak subkey":   {func(a *types.Authenticator) { a.SubKey = types.EncryptionKey{KeyType: 23, KeyValue: make([]byte, 16)} }, "encryption type 23"},
		"short subkey":  {func(a *types.Authenticator) { a.SubKey = types.EncryptionKey{KeyType: 18, KeyValue: []byte{1}} }, ""},
	} {
		a := r.acceptor(t)
		_, done, err := a.Step(forge(t, r.initiator(t, serviceName, -time.Minute, time.Hour), x.change))
		if done || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplayIsRefused checks that a service accepts a request only once, on all its connections together.
func TestReplayIsRefused(t *testing.T) {
	r := newRealm(t, etypes[1])
	token, _, err := r.initiator(t, serviceName, -time.Minute, time.Hour).Step(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.acceptor(t).Step(token); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.acceptor(t).Step(token); err == nil || !strings.Contains(err.Error(), "replay") {
		t.Error(err)
	}
}

// TestReplaysAreForgotten checks that a service forgets a use of a ticket once the clock check alone
// would refuse a replay.
func TestReplaysAreForgotten(t *testing.T) {
	r := newRealm(t, etypes[1])
	s, now := r.service, time.Now()
	for i := range 10 {
		if err := s.first([]byte{byte(i)}, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.first([]byte("later"), now.Add(2*SkewMax+time.Second)); err != nil || len(s.replays) != 1 {
		t.Errorf("%v, %d are remembered", err, len(s.replays))
	}
}

// TestProofForTheClient checks a client that asks for a proof: it gets an AP-REP with the time that it
// sent, and then the offer. The subkey that it proposes is used.
func TestProofForTheClient(t *testing.T) {
	r := newRealm(t, etypes[1])
	c := r.initiator(t, serviceName, -time.Minute, time.Hour)
	var sent types.Authenticator
	token := forge(t, c, func(a *types.Authenticator) {
		binary.LittleEndian.PutUint32(a.Cksum.Checksum[20:], flagMutual|flagIntegrity)
		if err := a.GenerateSeqNumberAndSubKey(r.etype, 32); err != nil {
			t.Fatal(err)
		}
		sent = *a
	})
	a := r.acceptor(t)
	answer, done, err := a.Step(token)
	if err != nil || done {
		t.Fatal(done, err)
	}
	id, message, err := parseToken(answer)
	var reply messages.APRep
	if err != nil || id != idReply {
		t.Fatal(id, err)
	}
	if err := reply.Unmarshal(message); err != nil {
		t.Fatal(err)
	}
	b, err := crypto.DecryptEncPart(reply.EncPart, c.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		t.Fatal(err)
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(b); err != nil || part.CTime.Unix() != sent.CTime.Unix() || part.Cusec != sent.Cusec || part.SequenceNumber != sent.SeqNumber {
		t.Errorf("%+v, %v; sent %v", part, err, sent)
	}
	offer, done, err := a.Step([]byte{})
	if err != nil || done {
		t.Fatal(done, err)
	}
	c.key, c.step = sent.SubKey, 1
	choice, done, err := c.Step(offer)
	if err != nil || !done {
		t.Fatal(done, err)
	}
	if _, done, err := a.Step(choice); !done || err != nil || a.AuthorizationID() != "bob" {
		t.Errorf("%v, %v, %q", done, err, a.AuthorizationID())
	}
}

// offered returns both ends of an exchange, directly after the offer.
func offered(t *testing.T, r *realm) (*initiator, sasl.Acceptor, []byte) {
	t.Helper()
	c, a := r.initiator(t, serviceName, -time.Minute, time.Hour), r.acceptor(t)
	token, _, err := c.Step(nil)
	if err != nil {
		t.Fatal(err)
	}
	offer, done, err := a.Step(token)
	if err != nil || done {
		t.Fatal(done, err)
	}
	return c, a, offer
}

// TestChoicesThatAreRefused checks that a client cannot choose another layer, and that the choice must be
// signed with the key of the ticket.
func TestChoicesThatAreRefused(t *testing.T) {
	r := newRealm(t, etypes[1])
	wrapped := func(text string, from side) func(c *initiator, offer []byte) []byte {
		return func(c *initiator, _ []byte) []byte {
			b, err := wrap([]byte(text), c.key, from, 1)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	for name, x := range map[string]struct {
		token func(c *initiator, offer []byte) []byte
		want  string
	}{
		"reflection": {func(_ *initiator, offer []byte) []byte { return offer }, "reflection"},
		"another key": {func(c *initiator, o []byte) []byte {
			c.key.KeyValue[0] ^= 1
			return wrapped("\x01\x00\x00\x00", fromInitiator)(c, o)
		}, "signature"},
		"layer":       {wrapped("\x02\x00\x00\x00", fromInitiator), "layer"},
		"both layers": {wrapped("\x03\x00\x00\x00", fromInitiator), "layer"},
		"short":       {wrapped("\x01", fromInitiator), "layer"},
		"empty":       {wrapped("", fromInitiator), "layer"},
		"not UTF-8":   {wrapped("\x01\x00\x00\x00\xff", fromInitiator), "UTF-8"},
		"nothing":     {func(*initiator, []byte) []byte { return nil }, "not a wrap token"},
		"cut":         {func(c *initiator, o []byte) []byte { return wrapped("\x01\x00\x00\x00", fromInitiator)(c, o)[:20] }, "too short"},
		"no signature": {func(c *initiator, o []byte) []byte {
			b := wrapped("\x01\x00\x00\x00", fromInitiator)(c, o)
			b[4], b[5] = 0, 0
			return b[:20]
		}, "signature"},
		"encrypted": {func(c *initiator, o []byte) []byte {
			b := wrapped("\x01\x00\x00\x00", fromInitiator)(c, o)
			b[2] |= flagSealed
			return b
		}, "encrypted"},
		"own subkey": {func(c *initiator, o []byte) []byte {
			b := wrapped("\x01\x00\x00\x00", fromInitiator)(c, o)
			b[2] |= flagSubkey
			return b
		}, "subkey"},
		"too long": {func(*initiator, []byte) []byte { return make([]byte, TokenMax+1) }, "limit"},
	} {
		c, a, offer := offered(t, r)
		c.key.KeyValue = bytes.Clone(c.key.KeyValue)
		if _, done, err := a.Step(x.token(c, offer)); done || err == nil || !strings.Contains(err.Error(), x.want) || a.AuthorizationID() != "" {
			t.Errorf("%s: %v, %v", name, done, err)
		}
	}
}

// TestClientRefusesServices checks that a client refuses a service that does not have the key of the
// ticket, or that requires a layer.
func TestClientRefusesServices(t *testing.T) {
	r := newRealm(t, etypes[1])
	for name, change := range map[string]func(c *initiator, offer []byte) []byte{
		"another key": func(c *initiator, offer []byte) []byte { offer[len(offer)-1] ^= 1; return offer },
		"no layer offered": func(c *initiator, offer []byte) []byte {
			b, _ := wrap([]byte{6, 0, 16, 0}, c.key, fromAcceptor, 1)
			return b
		},
		"reflection": func(c *initiator, offer []byte) []byte {
			b, _ := wrap(layers, c.key, fromInitiator, 1)
			return b
		},
		"nothing": func(c *initiator, offer []byte) []byte { return nil },
	} {
		c, _, offer := offered(t, r)
		if token, done, err := c.Step(change(c, offer)); token != nil || done || err == nil {
			t.Errorf("%s: %x, %v, %v", name, token, done, err)
		} else {
			t.Log(name+":", err)
		}
	}
}

// TestRotatedToken checks tokens of senders that rotate the bytes that follow the header.
func TestRotatedToken(t *testing.T) {
	key := types.EncryptionKey{KeyType: etypes[1], KeyValue: bytes.Repeat([]byte{7}, 32)}
	b, err := wrap([]byte("hello"), key, fromAcceptor, 9)
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Clone(b[headerSize:])
	for _, n := range []int{0, 1, 5, 12, len(body), len(body) + 3} {
		m := n % len(body)
		b = append(append(b[:headerSize], body[len(body)-m:]...), body[:len(body)-m]...)
		binary.BigEndian.PutUint16(b[6:], uint16(n))
		if text, err := unwrap(b, key, fromAcceptor); string(text) != "hello" || err != nil {
			t.Errorf("rotated by %d: %q, %v", n, text, err)
		}
	}
}

// TestKeytabs checks that a keytab without a usable key is refused at the start, and that a keytab that
// changes is read again. If it cannot be read, the old keys stay in use.
func TestKeytabs(t *testing.T) {
	r := newRealm(t, etypes[1])
	for principal, want := range map[string]string{
		"other/host.example.com@EXAMPLE.COM": "has no AES key of other/host.example.com@EXAMPLE.COM; it has: zookeeper/host.example.com@EXAMPLE.COM",
		"bob@EXAMPLE.COM":                    "expected service/host@REALM",
		"zookeeper/host":                     "expected service/host@REALM",
		"":                                   "empty",
	} {
		if _, err := NewService(principal, r.path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", principal, err)
		}
	}
	if _, err := NewService(serviceName+"@"+testRealm, r.path+".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	good, err := os.ReadFile(r.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{good[:len(good)/2], {5, 2}, {}, []byte("text"), {5, 2, 0x7f, 0xff, 0xff, 0xff}} {
		if err := os.WriteFile(r.path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := r.service.Accept(sasl.AuthorizePeer(nil))
		if err == nil {
			t.Errorf("%x is a keytab", bad)
		}
		if err := run(r.initiator(t, serviceName, -time.Minute, time.Hour), a); err != nil {
			t.Errorf("with the keytab %x the old keys are lost: %v", bad, err)
		}
	}
	r.keys = keytab.New()
	if err := r.keys.AddEntry(serviceName, testRealm, "new password", time.Now().Add(time.Second), 1, r.etype); err != nil {
		t.Fatal(err)
	}
	r.write(t)
	if err := run(r.initiator(t, serviceName, -time.Minute, time.Hour), r.acceptor(t)); err != nil {
		t.Errorf("the new key is not used: %v", err)
	}
}

// TestNewestKey checks that of several keys with one time stamp, which kadmin writes within one second and ktpass
// always, the one with the highest version is used, wherever it stands.
func TestNewestKey(t *testing.T) {
	r := newRealm(t, etypes[1])
	r.keys = keytab.New()
	for _, version := range []uint8{2, 4, 3} {
		if err := r.keys.AddEntry("bob", testRealm, strings.Repeat("x", int(version)), time.Unix(0, 0), version, r.etype); err != nil {
			t.Fatal(err)
		}
	}
	r.write(t)
	keys, err := loadKeytab(r.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, version, err := keys.GetEncryptionKey(types.PrincipalName{NameString: []string{"bob"}}, testRealm, 0, r.etype); version != 4 || err != nil {
		t.Errorf("the key of version %d is used: %v", version, err)
	}
}

// TestPrincipalsOfLogins checks what is said if the principal of a login is missing, has no realm, or is not
// in the keytab.
func TestPrincipalsOfLogins(t *testing.T) {
	r := newRealm(t, etypes[1])
	if err := r.keys.AddEntry(serviceName, testRealm, "newer", time.Now(), 2, r.etype); err != nil {
		t.Fatal(err)
	}
	r.write(t)
	dir := t.TempDir()
	realm, none := filepath.Join(dir, "krb5.conf"), filepath.Join(dir, "none.conf")
	if err := errors.Join(os.WriteFile(realm, []byte("[libdefaults]\n default_realm = EXAMPLE.COM\n"), 0o600), os.WriteFile(none, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ conf, principal, want string }{
		{realm, "", "keytab " + r.path + ": no principal is given: name the one whose key is to be used"},
		{none, "bob", "the principal bob has no realm, and " + none + " names no default_realm: add @REALM to the principal"},
		{realm, "bob", "keytab " + r.path + " has no AES key of bob@EXAMPLE.COM; it has: zookeeper/host.example.com@EXAMPLE.COM"},
	} {
		if _, err := NewLogin(Config{Conf: x.conf, Principal: x.principal, KeyTab: r.path}); err == nil || err.Error() != x.want {
			t.Errorf("%q: %v, want %s", x.principal, err, x.want)
		}
	}
}

// TestWeakKeys checks that a ticket with an RC4 key is refused.
func TestWeakKeys(t *testing.T) {
	r := newRealm(t, etypes[1])
	if err := r.keys.AddEntry(serviceName, testRealm, "x", time.Now(), 1, etypeID.RC4_HMAC); err != nil {
		t.Fatal(err)
	}
	r.write(t)
	r.etype = etypeID.RC4_HMAC
	if err := run(r.initiator(t, serviceName, -time.Minute, time.Hour), r.acceptor(t)); err == nil || !strings.Contains(err.Error(), "type 23 is not supported; make the KDC use AES") {
		t.Error(err)
	}
}

// FuzzAcceptor checks that no token is accepted without a ticket, and that no token makes the acceptor
// panic.
func FuzzAcceptor(f *testing.F) {
	r := newRealm(f, etypes[1])
	c := r.initiator(f, serviceName, -time.Minute, time.Hour)
	token, _, err := c.Step(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token, []byte{})
	f.Add(token[:40], token)
	f.Add(appendToken(nil, idError, []byte("x")), []byte{5, 4, 0, 0xff, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		clear(r.service.replays)
		a, err := r.service.Accept(sasl.AuthorizePeer(nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range [][]byte{first, second, second} {
			if _, done, err := a.Step(token); done || a.AuthorizationID() != "" {
				t.Errorf("accepted as %q", a.AuthorizationID())
			} else if err != nil {
				return
			}
		}
	})
}
