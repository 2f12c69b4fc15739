package check

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/wire"
)

// IdentityOf returns the identity that a simulated client proves: that of one of two users.
func IdentityOf(client int) wire.ID {
	return wire.ID{Scheme: wire.SchemeDigest, ID: fmt.Sprintf("user%d:hash%d", client%2, client%2)}
}

// resolved returns the ACL that a znode gets by the request of a client.
func resolved(acl []wire.ACL, who wire.ID) []wire.ACL {
	acl = slices.Clone(acl)
	for i := range acl {
		if acl[i].ID.Scheme == wire.SchemeAuth {
			acl[i].ID = who
		}
	}
	return acl
}

// masked returns an ACL as clients see it that may not change it: without the hashes of passwords.
func masked(acl []wire.ACL) []wire.ACL {
	acl = slices.Clone(acl)
	for i := range acl {
		if user, _, ok := strings.Cut(acl[i].ID.ID, ":"); ok && acl[i].ID.Scheme == wire.SchemeDigest {
			acl[i].ID.ID = user + ":x"
		}
	}
	return acl
}
