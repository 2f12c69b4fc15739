package view

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"bellwether/internal/server"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// View reads from one server. Its methods are safe for concurrent use.
type View struct {
	srv       *server.Server
	version   string
	ensemble  cached[*Ensemble]
	elections cached[*Elections]
	hot       cached[[]tree.HotWatch]
	heavy     chan struct{} // has an element for each expensive read that runs
}

// heavyMax is how many expensive reads run at the same time.
const heavyMax = 2

// New returns a view of a server. version is the program's version.
func New(s *server.Server, version string) *View {
	return &View{srv: s, version: version, heavy: make(chan struct{}, heavyMax)}
}

// Who describes the viewer for whom a read is made.
type Who struct {
	Addr  netip.Addr // the viewer reads what a client at this address may read
	Super bool       // the viewer reads everything
}

// reader is a viewer as the tree sees it. It sets no watches.
type reader struct{ ids []wire.ID }

func (w Who) reader() *reader {
	ids := []wire.ID{{Scheme: "ip", ID: w.Addr.Unmap().String()}}
	if w.Super {
		ids = append(ids, wire.ID{Scheme: "super"})
	}
	return &reader{ids}
}

// The methods of tree.Client.

func (r *reader) Session() wire.SessionID { return 0 }
func (r *reader) Identities() []wire.ID   { return r.ids }
func (r *reader) Notify(tree.Event)       {}
func (r *reader) Overflow()               {}
func (r *reader) Reserve(wire.Zxid)       {}

var _ tree.Client = (*reader)(nil)

// Error is a request that cannot be answered.
type Error struct {
	Kind  Kind
	What  string // what is wrong
	Where string // the path, parameter or server concerned
	Do    string // what to do
}

func (e *Error) Error() string {
	text := e.What
	if e.Where != "" {
		text = e.Where + ": " + text
	}
	if e.Do != "" {
		text += ": " + e.Do
	}
	return text
}

// Kind is a class of errors.
type Kind int

// The kinds of errors.
const (
	Wrong     Kind = iota // the request is wrong
	Missing               // what the request names does not exist
	Forbidden             // the viewer may not see or do it
	Conflict              // the state has changed, or does not allow it
	Busy                  // try again later
	Failed                // the server failed
)

// enterMax is how long an expensive read waits for its place.
const enterMax = 5 * time.Second

// enter waits until one more expensive read may run. The caller must call leave after the read.
func (v *View) enter(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, enterMax)
	defer cancel()
	select {
	case v.heavy <- struct{}{}:
		return func() { <-v.heavy }, nil
	case <-ctx.Done():
		return nil, &Error{Kind: Busy, What: "other viewers are searching", Do: "try again"}
	}
}

// treeError returns the error for the code of a read that the tree has refused.
func treeError(code wire.Code, path string) error {
	switch {
	case errors.Is(code, wire.ErrNoNode):
		return &Error{Missing, "there is no such znode", path, "it may have been deleted; look at its parent, or at its history"}
	case errors.Is(code, wire.ErrNoAuth):
		return &Error{Forbidden, "the access-control list of the znode does not let you read it", path, "sign in as an operator"}
	}
	return &Error{Wrong, code.Error(), path, "correct the path"}
}

// checkPath returns an error if a text is not the path of a znode.
func checkPath(path string) error {
	if path == "/" {
		return nil
	}
	if len(path) < 2 || path[0] != '/' || path[len(path)-1] == '/' {
		return &Error{Wrong, fmt.Sprintf("%q is no path", path), "path", "a path begins with a slash and does not end with one"}
	}
	return nil
}

// at converts milliseconds since 1970.
func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
