package kerberos

import (
	"crypto/sha256"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"bellwether/internal/sasl"
)

const mechanism = "GSSAPI"

// Limits of what a service tolerates and remembers.
const (
	// SkewMax is how much the clocks of client and server may differ.
	SkewMax = 5 * time.Minute
	// ReplayMax is how many uses of tickets a service remembers. If there are more within
	// twice SkewMax, further logins are refused.
	ReplayMax = 1 << 18
)

// Service accepts logins to one principal.
type Service struct {
	name  types.PrincipalName
	realm string
	path  string

	mu      sync.Mutex
	keys    *keytab.Keytab
	read    fileState // of keys
	replays map[[sha256.Size]byte]time.Time
	sweep   time.Time // when replays was last swept
}

// fileState tells whether a file has changed.
type fileState struct {
	size int64
	time time.Time
}

// NewService reads the keys of a principal, such as zookeeper/host.example.com@EXAMPLE.COM, from a
// keytab.
func NewService(principal, path string) (*Service, error) {
	p, err := sasl.ParsePrincipal(principal)
	if err != nil {
		return nil, err
	}
	if p.Realm == "" || p.Host == "" {
		return nil, fmt.Errorf("%q is not the principal of a service; expected service/host@REALM", principal)
	}
	s := &Service{name: types.PrincipalName{NameString: []string{p.Service, p.Host}}, realm: p.Realm, path: path, replays: map[[sha256.Size]byte]time.Time{}}
	return s, s.reload()
}

// reload reads the keytab if it has changed. The caller holds mu, or is the only user.
func (s *Service) reload() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return fmt.Errorf("keytab: %w", err)
	}
	state := fileState{info.Size(), info.ModTime()}
	if state == s.read {
		return nil
	}
	keys, err := loadKeytab(s.path)
	if err != nil {
		return err
	}
	if err := checkKeys(keys, s.name, s.realm, s.path); err != nil {
		return err
	}
	s.keys, s.read = keys, state
	return nil
}

// loadKeytab reads a keytab. gokrb5 looks for the key with the latest time stamp. If time stamps are
// equal, it takes the first one, so the keys with higher version numbers, which are newer, stand first.
func loadKeytab(path string) (keys *keytab.Keytab, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keytab %s: %w", path, err)
		}
	}()
	defer guard(&err)
	if keys, err = keytab.Load(path); err != nil {
		return nil, err
	}
	sort.SliceStable(keys.Entries, func(i, j int) bool { return keys.Entries[i].KVNO > keys.Entries[j].KVNO })
	return keys, nil
}

// checkKeys refuses a keytab without a usable key of the principal.
func checkKeys(keys *keytab.Keytab, name types.PrincipalName, realm, path string) error {
	var others []string
	for _, e := range keys.Entries {
		who := strings.Join(e.Principal.Components, "/") + "@" + e.Principal.Realm
		if who != name.PrincipalNameString()+"@"+realm {
			others = append(others, who)
		} else if strong(e.Key.KeyType) {
			return nil
		} else {
			others = append(others, fmt.Sprintf("%s with encryption type %d", who, e.Key.KeyType))
		}
	}
	slices.Sort(others)
	others = slices.Compact(others)
	if len(others) == 0 {
		others = []string{"no keys"}
	}
	return fmt.Errorf("keytab %s has no AES key of %s@%s; it has: %s", path, name.PrincipalNameString(), realm, strings.Join(others, ", "))
}

// Accept begins an exchange with a client. If the keytab has changed and cannot be read, the second
// result reports that, and the old keys stay in use.
func (s *Service) Accept(authorize sasl.Authorize) (sasl.Acceptor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.reload()
	return &acceptor{service: s, keys: s.keys, authorize: authorize}, err
}

// first remembers a use of a ticket, and refuses a use that it has seen before.
func (s *Service) first(use []byte, now time.Time) error {
	key := sha256.Sum256(use)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.sweep) > SkewMax/5 {
		s.sweep = now
		for k, t := range s.replays {
			if now.Sub(t) > 2*SkewMax {
				delete(s.replays, k)
			}
		}
	}
	if _, again := s.replays[key]; again {
		return errors.New("the request has been used before; it may be a replay")
	}
	if len(s.replays) >= ReplayMax {
		return fmt.Errorf("more than %d logins within %v; replays could not be noticed", ReplayMax, 2*SkewMax)
	}
	s.replays[key] = now
	return nil
}

// acceptor is the server's end of one exchange.
type acceptor struct {
	service   *Service
	keys      *keytab.Keytab
	authorize sasl.Authorize

	step      acceptStep
	client    string // the principal, once the ticket is verified
	ticketKey types.EncryptionKey
	key       types.EncryptionKey // the key with which tokens are signed
	sequence  uint64
	id        string
}

// acceptStep says what an acceptor waits for.
type acceptStep int

const (
	awaitRequest acceptStep = iota
	awaitEmpty              // the client's empty answer to the proof that the client asked for
	awaitChoice             // the client's choice of a security layer
	acceptOver
)

func (a *acceptor) Mechanism() string       { return mechanism }
func (a *acceptor) AuthorizationID() string { return a.id }

// Step verifies the client's ticket, offers no security layer, and reads the client's choice.
func (a *acceptor) Step(token []byte) (answer []byte, done bool, err error) {
	defer func() {
		if err != nil {
			answer, done, err = nil, false, fmt.Errorf("GSSAPI: %w", err)
		}
	}()
	defer guard(&err)
	step := a.step
	a.step = acceptOver
	switch step {
	case awaitRequest:
		return a.request(token)
	case awaitEmpty:
		if len(token) != 0 {
			return nil, false, errors.New("the client sent a token where none was expected")
		}
		return a.offer()
	case awaitChoice:
		return nil, true, a.choice(token)
	}
	return nil, false, errors.New("the exchange is over, so no further token is accepted")
}

