package check

import (
	"strings"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// Watch is a one-shot watch of a client that has not fired yet.
type Watch struct {
	Path     string
	Children bool      // a watch on the list of children
	Missing  bool      // the znode did not exist when the watch was set
	Zxid     wire.Zxid // the client has seen what happened to the znode up to here
}

// Meets reports whether an event ends the watch.
func (w *Watch) Meets(e tree.Event) bool {
	switch {
	case w.Path != e.Path:
		return false
	case e.Type == wire.EventNodeDeleted:
		return true
	}
	return w.Children == (e.Type == wire.EventNodeChildrenChanged)
}

// TreeWatch is a watch of a tree or, if One is set, a persistent watch of one znode and its list of children.
type TreeWatch struct {
	Root  string
	One   bool
	Local bool                 // it consists of one-shot watches, because the server has no watches of trees
	Since wire.Zxid            // zxid at which it was registered on this connection; 0: not yet
	Told  map[string]wire.Zxid // zxid of the last event of each path
}

// Covers reports whether a path is in the tree.
func (w *TreeWatch) Covers(path string) bool {
	return path == w.Root || !w.One && strings.HasPrefix(path, strings.TrimSuffix(w.Root, "/")+"/")
}

// Means reports whether the server sends such an event for this watch.
func (w *TreeWatch) Means(e tree.Event) bool {
	return !w.Local && w.Covers(e.Path) && (w.One || e.Type != wire.EventNodeChildrenChanged)
}
