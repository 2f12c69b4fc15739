package share

import (
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
)

// Registered: the registration of a member stands.
type Registered struct{}

// RegistrationOver: it is over, as it was to be; Err says why, where not.
type RegistrationOver struct{ Err error }

// Seen: what a Cache tells, in order.
type Seen struct {
	Path   string // of its root
	Events []cache.CacheEvent
}

// CacheOver: a Cache is over, as it was to be; Err says why, where not.
type CacheOver struct {
	Path string // of its root
	Err  error
}

// BidOver: a bid for a part, and its term if it had one, is over, and gone.
type BidOver struct {
	Part string
	Told bool // that it is to let go, when it ended
	claim.TermEnd
}

// Tidied: an election is deleted, unless others stand in it.
type Tidied struct{ Part string }

func (Registered) Event()       {}
func (RegistrationOver) Event() {}
func (Seen) Event()             {}
func (CacheOver) Event()        {}
func (BidOver) Event()          {}
func (Tidied) Event()           {}

// roll is the names of a znode's children, as its Cache tells of them. To ask
// the Cache for all of them after each change would cost as much as all together.
type roll struct {
	root   string // empty: they never change
	mortal bool   // those of ephemeral znodes alone
	open   bool   // its Cache is followed
	known  bool   // all of them have been told
	names  []string
}

// hear takes what the Cache tells, and reports which names have gone, also where they
// are back, and whether all of it makes a difference.
func (r *roll) hear(events []cache.CacheEvent) (gone []string, news bool) {
	for _, e := range events {
		switch {
		case e.Type == cache.CacheCurrent:
			news = news || !r.known
			r.known = true
		case e.Type == cache.NodeChanged || e.Node.Path == r.root || r.mortal && e.Node.Stat.EphemeralOwner == 0:
		default:
			name := e.Node.Path[len(r.root)+1:]
			if e.Type == cache.NodeRemoved {
				gone = append(gone, name)
			}
			news = r.change(name, e.Type == cache.NodeAdded) || news
		}
	}
	return gone, news
}

// change adds a name, or removes it.
func (r *roll) change(name string, added bool) bool {
	i, there := slices.BinarySearch(r.names, name)
	switch {
	case added == there:
		return false
	case added:
		r.names = slices.Insert(r.names, i, name)
	default:
		r.names = slices.Delete(r.names, i, i+1)
	}
	return true
}
