package check

import (
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// reader is the client that reads the committed tree.
type reader struct{}

func (reader) Session() wire.SessionID { return 0 }
func (reader) Identities() []wire.ID   { return nil }
func (reader) Notify(tree.Event)       {}
func (reader) Overflow()               {}
func (reader) Reserve(wire.Zxid)       {}

// Content returns the data and stat of a znode in the committed tree. It returns false if
// there is no such znode.
func (h *History) Content(path string) ([]byte, wire.Stat, bool) {
	var r wire.DataResponse
	if h.Tree.GetData(reader{}, path, false, &r) != wire.OK {
		return nil, wire.Stat{}, false
	}
	return r.Data, r.Stat, true
}

// Names returns the children of a znode in the committed tree.
func (h *History) Names(parent string) []string {
	var r tree.Listing
	if h.Tree.Children(reader{}, parent, false, &r) != wire.OK {
		return nil
	}
	return r.All()
}

// FirstBid returns the session of the first bid below a znode; 0: there is none.
func (h *History) FirstBid(parent string) wire.SessionID {
	bids := claim.ParseBids(h.Names(parent))
	slices.SortFunc(bids, func(a, b claim.Bid) int { return int(a.Seq - b.Seq) })
	for _, b := range bids {
		if _, stat, _ := h.Content(claim.Join(parent, b.Name)); stat.EphemeralOwner != 0 {
			return stat.EphemeralOwner
		}
	}
	return 0
}

// Walk calls see for each znode of the committed tree at and below a path.
func (h *History) Walk(path string, see func(string, wire.Stat, []byte)) {
	data, stat, there := h.Content(path)
	if !there {
		return
	}
	see(path, stat, data)
	for _, name := range h.Names(path) {
		h.Walk(claim.Join(path, name), see)
	}
}
