package share

import (
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
)

// Registered reports that the registration of this member exists.
type Registered struct{}

// RegistrationOver reports that the registration has ended. Err is nil if that was requested.
type RegistrationOver struct{ Err error }

// Seen carries the events of a Cache, in order.
type Seen struct {
	Path   string // root of the Cache
	Events []cache.Event
}

// CacheOver reports that a Cache has ended. Err is nil if that was requested.
type CacheOver struct {
	Path string // root of the Cache
	Err  error
}

// BidOver reports that a bid for a part has ended, with its term if it had one, and is gone.
type BidOver struct {
	Part     string
	Resigned bool // the bid ended after the owner was told to let go
	claim.TermEnd
}

// Tidied reports that an election was deleted, or kept because it has bids.
type Tidied struct{ Part string }

func (Registered) Event()       {}
func (RegistrationOver) Event() {}
func (Seen) Event()             {}
func (CacheOver) Event()        {}
func (BidOver) Event()          {}
func (Tidied) Event()           {}

// nameList holds the names of a znode's children, in order. The events of a Cache keep it current. Reading all
// children from the Cache after each change would take time proportional to their number.
type nameList struct {
	root      string // root of the Cache; empty: the names never change
	ephemeral bool   // count only ephemeral children
	followed  bool   // the Cache is being followed
	known     bool   // the Cache has reported all names
	names     []string
}

// apply processes events of the Cache. gone holds the names that were removed, even if they exist again.
// news reports whether the names, or known, have changed.
func (r *nameList) apply(events []cache.Event) (gone []string, news bool) {
	for _, e := range events {
		switch {
		case e.Type == cache.Current:
			news = news || !r.known
			r.known = true
		case e.Type == cache.NodeChanged || e.Node.Path == r.root || r.ephemeral && e.Node.Stat.EphemeralOwner == 0:
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

// change adds or removes a name. It reports whether the list has changed.
func (r *nameList) change(name string, added bool) bool {
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