// request verifies an AP-REQ. The answer is the proof that the client has asked for, or else the offer of
// layers.
func (a *acceptor) request(token []byte) (answer []byte, done bool, err error) {
	id, message, err := parseToken(token)
	if err != nil {
		return nil, false, err
	}
	if id != idRequest {
		return nil, false, fmt.Errorf("the first token is not a request (AP-REQ): its id is %04x", uint16(id))
	}
	var q messages.APReq
	if err := q.Unmarshal(message); err != nil {
		return nil, false, err
	}
	if err := a.verify(&q); err != nil {
		return nil, false, err
	}
	if flags, err := contextFlags(q.Authenticator.Cksum); err != nil {
		return nil, false, err
	} else if flags&flagMutual == 0 {
		return a.offer()
	}
	answer, err = a.prove(&q.Authenticator)
	a.step = awaitEmpty
	return answer, false, err
}

// verify checks the ticket, and checks that the client has the key of the ticket.
func (a *acceptor) verify(q *messages.APReq) error {
	s := a.service
	if !q.Ticket.SName.Equal(s.name) || q.Ticket.Realm != s.realm {
		return fmt.Errorf("the ticket is for %q of the realm %q; this is %s@%s: the client must ask for that principal", q.Ticket.SName.PrincipalNameString(), q.Ticket.Realm, s.name.PrincipalNameString(), s.realm)
	}
	if !strong(q.Ticket.EncPart.EType) {
		return weakKey(q.Ticket.EncPart.EType)
	}
	// Addresses in a ticket do not survive NAT, and the JDK does not check them either.
	if err := q.Ticket.DecryptEncPart(a.keys, &s.name); err != nil {
		return err
	}
	var client types.HostAddress
	if addresses := q.Ticket.DecryptedEncPart.CAddr; len(addresses) > 0 {
		client = addresses[0]
	}
	if ok, err := q.Verify(a.keys, SkewMax, client, &s.name); err != nil || !ok {
		return fmt.Errorf("the request is not valid: %w", err)
	}
	ticket := &q.Ticket.DecryptedEncPart
	if q.Authenticator.CRealm != ticket.CRealm {
		return fmt.Errorf("the client's realm %q is not that of its ticket, %q", q.Authenticator.CRealm, ticket.CRealm)
	}
	if err := s.first(q.EncryptedAuthenticator.Cipher, time.Now()); err != nil {
		return err
	}
	a.key, a.ticketKey = ticket.Key, ticket.Key
	if len(q.Authenticator.SubKey.KeyValue) > 0 {
		a.key = q.Authenticator.SubKey
	}
	if !strong(a.key.KeyType) {
		return weakKey(a.key.KeyType)
	}
	a.client = ticket.CName.PrincipalNameString() + "@" + ticket.CRealm
	a.sequence = uint64(uint32(q.Authenticator.SeqNumber))
	return nil
}

// flagMutual asks the acceptor to prove that it knows the key (RFC 4121, 4.1.1.1).
const flagMutual = 2

// contextFlags reads the checksum field of an authenticator. In GSSAPI it holds flags instead of a
// checksum.
func contextFlags(c types.Checksum) (uint32, error) {
	if c.CksumType != chksumtype.GSSAPI || len(c.Checksum) < 24 || binary.LittleEndian.Uint32(c.Checksum) != 16 {
		return 0, errors.New("the request is not one of GSSAPI: it has no flags")
	}
	return binary.LittleEndian.Uint32(c.Checksum[20:]), nil
}

// replyPart is the encrypted part of an AP-REP without a subkey.
type replyPart struct {
	CTime    time.Time `asn1:"generalized,explicit,tag:0"`
	Cusec    int       `asn1:"explicit,tag:1"`
	Sequence int64     `asn1:"explicit,tag:3"`
}

// prove returns an AP-REP: the client's time, encrypted with the key of the ticket.
func (a *acceptor) prove(q *types.Authenticator) ([]byte, error) {
	part, err := asn1.Marshal(replyPart{q.CTime.UTC(), q.Cusec, int64(a.sequence)})
	if err != nil {
		return nil, err
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(part, asnAppTag.EncAPRepPart), a.ticketKey, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		return nil, err
	}
	reply, err := asn1.Marshal(messages.APRep{PVNO: iana.PVNO, MsgType: msgtype.KRB_AP_REP, EncPart: sealed})
	return appendToken(nil, idReply, asn1tools.AddASNAppTag(reply, asnAppTag.APREP)), err
}

// offer tells the client that there is no layer to choose.
func (a *acceptor) offer() ([]byte, bool, error) {
	token, err := wrap(layers, a.key, fromAcceptor, a.sequence)
	a.step = awaitChoice
	return token, false, err
}

// choice reads the client's layer and the id that it wants.
func (a *acceptor) choice(token []byte) error {
	if len(token) > TokenMax {
		return fmt.Errorf("a token of %d bytes; the limit is %d", len(token), TokenMax)
	}
	text, err := unwrap(token, a.key, fromInitiator)
	if err != nil {
		return err
	}
	if len(text) < 4 || text[0] != layerNone {
		return errors.New("the client chose a security layer, which was not offered")
	}
	wanted := string(text[4:])
	if !utf8.ValidString(wanted) {
		return errors.New("the id that the client wants is not UTF-8")
	}
	if wanted == "" {
		wanted = a.client
	}
	a.id, err = a.authorize(a.client, wanted)
	return err
}
