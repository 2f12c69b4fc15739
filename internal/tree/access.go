package tree

import (
	"slices"
	"strings"

	"bellwether/wire"
)

// The schemes of identities and access-control lists.
const (
	schemeWorld  = "world"
	schemeAuth   = "auth"
	schemeDigest = "digest"
	schemeIP     = "ip"
	schemeX509   = "x509"
	schemeSASL   = "sasl"
	schemeSuper  = "super"
)

// permits checks the ACL of a znode; see permitsList.
func (t *Tree) permits(acl, perm int32, ids []wire.ID) bool {
	e := &t.acls.entries[acl]
	return e.world&perm != 0 || t.permitsList(e.list, perm, ids)
}

// Permits reports whether the ACL of a znode gives the identities every permission in perms.
// exists is false if there is no such znode.
func (t *Tree) Permits(path string, perms int32, ids []wire.ID) (permits, exists bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.find(path)
	if n == nil {
		return false, false
	}
	for bit := int32(1); bit > 0 && bit <= perms; bit <<= 1 {
		if perms&bit != 0 && !t.permits(n.acl, bit, ids) {
			return false, true
		}
	}
	return true, true
}

// permitsList reports whether the list gives one of the identities any of the permissions
// in perm. An empty list grants everything.
func (t *Tree) permitsList(list []wire.ACL, perm int32, ids []wire.ID) bool {
	if t.o.SkipACL || len(list) == 0 {
		return true
	}
	for _, id := range ids {
		if id.Scheme == schemeSuper {
			return true
		}
	}
	for i := range list {
		if list[i].Perms&perm != 0 && t.satisfies(ids, &list[i].ID) {
			return true
		}
	}
	return false
}

// rulings remembers what long ACLs permit, for the parts of one multi or multiRead: 20,000 parts
// that each compare a long ACL with many identities would keep the tree busy for minutes. All
// parts have the same identities, and a list of a znode never changes.
type rulings map[ruling]bool

// ruling is a key of rulings: a list, which its first entry and its length identify, and a
// permission.
type ruling struct {
	list   *wire.ACL
	length int
	perm   int32
}

// rulingMin is how many comparisons an answer must cost to be remembered.
const rulingMin = 256

// permits returns the same as Tree.permitsList. It remembers the answers that cost many
// comparisons.
func (r *rulings) permits(t *Tree, list []wire.ACL, perm int32, ids []wire.ID) bool {
	if len(list)*len(ids) < rulingMin {
		return t.permitsList(list, perm, ids)
	}
	key := ruling{&list[0], len(list), perm}
	yes, known := (*r)[key]
	if known {
		return yes
	}
	if *r == nil {
		*r = rulings{}
	}
	yes = t.permitsList(list, perm, ids)
	(*r)[key] = yes
	return yes
}

// satisfies reports whether one of the identities in ids matches the identity that an ACL
// entry names.
func (t *Tree) satisfies(ids []wire.ID, want *wire.ID) bool {
	if isWorld(*want) {
		return true
	}
	for _, id := range ids {
		if id.Scheme == want.Scheme && t.matches(id, want.ID) {
			return true
		}
	}
	return false
}

// matches compares an identity with the id of an ACL entry that has the same scheme.
func (t *Tree) matches(id wire.ID, want string) bool {
	switch id.Scheme {
	case schemeDigest:
		return id.ID == want
	case schemeIP:
		return matchesIP(id.ID, want)
	case schemeX509:
		return id.ID == want || t.o.X509Super != "" && id.ID == t.o.X509Super
	case schemeSASL:
		return t.o.SchemeSASL && (id.ID == want || id.ID == schemeSuper ||
			t.o.LetAnySASLUser != "" && want == t.o.LetAnySASLUser)
	}
	return false
}

// provesIdentity reports whether identities of the scheme are put in place of `auth` in
// an ACL. An id of the scheme sasl can come from another server, whose configuration differs.
func (t *Tree) provesIdentity(scheme string) bool {
	return scheme == schemeDigest || scheme == schemeX509 || scheme == schemeSASL && t.o.SchemeSASL
}

// expandMax limits how many bytes the ids that replace `auth` may take in one request,
// because many entries times many logins would be a large list.
const expandMax = wire.FrameMax

// resolveACL turns the ACL of a request into the one that is stored: it removes repeated
// entries and replaces `auth` by the ids of the connection. It returns false if the ACL
// is not valid, or becomes too long.
func (p *proposal) resolveACL(list []wire.ACL) ([]wire.ACL, bool) {
	if isOpen(list) && list != nil {
		return list, true
	}
	var out []wire.ACL
	var seen map[wire.ACL]bool
	if len(list) > 1 {
		seen = make(map[wire.ACL]bool, len(list))
	}
	for _, entry := range list {
		again := seen[entry]
		if seen != nil {
			seen[entry] = true
		}
		switch {
		case again:
		case entry.ID.Scheme == schemeAuth:
			before := len(out)
			if out = p.expand(out, entry.Perms); len(out) == before || p.expanded > expandMax {
				return nil, false
			}
		case !p.t.validID(entry.ID):
			return nil, false
		default:
			out = append(out, entry)
		}
	}
	return out, len(out) > 0
}

// expand appends an entry for each id of the connection that proves an identity.
func (p *proposal) expand(out []wire.ACL, perms int32) []wire.ACL {
	for _, id := range p.ids {
		if p.t.provesIdentity(id.Scheme) && p.expanded <= expandMax {
			p.expanded += len(id.Scheme) + len(id.ID) + 3*4
			out = append(out, wire.ACL{Perms: perms, ID: id})
		}
	}
	return out
}

// validID reports whether an entry of an ACL may have this id.
func (t *Tree) validID(id wire.ID) bool {
	switch id.Scheme {
	case schemeWorld:
		return id.ID == "anyone"
	case schemeDigest:
		return validDigestID(id.ID)
	case schemeIP:
		_, ok := parseIP(id.ID)
		return ok
	case schemeX509:
		return t.o.SchemeX509 && validSubject(id.ID)
	case schemeSASL:
		return t.o.SchemeSASL && validPrincipal(id.ID)
	}
	return false
}

// validDigestID reports whether an id has two parts when split at the colons. Empty parts
// at the end do not count.
func validDigestID(id string) bool {
	return strings.Count(strings.TrimRight(id, ":"), ":") == 1
}

// validPrincipal reports whether a name is a plain name, name@realm or name/host@realm.
func validPrincipal(id string) bool {
	name, realm, found := strings.Cut(id, "@")
	if !found {
		return true
	}
	return !strings.ContainsAny(realm, "/@") && strings.Count(name, "/") <= 1
}

// maskACL hides the hashes of digest ids from clients that may not change the ACL.
func maskACL(list []wire.ACL) []wire.ACL {
	out := slices.Clone(list)
	for i := range out {
		if out[i].ID.Scheme == schemeDigest {
			user, _, _ := strings.Cut(out[i].ID.ID, ":")
			out[i].ID.ID = user + ":x"
		}
	}
	return out
}
