package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bellwether/internal/config"
	"bellwether/internal/sasl"
	"bellwether/internal/sasl/kerberos"
	"bellwether/wire"
)

// schemeSASL is the scheme of the ids that logins by SASL prove.
const schemeSASL = "sasl"

// clientLogins accepts the logins of clients by SASL. Each connection may carry out one
// exchange.
type clientLogins struct {
	// begin begins an exchange. The second result reports that a keytab has changed and cannot
	// be read, so that the old keys stay in use.
	begin func() (sasl.Acceptor, error)
	// remedy says what to do if a client cannot log in.
	remedy string
}

// openLogins reads the section of the JAAS file with which clients log in, and the keys that
// it names; nil: there is none.
func openLogins(c *config.Config) (*clientLogins, error) {
	realm, err := defaultRealm(&c.SASL)
	if err != nil || !c.SASL.HasClientSection() {
		return nil, err
	}
	rules, err := sasl.ParseRules(c.SASL.AuthToLocal)
	if err != nil {
		return nil, err
	}
	naming := &sasl.Naming{Rules: rules, DefaultRealm: realm, RemoveHost: c.SASL.RemoveHost, RemoveRealm: c.SASL.RemoveRealm}
	l, err := openSection(c, naming.Authorize)
	if err != nil {
		return nil, fmt.Errorf("section %s of the JAAS file %s, with which clients log in: %w", c.SASL.Section, c.SASL.JAAS.Name, err)
	}
	return l, nil
}

// defaultRealm returns the realm of the rule DEFAULT. Without a configuration of Kerberos it is
// empty, unless the operator requires one.
func defaultRealm(c *config.SASL) (string, error) {
	realm, err := kerberos.DefaultRealm(c.Krb5Conf)
	if !c.RequireKerberos {
		return realm, nil
	}
	if err == nil && realm == "" {
		err = fmt.Errorf("%s names no default_realm", c.Krb5Conf)
	}
	if err != nil {
		return "", fmt.Errorf("requireKerberosConfig=true: %w: correct the file, name another one with -Djava.security.krb5.conf=PATH in SERVER_JVMFLAGS, or remove the key", err)
	}
	return realm, nil
}

// openSection opens the logins of the section for clients.
func openSection(c *config.Config, authorize sasl.Authorize) (*clientLogins, error) {
	section, err := c.SASL.JAAS.Section(c.SASL.Section)
	if err != nil {
		return nil, err
	}
	login, err := section.Login()
	if err != nil {
		return nil, err
	}
	if k := login.Kerberos; k != nil {
		service, err := openKerberosService(c, k)
		if err != nil {
			return nil, err
		}
		return &clientLogins{
			begin:  func() (sasl.Acceptor, error) { return service.Accept(authorize) },
			remedy: "the client needs a valid ticket for " + k.Principal + ", and its clock must agree with this server's",
		}, nil
	}
	passwords := maps.Clone(login.Digest.Users)
	if len(passwords) == 0 {
		return nil, errors.New("it has no users: add options user_NAME=\"PASSWORD\"")
	}
	const super = "super"
	if _, exists := passwords[super]; exists && c.SASL.SuperPassword != "" {
		passwords[super] = sasl.NewSecret(c.SASL.SuperPassword)
	}
	users := sasl.NewDigestUsers(sasl.ClientService, passwords)
	return &clientLogins{
		begin:  func() (sasl.Acceptor, error) { return sasl.NewDigestServer(users, authorize, ""), nil },
		remedy: fmt.Sprintf("compare the client's user and password with the options user_NAME in section %s of %s", c.SASL.Section, c.SASL.File),
	}, nil
}

// saslToken answers a SASL packet at once, like an auth packet. A server without logins
// answers with a null token, which proves nothing.
func (c *conn) saslToken(xid int32, body []byte) error {
	var q wire.SASLRequest
	if err := wire.Decode(body, &q); err != nil {
		return fmt.Errorf("sasl packet: %w", err)
	}
	if q.Token == nil {
		return errNullToken
	}
	var answer []byte
	if c.srv.logins != nil {
		var err error
		if answer, err = c.stepLogin(q.Token); err != nil {
			return c.refuseLogin(xid, err)
		}
	}
	c.push(item{header: wire.ReplyHeader{Xid: xid}, record: &wire.SASLResponse{Token: answer}})
	return nil
}

// stepLogin passes a token to the connection's exchange, which the first token begins, and
// returns the answer to it. At the end of the login it adds an id of the scheme sasl to those
// of the client.
func (c *conn) stepLogin(token []byte) ([]byte, error) {
	if c.login == nil {
		var stale error
		if c.login, stale = c.srv.logins.begin(); stale != nil {
			const what = "the keytab for logins of clients cannot be read again; the old keys stay in use"
			c.srv.warn(what, c.net.RemoteAddr(), what, "err", stale)
		}
	}
	answer, done, err := c.login.Step(token)
	if err != nil || !done {
		return answer, err
	}
	id := c.login.AuthorizationID()
	ids := []wire.ID{{Scheme: schemeSASL, ID: id}}
	if slices.Contains(c.srv.config().Access.SASLSupers, id) {
		ids = append(ids, wire.ID{Scheme: "super"})
	}
	if !c.addIDs(ids) {
		return nil, errors.New("the connection has too many identities")
	}
	c.srv.log.Debug("a client has logged in by SASL", "addr", c.addr, "session", c.Session(), "id", id)
	return answer, nil
}

// refuseLogin answers a token that was not accepted. The connection must be closed after the
// reply, unless clients may stay without a login.
func (c *conn) refuseLogin(xid int32, err error) error {
	access := &c.srv.config().Access
	c.reportRefused(err)
	reply := item{header: wire.ReplyHeader{Xid: xid, Err: wire.ErrAuthFailed}, record: &wire.SASLResponse{}}
	switch {
	case slices.Contains(access.RequiredSchemes(), schemeSASL):
		reply.header.Err = wire.ErrSessionClosedRequireAuth
	case access.AllowSASLFailed:
		reply.header.Err = wire.OK
		c.push(reply)
		return nil
	}
	c.push(reply)
	return errAuthFailed
}

// reportRefused counts and logs a failed login by SASL. The reason may name the user, and never
// contains a password.
func (c *conn) reportRefused(err error) {
	c.srv.stats.authFailed.Add(1)
	c.srv.loginFailed(c.addr.Addr(), 1)
	const what = "a client failed to log in by SASL"
	c.srv.warn(what, c.net.RemoteAddr(), what+": "+err.Error()+": "+c.srv.logins.remedy, "addr", c.addr, "session", c.Session())
}

// errNoLogin: a request came from a client without an id of a required scheme, so the
// connection must be closed after the reply.
var errNoLogin = errors.New("the client has no id of a required scheme")

// requireLogin refuses a request other than a login if the client needs an id that it has
// not proved.
func (c *conn) requireLogin(xid int32) error {
	schemes := c.srv.config().Access.RequiredSchemes()
	if schemes == nil || c.operator || slices.ContainsFunc(*c.ids.Load(), func(id wire.ID) bool { return slices.Contains(schemes, id.Scheme) }) {
		return nil
	}
	c.srv.stats.loginsMissing.Add(1)
	const what = "a request is refused because its client has not logged in"
	c.srv.warn(what, c.net.RemoteAddr(), what+": configure the client for one of the schemes "+strings.Join(schemes, ", "), "addr", c.addr, "session", c.Session())
	c.push(item{header: wire.ReplyHeader{Xid: xid, Err: wire.ErrSessionClosedRequireAuth}})
	return errNoLogin
}
