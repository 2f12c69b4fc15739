package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"bellwether/internal/sasl"
)

// Config says who logs in and with which credentials. Either KeyTab or TicketCache is set.
type Config struct {
	// Conf is the path of krb5.conf, which names the KDCs of the realms.
	Conf string
	// Principal is the name of the client, such as bob@EXAMPLE.COM. Without a realm it is of
	// the default realm. With a TicketCache it may be empty; the cache names the client.
	Principal   string
	KeyTab      string
	TicketCache string
}

// Login is a client that can log in to services.
type Login struct {
	config Config

	mu     sync.Mutex // also held during requests to the KDC, because gokrb5 reads conf then
	conf   *config.Config
	client *client.Client
	read   fileState // state of the keytab or of the cache when it was last read
}

// NewLogin reads the configuration and the credentials. It does not ask the KDC.
func NewLogin(c Config) (*Login, error) {
	if (c.KeyTab == "") == (c.TicketCache == "") {
		return nil, errors.New("a login to Kerberos needs either a keytab or a ticket cache")
	}
	conf, err := loadConf(c.Conf)
	if err != nil {
		return nil, err
	}
	l := &Login{config: c, conf: conf}
	return l, l.reload()
}

// DefaultRealm returns the default realm of a krb5.conf.
func DefaultRealm(path string) (string, error) {
	conf, err := loadConf(path)
	if err != nil {
		return "", err
	}
	return conf.LibDefaults.DefaultRealm, nil
}

func loadConf(path string) (conf *config.Config, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the configuration of Kerberos, %s: %w", path, err)
		}
	}()
	defer guard(&err)
	if conf, err = config.Load(path); err != nil {
		return nil, err
	}
	useAES(&conf.LibDefaults)
	return conf, nil
}

// useAES makes the client request each type of AES key. gokrb5 requests only the two older types if
// krb5.conf does not say; MIT's programs request all four.
func useAES(l *config.LibDefaults) {
	unset := config.New().LibDefaults
	all := []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.AES128_CTS_HMAC_SHA256_128}
	for _, x := range []struct {
		now   *[]int32
		unset []int32
	}{
		{&l.DefaultTktEnctypeIDs, unset.DefaultTktEnctypeIDs},
		{&l.DefaultTGSEnctypeIDs, unset.DefaultTGSEnctypeIDs},
		{&l.PermittedEnctypeIDs, unset.PermittedEnctypeIDs},
	} {
		if slices.Equal(*x.now, x.unset) {
			*x.now = all
		}
	}
}

// reload reads the keytab or the cache if it has changed. The caller holds mu, or is the only user.
func (l *Login) reload() error {
	path := l.config.KeyTab + l.config.TicketCache
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the credentials of Kerberos: %w", err)
	}
	state := fileState{info.Size(), info.ModTime()}
	if state == l.read {
		return nil
	}
	next, err := l.load()
	if err != nil {
		return err
	}
	if l.client != nil {
		l.client.Destroy()
	}
	l.client, l.read = next, state
	return nil
}

// load makes a client of gokrb5 from the keytab or the cache.
func (l *Login) load() (c *client.Client, err error) {
	p := sasl.Principal{}
	if l.config.Principal != "" {
		if p, err = sasl.ParsePrincipal(l.config.Principal); err != nil {
			return nil, err
		}
	}
	if p.Realm == "" {
		p.Realm = l.conf.LibDefaults.DefaultRealm
	}
	if p.Service != "" && p.Realm == "" {
		return nil, fmt.Errorf("the principal %s has no realm, and %s names no default_realm: add @REALM to the principal", p, l.config.Conf)
	}
	if l.config.TicketCache != "" {
		return l.loadCache(p)
	}
	if p.Service == "" {
		return nil, fmt.Errorf("keytab %s: no principal is given: name the one whose key is to be used", l.config.KeyTab)
	}
	name := sasl.Principal{Service: p.Service, Host: p.Host}.String()
	keys, err := loadKeytab(l.config.KeyTab)
	if err != nil {
		return nil, err
	}
	c = client.NewWithKeytab(name, p.Realm, keys, l.conf, client.DisablePAFXFAST(true))
	return c, checkKeys(keys, c.Credentials.CName(), p.Realm, l.config.KeyTab)
}

func (l *Login) loadCache(p sasl.Principal) (c *client.Client, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("ticket cache %s: %w", l.config.TicketCache, err)
		}
	}()
	defer guard(&err)
	cache, err := credentials.LoadCCache(l.config.TicketCache)
	if err != nil {
		return nil, err
	}
	if owner := cache.GetClientPrincipalName().PrincipalNameString() + "@" + cache.GetClientRealm(); p.Service != "" && owner != p.String() {
		return nil, fmt.Errorf("the ticket cache belongs to %s, not to %s", owner, p)
	}
	return client.NewFromCCache(cache, l.conf, client.DisablePAFXFAST(true))
}

