package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/notice"
	"bellwether/internal/peer"
	"bellwether/internal/sasl"
	"bellwether/internal/sasl/jaas"
	"bellwether/internal/sasl/quorumauth"
	"bellwether/internal/secure"
)

// peerAuth logs the servers of an ensemble in to each other by SASL, as the keys quorum.auth.*
// ask.
type peerAuth struct {
	c       *config.Config // the configuration at the start
	members func() *ensemble.Membership
	log     *slog.Logger
	notices *notice.Log

	accept func() (sasl.Acceptor, error)
	begin  func(host string) (sasl.Exchange, error)
	close  func()
}

// openPeerAuth prepares the logins between servers; nil: there are none.
func openPeerAuth(c *config.Config, members func() *ensemble.Membership, log *slog.Logger, notices *notice.Log) (*peerAuth, error) {
	q := &c.SASL.Quorum
	if q.Learner == nil {
		return nil, nil
	}
	a := &peerAuth{c: c, members: members, log: log, notices: notices, close: func() {}}
	if err := a.openLearner(q.Learner); err != nil {
		return nil, fmt.Errorf("logins to other servers, section %s of the JAAS file: %w", q.LearnerSection, err)
	}
	if err := a.openServer(q.Server); err != nil {
		a.close()
		return nil, fmt.Errorf("logins of other servers, section %s of the JAAS file: %w", q.ServerSection, err)
	}
	log.Info("servers log in to each other by SASL", "file", c.SASL.File, "logsIn", q.LearnerRequires, "requiresLogin", q.ServerRequires)
	return a, nil
}

// openLearner prepares the logins of this server at others.
func (a *peerAuth) openLearner(own *jaas.Login) error {
	if d := own.Digest; d != nil {
		a.begin = func(string) (sasl.Exchange, error) {
			return sasl.NewDigestClient(sasl.DigestLogin{Service: sasl.QuorumService, User: d.Username, Password: d.Password, AuthorizationID: d.Username}), nil
		}
		return nil
	}
	k, err := openKerberosLogin(a.c, own.Kerberos)
	if err != nil {
		return err
	}
	t := newTickets(k, peerHandshakeMax(a.c))
	a.close = t.close
	a.begin = func(host string) (sasl.Exchange, error) { return t.begin(a.service(host)) }
	return nil
}

// service returns the principal of the server at a host. If the configured principal has no
// realm, service adds this server's own realm.
func (a *peerAuth) service(host string) string {
	name := sasl.ServicePrincipal(a.c.SASL.Quorum.ServicePrincipal, host)
	if realm := a.c.SASL.ServerRealm; realm != "" && !strings.Contains(name, "@") {
		name += "@" + realm
	}
	return name
}

// openServer prepares the logins of other servers at this one.
func (a *peerAuth) openServer(others *jaas.Login) error {
	if d := others.Digest; d != nil {
		users := sasl.NewDigestUsers(sasl.QuorumService, d.Users)
		a.accept = func() (sasl.Acceptor, error) { return sasl.NewDigestServer(users, sasl.AuthorizePeer(nil), ""), nil }
		return nil
	}
	service, err := openKerberosService(a.c, others.Kerberos)
	if err != nil {
		return err
	}
	a.accept = func() (sasl.Acceptor, error) {
		return service.Accept(sasl.AuthorizePeer(memberHosts(a.members())))
	}
	return nil
}

// end ends all waits for a KDC.
func (a *peerAuth) end() {
	if a != nil {
		a.close()
	}
}

// memberHosts returns the hosts of all server lines.
func memberHosts(m *ensemble.Membership) []string {
	hosts := []string{}
	for _, s := range m.Servers() {
		for _, a := range s.Addresses {
			hosts = append(hosts, a.Host)
		}
	}
	return hosts
}

