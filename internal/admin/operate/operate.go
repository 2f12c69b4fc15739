package operate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"time"

	"bellwether/internal/admin/view"
	"bellwether/internal/claim"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/server"
	"bellwether/wire"
	"bellwether/zk"
)

// Changes carries out changes of one server and its ensemble. Its methods are safe for
// concurrent use.
type Changes struct{ srv *server.Server }

// New returns the changes of a server.
func New(s *server.Server) *Changes { return &Changes{srv: s} }

// changeMax is how long a change may take.
const changeMax = 10 * time.Second

// closeMax is how long the close of the session that made the change may take.
const closeMax = 2 * time.Second

// Transferred describes a completed leadership transfer.
type Transferred struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Epoch  int64 `json:"epoch"` // epoch of the new leader
	TookMS int64 `json:"took_ms"`
}

// Transfer transfers leadership from this server to the server to; nil: to the most suitable server.
func (c *Changes) Transfer(ctx context.Context, o server.Operator, to *int64) (*Transferred, error) {
	next := peerwire.NoServer
	if to != nil {
		next = ensemble.ServerID(*to)
	}
	ctx, cancel := context.WithTimeout(ctx, changeMax)
	defer cancel()
	t, err := c.srv.TransferLeadership(ctx, next)
	c.srv.Record(o, "transferLeadership", "", err)
	if err != nil {
		return nil, &view.Error{Kind: view.Conflict, What: err.Error(), Where: "leadership", Do: "ask the leader, and name a follower that is caught up"}
	}
	return &Transferred{From: int64(t.From), To: int64(t.To), Epoch: int64(t.Epoch), TookMS: t.Took.Milliseconds()}, nil
}

// CloseSession ends the session with an id such as 0x100000000000001.
func (c *Changes) CloseSession(o server.Operator, id string) error {
	session, err := parseSession(id)
	if err != nil {
		return err
	}
	switch err := c.srv.CloseSession(o, session); {
	case errors.Is(err, server.ErrNoSession):
		return &view.Error{Kind: view.Missing, What: "there is no such session: it has ended already, or its id is wrong", Where: id}
	case err != nil:
		return changeError(err, id)
	}
	return nil
}

// parseSession parses the id of a session.
func parseSession(text string) (wire.SessionID, error) {
	var id uint64
	if n, err := fmt.Sscanf(text, "0x%x", &id); n != 1 || err != nil || id == 0 || wire.SessionID(id).String() != text {
		return 0, &view.Error{Kind: view.Wrong, What: fmt.Sprintf("%q is no session id", text), Where: "session", Do: "use the form 0x100000000000001"}
	}
	return wire.SessionID(id), nil
}