// Begin gets a ticket for a service, such as zookeeper/host.example.com, and begins an exchange with
// it. A service without a realm is of the client's realm. Begin waits for the KDC, unless there is a
// ticket already.
func (l *Login) Begin(service string) (x sasl.Exchange, err error) {
	p, err := sasl.ParsePrincipal(service)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == nil {
		return nil, errors.New("the login to Kerberos is closed")
	}
	// If the credentials cannot be read now, those that were read before may still work.
	if unread := l.reload(); unread != nil {
		defer func() {
			if err != nil {
				err = fmt.Errorf("%w (%w)", err, unread)
			}
		}()
	}
	defer guard(&err)
	own := l.client.Credentials
	if p.Realm == "" {
		// A name without a realm is not split by ParsePrincipal.
		if p, err = sasl.ParsePrincipal(service + "@" + own.Domain()); err != nil {
			return nil, err
		}
	}
	if p.Host == "" {
		return nil, fmt.Errorf("%q is not the principal of a service; expected service/host", service)
	}
	l.conf.DomainRealm[p.Host] = p.Realm
	ticket, key, err := l.client.GetServiceTicket(p.Service + "/" + p.Host)
	if err != nil {
		return nil, fmt.Errorf("no ticket of %s@%s for %s: %s%w", own.CName().PrincipalNameString(), own.Domain(), p, hint(err), err)
	}
	if !strong(key.KeyType) {
		return nil, weakKey(key.KeyType)
	}
	return &initiator{ticket: ticket, key: key, name: own.CName(), realm: own.Domain()}, nil
}

// hint returns what is usually wrong if the KDC gives no ticket, and what to do about it, or nothing. gokrb5
// reports errors as texts, with the names of RFC 4120.
func hint(err error) string {
	for _, x := range []struct{ part, text string }{
		{"KDC_ERR_S_PRINCIPAL_UNKNOWN", "the KDC does not know the service: name the principal of the servers"},
		{"KDC_ERR_C_PRINCIPAL_UNKNOWN", "the KDC does not know the client: correct its principal"},
		{"KDC_ERR_PREAUTH_FAILED", wrongKey},
		{"integrity verification failed", wrongKey},
		{"KRB_AP_ERR_TKT_EXPIRED", oldTicket},
		{"no user credentials available", oldTicket},
		{"KRB_AP_ERR_SKEW", "compare the clocks of this machine and the KDC"},
		{"no KDCs defined", "name a KDC of the realm in krb5.conf"},
		{"failed sending", "check the KDC, and its address in krb5.conf"},
	} {
		if strings.Contains(err.Error(), x.part) {
			return x.text + ": "
		}
	}
	return ""
}

const (
	wrongKey  = "the KDC has another key of the client: export the keytab again"
	oldTicket = "the ticket has expired: run kinit again"
)

// Close ends the renewal of the ticket.
func (l *Login) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil {
		l.client.Destroy()
		l.client = nil
	}
}

// initiator is the client's end of one exchange.
type initiator struct {
	ticket   messages.Ticket
	key      types.EncryptionKey
	name     types.PrincipalName
	realm    string
	sequence uint64
	step     int
}

func (i *initiator) Mechanism() string { return mechanism }

// Step first sends the request, and then the choice of no security layer. It does not ask for an AP-REP: the
// service's offer is signed with the key of the ticket, which already proves who the service is.
func (i *initiator) Step(token []byte) (answer []byte, done bool, err error) {
	defer func() {
		if err != nil {
			answer, done, err = nil, false, fmt.Errorf("GSSAPI: %w", err)
		}
	}()
	defer guard(&err)
	step := i.step
	i.step = 2
	switch step {
	case 0:
		i.step = 1
		answer, err = i.request()
		return answer, false, err
	case 1:
		answer, err = i.choose(token)
		return answer, true, err
	}
	return nil, false, errors.New("the exchange is over, so no further token is accepted")
}

// flagIntegrity allows signed tokens (RFC 4121, 4.1.1.1).
const flagIntegrity = 0x20

func (i *initiator) request() ([]byte, error) {
	a, err := types.NewAuthenticator(i.realm, i.name)
	if err != nil {
		return nil, err
	}
	flags := make([]byte, 24)
	binary.LittleEndian.PutUint32(flags, 16)
	binary.LittleEndian.PutUint32(flags[20:], flagIntegrity)
	a.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: flags}
	i.sequence = uint64(a.SeqNumber)
	q, err := messages.NewAPReq(i.ticket, i.key, a)
	if err != nil {
		return nil, err
	}
	message, err := q.Marshal()
	if err != nil {
		return nil, err
	}
	token := appendToken(nil, idRequest, message)
	if len(token) > TokenMax {
		return nil, fmt.Errorf("the ticket makes a token of %d bytes; the limit is %d", len(token), TokenMax)
	}
	return token, nil
}

// choose verifies the service's offer and answers that no layer is wanted.
func (i *initiator) choose(token []byte) ([]byte, error) {
	if len(token) > TokenMax {
		return nil, fmt.Errorf("a token of %d bytes; the limit is %d", len(token), TokenMax)
	}
	offer, err := unwrap(token, i.key, fromAcceptor)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the service does not prove who it is: %w", err)
	case len(offer) != 4 || offer[0]&layerNone == 0:
		return nil, errors.New("the service requires a security layer, which is not supported")
	}
	own := i.name.PrincipalNameString() + "@" + i.realm
	return wrap(append(layers[:4:4], own...), i.key, fromInitiator, i.sequence)
}