// inside returns functions that first secure a connection with outer, and then carry out a
// login on the secured connection.
func (a *peerAuth) inside(outer peer.Secure) peer.Secure {
	q := &a.c.SASL.Quorum
	wrap := func(outer, login peer.Wrap) peer.Wrap {
		return func(c net.Conn, p peer.Purpose, id ensemble.ServerID, address string) (net.Conn, error) {
			if outer != nil {
				var err error
				if c, err = outer(c, p, id, address); err != nil {
					return nil, err
				}
			}
			if p == peer.ForElection { // the initial message comes before the login
				return c, nil
			}
			return login(c, p, id, address)
		}
	}
	if q.LearnerRequires {
		outer.Client = wrap(outer.Client, a.login)
	}
	outer.Server = wrap(outer.Server, a.admit)
	return outer
}

// login logs in at a server that was dialled.
func (a *peerAuth) login(c net.Conn, _ peer.Purpose, id ensemble.ServerID, address string) (net.Conn, error) {
	x, err := a.begin(a.host(id, address))
	if err != nil {
		return nil, fmt.Errorf("quorum SASL: %w", err)
	}
	r := bufio.NewReader(c)
	if err := quorumauth.Dial(r, c, x); err != nil {
		return nil, err
	}
	return unread(c, r), nil
}

// host returns the host of a server as its server line has it, because the principal of the
// server contains that host. If the server has no line, host returns the address that was dialled.
func (a *peerAuth) host(id ensemble.ServerID, address string) string {
	dialled, _, err := net.SplitHostPort(address)
	if err != nil {
		dialled = address
	}
	member, ok := a.members().Server(id)
	if !ok {
		return dialled
	}
	for _, a := range member.Addresses {
		if a.Host == dialled {
			return dialled
		}
	}
	return member.Addresses[0].Host // the server was dialled at an address that it has sent
}

// undecidedMax is how long admit waits for the start of a login that is not required. After that
// the connection counts as one without a login, as in ZooKeeper, because a server that does not
// log in may have nothing to send first.
const undecidedMax = 2 * time.Second

// admit lets a server that has dialled log in. After a failed login it refuses the connection,
// also if no login is required.
func (a *peerAuth) admit(c net.Conn, p peer.Purpose, _ ensemble.ServerID, address string) (net.Conn, error) {
	required := a.c.SASL.Quorum.ServerRequires
	x, err := a.accept()
	if err != nil { // the keytab has changed and cannot be read; x still uses the old keys
		a.notices.Say(slog.LevelWarn, "the keytab for logins of other servers cannot be read again; the old keys stay in use", "", "err", err)
	}
	r := bufio.NewReader(c)
	limit := peerHandshakeMax(a.c)
	if !required {
		c.SetReadDeadline(time.Now().Add(min(undecidedMax, limit)))
		offered := quorumauth.Offered(r)
		c.SetReadDeadline(time.Now().Add(limit))
		if !offered && p == peer.ForLearner && r.Buffered() == 0 {
			return c, nil // nothing was sent: this may be a port scan, so it is not logged
		}
		if !offered {
			a.notices.Say(slog.LevelInfo, "a connection from another server came without a login; it is accepted because quorum.auth.serverRequireSasl is not true", address)
			return unread(c, r), nil
		}
	}
	id, err := quorumauth.Accept(r, c, x)
	if err != nil {
		return nil, failedLogin{err}
	}
	a.log.Debug("another server has logged in", "peer", address, "id", id)
	return unread(c, r), nil
}

// failedLogin says why a server was refused.
type failedLogin struct{ error }

func (e failedLogin) Unwrap() error { return e.error }

// Kind returns the reason as one of a few fixed texts.
func (e failedLogin) Kind() string {
	switch {
	case errors.Is(e.error, quorumauth.ErrNotOffered):
		return "it does not log in"
	case errors.Is(e.error, os.ErrDeadlineExceeded):
		return "it did not log in in time"
	}
	return "its login failed"
}

// unread returns a connection whose reads first return the bytes that r has read ahead and not
// returned yet.
func unread(c net.Conn, r *bufio.Reader) net.Conn {
	ahead, _ := r.Peek(r.Buffered()) // never fails
	if len(ahead) == 0 {
		return c
	}
	return secure.Begun(c, bytes.Clone(ahead))
}
