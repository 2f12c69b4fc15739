package admin

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"bellwether/wire"
)

// errNotAuthenticated: the Authorization header proves no identity.
//
//lint:ignore ST1005 the text is ZooKeeper's
var errNotAuthenticated = errors.New("Not authenticated")

// permitted authenticates the client of a guarded command by its Authorization header, as
// ZooKeeper 3.9 does, and reports whether it has all permissions on the root znode. If not,
// the answer says why. Before that, a client whose earlier logins failed must wait.
func (c *call) permitted() bool {
	all := c.http.Header.Values("Authorization")
	if len(all) == 0 {
		c.code, c.err = http.StatusUnauthorized, "Auth info is missing for the command"
		return false
	}
	from := c.remote()
	if !pause(c.http, c.server.LoginDelay(from)) {
		c.code, c.err = http.StatusServiceUnavailable, "the client or the server ended the request before the login was checked"
		return false
	}
	ids, guess, err := c.identities(all[0], from)
	if err != nil {
		c.code, c.err = http.StatusUnauthorized, errNotAuthenticated.Error()
		return false
	}
	permits, _ := c.server.Tree().Permits("/", wire.PermAll, ids)
	if !permits || c.server.IsSuperUser(guess) && len(ids) == 1 {
		if guess != "" {
			c.server.LoginFailed(from)
		}
	}
	if !permits {
		c.code, c.err = http.StatusForbidden, "Not authorized"
	}
	return permits
}

// identities returns the identities that an Authorization header proves. guess is the name and
// password of the header, which an attacker may have guessed; empty with other schemes.
func (c *call) identities(header string, from netip.Addr) (ids []wire.ID, guess string, err error) {
	parts := strings.Split(strings.TrimRight(header, " "), " ")
	if len(parts) > 2 {
		return nil, "", errNotAuthenticated
	}
	switch scheme := parts[0]; {
	case scheme == "digest" && len(parts) == 2:
		return c.server.DigestIDs(wire.UTF8([]byte(parts[1]))), parts[1], nil
	case scheme == "ip":
		return []wire.ID{{Scheme: "ip", ID: c.claimedAddress(from)}}, "", nil
	case scheme == "x509":
		ids, err := c.server.CertificateIDs(c.http.Context(), c.http.TLS, from)
		return ids, "", err
	}
	return nil, "", errNotAuthenticated
}

// claimedAddress returns the client's address for the scheme ip. If the operator trusts the
// header X-Forwarded-For, it is the first address there.
func (c *call) claimedAddress(from netip.Addr) string {
	if c.server.Config().Admin.ForwardedFor {
		first, _, _ := strings.Cut(c.http.Header.Get("X-Forwarded-For"), ",")
		if first = strings.TrimSpace(first); first != "" {
			return first
		}
	}
	return from.String()
}

// remote returns the address of the client.
func (c *call) remote() netip.Addr {
	from, err := netip.ParseAddrPort(c.http.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap().WithZone("")
}

// pause waits. It returns false if the request ends before.
func pause(r *http.Request, wait time.Duration) bool {
	if wait <= 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