// Snapshot is a snapshot that was written.
type Snapshot struct {
	Zxid  string `json:"zxid"`
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Snapshot writes a snapshot now. It waits until the snapshot is written.
func (c *Changes) Snapshot(ctx context.Context, o server.Operator) (*Snapshot, error) {
	file, err := c.srv.TakeSnapshot(ctx)
	c.srv.Record(o, "snapshot", "", err)
	if err != nil {
		return nil, &view.Error{Kind: view.Failed, What: "the snapshot was not written: " + err.Error(), Where: "snapshot", Do: "look into the log of the server, and check its disk"}
	}
	return &Snapshot{Zxid: file.Zxid.String(), File: file.Path, Bytes: file.Size}, nil
}

// SetTracing switches the tracing of every request on or off, until the server starts or reads its configuration again.
func (c *Changes) SetTracing(o server.Operator, on bool) {
	c.srv.SetTracing(on)
	operation := "stopTracing"
	if on {
		operation = "startTracing"
	}
	c.srv.Record(o, operation, "", nil)
}

// Written describes a znode after a change.
type Written struct {
	Path    string `json:"path"`
	Zxid    string `json:"zxid"` // zxid of the change
	Version int32  `json:"version"`
}

// membership is the path of the znode that describes the ensemble. Clients find the servers by it, and the servers
// write it themselves.
const membership = "/zookeeper/config"

// Set replaces the data of a znode if it has the version; -1: any.
func (c *Changes) Set(ctx context.Context, o server.Operator, path string, data []byte, version int32) (w *Written, err error) {
	if path == membership {
		return nil, &view.Error{Kind: view.Wrong, What: "the servers write this znode themselves: it describes the ensemble", Where: path, Do: "change the members in the configuration of the servers"}
	}
	err = c.change(ctx, o, path, func(ctx context.Context, zc *zk.Client) error {
		st, err := zc.Set(ctx, path, data, version)
		w = &Written{path, st.Mzxid.String(), st.Version}
		return err
	})
	return w, err
}

// Create makes a znode that anyone may read and change. kind is persistent or container; the other kinds
// belong to sessions, or need a TTL.
func (c *Changes) Create(ctx context.Context, o server.Operator, path string, data []byte, kind string) (w *Written, err error) {
	opts := []zk.CreateOption{zk.OpenACL()}
	switch kind {
	case "", "persistent":
	case "container":
		opts = append(opts, zk.Container)
	default:
		return nil, &view.Error{Kind: view.Wrong, What: fmt.Sprintf("znodes of the kind %q cannot be created here", kind), Where: "kind", Do: "use persistent or container"}
	}
	err = c.change(ctx, o, path, func(ctx context.Context, zc *zk.Client) error {
		made, st, err := zc.Create(ctx, path, data, opts...)
		w = &Written{made, st.Czxid.String(), st.Version}
		return err
	})
	return w, err
}

// Delete removes a znode without children if it has the version; -1: any.
func (c *Changes) Delete(ctx context.Context, o server.Operator, path string, version int32) error {
	return c.change(ctx, o, path, func(ctx context.Context, zc *zk.Client) error { return zc.Delete(ctx, path, version) })
}

// Kick deletes the bid of a client, so that the next one in line takes its place. token is the bid's
// czxid, so that a later bid at the same path is not deleted.
func (c *Changes) Kick(ctx context.Context, o server.Operator, bid, token string) error {
	return c.change(ctx, o, bid, func(ctx context.Context, zc *zk.Client) error {
		st, ok, err := zc.Exists(ctx, bid)
		switch {
		case err != nil:
			return err
		case !ok || st.Czxid.String() != token:
			return &view.Error{Kind: view.Conflict, What: "the bid has already been deleted", Where: bid, Do: "look at the recipe again"}
		}
		if _, err := claim.ParseBid(path.Base(bid)); err != nil && st.EphemeralOwner == 0 && path.Base(bid) != "LEADER" {
			return &view.Error{Kind: view.Wrong, What: "the znode is neither a bid nor ephemeral", Where: bid, Do: "delete it in the tree browser"}
		}
		return zc.Delete(ctx, bid, st.Version)
	})
}

// change carries out a change on a connection of its own.
func (c *Changes) change(ctx context.Context, o server.Operator, path string, f func(context.Context, *zk.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, changeMax)
	defer cancel()
	refused := make(chan error, 1) // why there is no connection
	zc, err := zk.Connect(ctx, "127.0.0.1:1", &zk.Options{
		SessionTimeout: changeMax, OneSession: true, FrameMax: c.srv.Config().Limits.FrameBytes,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			conn, err := c.srv.Connect(o)
			if err != nil {
				select {
				case refused <- err:
				default: // the first reason is there already
				}
				cancel() // the client must not try again: that would be refused too
			}
			return conn, err
		},
	})
	if err != nil {
		select {
		case err = <-refused:
		default:
		}
		return changeError(err, path)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeMax)
		defer cancel()
		_ = zc.Close(ctx) // otherwise the session expires
	}()
	return changeError(f(ctx, zc), path)
}

// changeError returns an error of a change together with what an operator can do about it.
func changeError(err error, where string) error {
	var known *view.Error
	var large *zk.TooLargeError
	kind, do := view.Failed, "look into the log of the server"
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &large):
		return &view.Error{Kind: view.Wrong, What: fmt.Sprintf("a request of %d bytes is too large: the limit is %d bytes (jute.maxbuffer)", large.Size, large.Max), Where: where, Do: "send less data, or raise the limit on all servers"}
	case errors.Is(err, zk.ErrNoNode):
		return &view.Error{Kind: view.Missing, What: "there is no such znode, or its parent is missing", Where: where, Do: "look at the parent"}
	case errors.Is(err, zk.ErrNodeExists):
		kind, do = view.Conflict, "choose another name, or set the data of the znode"
	case errors.Is(err, zk.ErrBadVersion):
		return &view.Error{Kind: view.Conflict, What: "the znode has changed meanwhile", Where: where, Do: "look at it again, and repeat the change if it is still right"}
	case errors.Is(err, zk.ErrNotEmpty):
		kind, do = view.Conflict, "delete its children first"
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		kind, do = view.Conflict, "choose another parent"
	case errors.Is(err, zk.ErrBadArguments), errors.Is(err, zk.ErrUnsupported):
		kind, do = view.Wrong, "correct the path or the kind"
	case errors.Is(err, zk.ErrQuotaExceeded):
		kind, do = view.Conflict, "raise the quota"
	case errors.Is(err, server.ErrNotServing), errors.Is(err, zk.ErrNotReadOnly):
		kind, do = view.Busy, "try again when the ensemble has a leader"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, zk.ErrConnectionLoss):
		kind, do = view.Busy, "the change may have been carried out: look before you repeat it"
	}
	return &view.Error{Kind: kind, What: err.Error(), Where: where, Do: do}
}
