package view

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/server"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Watches shows the znodes on which clients of this server have the most watches.
type Watches struct {
	Total    int64      `json:"total"`    // watches
	Paths    int64      `json:"paths"`    // paths that have a watch
	Watchers int64      `json:"watchers"` // connections with a watch
	Hot      []HotWatch `json:"hot"`      // the paths with most watchers
	FanOuts  []FanOut   `json:"fan_outs"` // the last changes that notified many connections, newest first
	Hidden   int        `json:"hidden"`   // entries that access-control lists hide from the viewer
}

// HotWatch is a path with many watchers. The numbers count connections.
type HotWatch struct {
	Path       string `json:"path"`
	Watchers   int    `json:"watchers"`
	Data       int    `json:"data"`       // one-shot watches of exists or getData
	Children   int    `json:"children"`   // one-shot watches of getChildren
	Persistent int    `json:"persistent"` // persistent watches
	Recursive  int    `json:"recursive"`  // recursive watches of this path and of paths above
	Notifies   int    `json:"notifies"`   // connections that one change may notify
	Warning    string `json:"warning,omitempty"`
}

// FanOut is a change that notified many connections.
type FanOut struct {
	At       time.Time `json:"at"`
	Event    string    `json:"event"`
	Path     string    `json:"path"`
	Zxid     string    `json:"zxid"`
	Notified int       `json:"notified"`
}

// HotMax is how many paths are shown.
const HotMax = 50

// hotEvery is the time between two reads of the table of watches. A read takes longer the more watches there are.
const hotEvery = time.Second

// HerdMin is how many connections one change must notify for a herd warning.
const HerdMin = server.FanOutMin

// Watches returns the znodes with the most watches. The paths are up to hotEvery old.
func (v *View) Watches(who Who) *Watches {
	t, r := v.srv.Tree(), who.reader()
	c := t.Counts()
	w := &Watches{Total: c.Watches, Paths: c.WatchPaths, Watchers: c.Watchers, Hot: []HotWatch{}, FanOuts: []FanOut{}}
	hot := v.hot.get(hotEvery, func() []tree.HotWatch { return t.HotWatches(HotMax) })
	for _, h := range hot {
		if !mayKnow(t, r, h.Path) {
			w.Hidden++
			continue
		}
		w.Hot = append(w.Hot, hotWatch(t, r, h))
	}
	for _, f := range v.srv.FanOuts() {
		if !mayKnow(t, r, f.Path) {
			w.Hidden++
			continue
		}
		w.FanOuts = append(w.FanOuts, FanOut{At: f.At.UTC(), Event: f.Type.String(), Path: f.Path, Zxid: f.Zxid.String(), Notified: f.Watchers})
	}
	return w
}

// mayKnow reports whether a viewer may know that a path exists. It must be allowed to read the znode and all znodes
// above it, because only clients that may read a znode may list its children.
func mayKnow(t *tree.Tree, r *reader, path string) bool {
	for {
		code := t.Exists(r, path, false, new(wire.StatResponse))
		if code != wire.OK && !errors.Is(code, wire.ErrNoNode) {
			return false
		}
		if path == "/" || path == "" {
			return true
		}
		path = parentOf(path)
	}
}

// parentOf returns the path above a path.
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func hotWatch(t *tree.Tree, r *reader, h tree.HotWatch) HotWatch {
	o := HotWatch{Path: h.Path, Watchers: h.Watchers, Data: h.Data, Children: h.Children, Persistent: h.Persistent, Recursive: h.Recursive + h.Above,
		Notifies: max(h.DataEvent, h.ChildEvent)}
	if o.Notifies < HerdMin {
		return o
	}
	what := "A change of this znode"
	if h.ChildEvent > h.DataEvent {
		what = "A child that is created or deleted here"
	}
	o.Warning = fmt.Sprintf("%s notifies %d connections at once.", what, o.Notifies)
	if bid, holds := herd(t, r, h); holds {
		o.Warning += " Its children are the bids of a lock or an election, and every client watches all of them: each should watch only the bid before its own."
	} else if bid {
		o.Warning += " It is a bid of a lock or an election, and all clients watch the same bid: each should watch only the bid before its own."
	} else if h.Data+h.Children >= HerdMin {
		o.Warning += " With one-shot watches, all of them read it again at the same time."
	}
	return o
}

// herd reports whether watches of a path belong to a lock or an election: bid is true if the path is a bid, or if
// its children are bids and clients watch the list of them. holds is true in the second case.
func herd(t *tree.Tree, r *reader, h tree.HotWatch) (bid, holds bool) {
	if _, err := claim.ParseBid(h.Path[strings.LastIndexByte(h.Path, '/')+1:]); err == nil {
		return true, false
	}
	var list tree.Listing
	if code, ready := t.ChildrenReady(r, h.Path, false, &list); !ready || code != wire.OK {
		return false, false
	}
	for _, name := range list.Children {
		if _, err := claim.ParseBid(name); err == nil && h.Children > 0 {
			return true, true
		}
	}
	return false, false
}

func beforeColon(text string) string {
	before, _, _ := strings.Cut(text, ":")
	return before
}
