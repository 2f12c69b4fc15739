package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/config"
	"bellwether/wire"
)

// errAuthFailed: the connection must be closed after the reply to an auth packet.
var errAuthFailed = errors.New("authentication failed")

// errNullToken: a SASL packet has no token, so the connection must be closed without a reply.
var errNullToken = errors.New("sasl packet without a token")

// authenticate answers an auth packet at once: it does not wait for earlier requests, and
// later requests carry the new identities. If the packet cannot be decoded, the
// connection is closed without a reply, as ZooKeeper does, because it is unknown what the
// client wanted to prove.
func (c *conn) authenticate(xid int32, body []byte) error {
	var q wire.AuthRequest
	if err := wire.Decode(body, &q); err != nil {
		return fmt.Errorf("auth packet: %w", err)
	}
	ids := c.proved(&q)
	if ids == nil {
		c.srv.stats.authFailed.Add(1)
		c.push(item{header: wire.ReplyHeader{Xid: xid, Err: wire.ErrAuthFailed}})
		return errAuthFailed
	}
	if !c.addIDs(ids) {
		c.push(item{header: wire.ReplyHeader{Xid: xid, Err: wire.ErrAuthFailed}})
		return errAuthFailed
	}
	c.push(item{header: wire.ReplyHeader{Xid: xid}})
	return nil
}

// addIDs adds identities to those that the client has proved. It returns false if they are
// too many or too long.
func (c *conn) addIDs(ids []wire.ID) bool {
	all := slices.Clone(*c.ids.Load())
	for _, id := range ids {
		if !slices.Contains(all, id) {
			all = append(all, id)
			c.countGuess(id, ids)
		}
	}
	length := 0
	for _, id := range all {
		length += len(id.Scheme) + len(id.ID)
	}
	if len(all) > identitiesMax || length > identityBytesMax {
		return false
	}
	c.ids.Store(&all)
	return true
}

// The limits of what one connection may prove. A follower sends all identities with each write
// to its leader, which takes no packet above peerwire.PacketMax.
const (
	identitiesMax    = 1024
	identityBytesMax = 256 << 10
)

// proved returns the identities that an auth packet proves; nil if it proves none. The
// scheme x509 repeats what the client's certificate has proved, and sasl belongs to SASL
// packets. The schemes world and auth cannot be proved.
func (c *conn) proved(q *wire.AuthRequest) []wire.ID {
	switch q.Scheme.String {
	case "ip":
		return []wire.ID{{Scheme: "ip", ID: c.addr.Addr().String()}}
	case "x509":
		var ids []wire.ID
		for _, id := range *c.ids.Load() {
			if id.Scheme == "x509" {
				ids = append(ids, id)
			}
		}
		return ids
	case "digest":
		if q.Auth == nil {
			return nil
		}
		return digestIDs(&c.srv.config().Access, wire.UTF8(q.Auth))
	}
	return nil
}

// countGuess counts a new identity of the scheme digest as an attempt to log in. If it has the
// name of the super user but not the password, countGuess counts a failed login at once.
func (c *conn) countGuess(id wire.ID, ids []wire.ID) {
	switch {
	case id.Scheme != "digest" || len(ids) > 1: // with two ids, the password is that of the super user
	case namesSuper(&c.srv.config().Access, id.ID):
		c.srv.loginFailed(c.addr.Addr(), 1)
	default:
		c.guesses.Add(1)
	}
}

// namesSuper reports whether the text before the first colon is the name of the super user.
func namesSuper(access *config.Access, text string) bool {
	super, _, configured := strings.Cut(access.SuperDigest, ":")
	user, _, _ := strings.Cut(text, ":")
	return configured && user == super
}

// digestIDs returns the identity of a text of the form user:password. Any text proves an
// identity; an ACL names the hashes that it admits.
func digestIDs(access *config.Access, text string) []wire.ID {
	user, _, _ := strings.Cut(text, ":")
	hash := access.DigestHash.New()
	hash.Write([]byte(text))
	id := user + ":" + base64.StdEncoding.EncodeToString(hash.Sum(nil))
	ids := []wire.ID{{Scheme: "digest", ID: id}}
	if access.SuperDigest != "" && id == access.SuperDigest {
		ids = append(ids, wire.ID{Scheme: "super"})
	}
	return ids
}

// whoAmI lists the identities of the client. Of a digest it shows only the user.
func (c *conn) whoAmI() *wire.WhoAmIResponse {
	r := &wire.WhoAmIResponse{Clients: []wire.ClientInfo{}}
	for _, id := range *c.ids.Load() {
		user := id.ID
		if id.Scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		r.Clients = append(r.Clients, wire.ClientInfo{Scheme: id.Scheme, User: user})
	}
	return r
}
