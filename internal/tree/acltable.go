package tree

import (
	"strings"

	"bellwether/wire"
)

// aclTable stores each different ACL once. Place 0 is the ACL that grants everything to
// everybody; it has no entry in a snapshot and is not counted. The keys are those that
// snapshots contain; no key is assigned twice.
type aclTable struct {
	entries []aclEntry
	places  map[string]int32 // by the encoded list
	free    []int32
	nextKey int64
	scratch []byte
}

type aclEntry struct {
	list  []wire.ACL // never changed
	key   int64
	refs  int
	world int32 // the permissions of world:anyone
}

// openKey is the key of the open ACL in snapshots.
const openKey = -1

func newACLTable() aclTable {
	return aclTable{
		entries: []aclEntry{{list: wire.OpenACL(), key: openKey, world: wire.PermAll}},
		places:  map[string]int32{},
		nextKey: 1,
	}
}

func isOpen(list []wire.ACL) bool {
	return list == nil || len(list) == 1 && list[0].Perms == wire.PermAll && isWorld(list[0].ID)
}

func isWorld(id wire.ID) bool { return id.Scheme == "world" && id.ID == "anyone" }

// place returns the place of an ACL, which it copies if the table does not have it yet.
// The caller must then call use or release with that place.
func (a *aclTable) place(list []wire.ACL) int32 {
	if isOpen(list) {
		return 0
	}
	c := wire.Encoder(a.scratch[:0])
	c.ACLs(&list)
	a.scratch = c.Bytes()
	if i, ok := a.places[string(a.scratch)]; ok {
		return i
	}
	e := aclEntry{list: cloneACL(list), key: a.nextKey}
	a.nextKey++
	for _, entry := range list {
		if isWorld(entry.ID) {
			e.world |= entry.Perms
		}
	}
	i := int32(len(a.entries))
	if n := len(a.free); n > 0 {
		i, a.free = a.free[n-1], a.free[:n-1]
		a.entries[i] = e
	} else {
		a.entries = append(a.entries, e)
	}
	a.places[string(a.scratch)] = i
	return i
}

// use adds a znode to the users of an ACL; release removes one. An ACL without users is
// dropped.
func (a *aclTable) use(i int32) {
	if i != 0 {
		a.entries[i].refs++
	}
}

func (a *aclTable) release(i int32) {
	if i == 0 {
		return
	}
	e := &a.entries[i]
	if e.refs--; e.refs <= 0 {
		a.drop(i)
	}
}

func (a *aclTable) drop(i int32) {
	c := wire.Encoder(a.scratch[:0])
	c.ACLs(&a.entries[i].list)
	a.scratch = c.Bytes()
	delete(a.places, string(a.scratch))
	a.entries[i] = aclEntry{}
	a.free = append(a.free, i)
}

// sweep drops every ACL that no znode uses.
func (a *aclTable) sweep() {
	for i := range a.entries {
		if i != 0 && a.entries[i].list != nil && a.entries[i].refs == 0 {
			a.drop(int32(i))
		}
	}
}

// cloneACL copies an ACL with its strings, which may be parts of a request.
func cloneACL(list []wire.ACL) []wire.ACL {
	out := make([]wire.ACL, len(list))
	for i, a := range list {
		out[i] = wire.ACL{Perms: a.Perms, ID: wire.ID{Scheme: strings.Clone(a.ID.Scheme), ID: strings.Clone(a.ID.ID)}}
	}
	return out
}
