package tree

import (
	"fmt"
	"testing"

	"bellwether/wire"
)

// TestUnknownSchemeGrantsNothing: an entry of an ACL with a scheme that this server does not know grants nothing to an
// identity of the same scheme. Such entries and identities come from servers with other plug-ins.
func TestUnknownSchemeGrantsNothing(t *testing.T) {
	if New(Options{}).permitsList([]wire.ACL{acl(31, "other:x")}, 1, []wire.ID{id("other:x")}) {
		t.Error("the entry other:x lets other:x in")
	}
}

// TestAllPartsAreEncodedInAdvance: the names of a znode whose children are divided into parts are encoded part by part, down to the
// last one, so that a listing has nothing left to encode.
func TestAllPartsAreEncodedInAdvance(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/many", 0))
	for i := range divideAt + 1 {
		w.ok(create(fmt.Sprintf("/many/%d", i), 0))
	}
	names := 0
	ready := w.tree.EncodeNames("/many")
	for _, n := range ready {
		names += n.Count
	}
	if len(ready) != childParts || names != divideAt+1 {
		t.Errorf("%d parts with %d names, want %d with %d", len(ready), names, childParts, divideAt+1)
	}
}
