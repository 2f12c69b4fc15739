package view

import (
	"context"
	"errors"
	"slices"
	"time"

	"bellwether/internal/record"
	"bellwether/internal/store"
	"bellwether/wire"
)

// History lists the changes of one path that the transaction logs of this server still
// contain, the newest first.
type History struct {
	Path     string       `json:"path"`
	Changes  []PathChange `json:"changes"`
	From     string       `json:"from,omitempty"` // first zxid that was read; empty: no log was read
	To       string       `json:"to,omitempty"`   // last zxid that was read
	Bytes    int64        `json:"bytes"`          // bytes of logs that were read
	Complete bool         `json:"complete"`       // all logs that are still there were read, and all changes in them are listed
	Note     string       `json:"note,omitempty"` // why a log could not be read to its end
}

// PathChange is one transaction that changed a path.
type PathChange struct {
	Zxid    string    `json:"zxid"`
	At      time.Time `json:"at"`
	What    string    `json:"what"`    // create, setData, setACL or delete; deleteSession: the znode was ephemeral, and its session ended
	Session string    `json:"session"` // session that requested the change; empty: the server itself made it
	Address string    `json:"address,omitempty"`
	Bytes   *int      `json:"bytes,omitempty"`   // size of the new data
	Version *int32    `json:"version,omitempty"` // the new version of the data or the access-control list
	Multi   bool      `json:"multi,omitempty"`   // the change was a part of a multi
}

// Limits of reading logs.
const (
	HistoryMax   = 50        // changes that are listed
	historyBytes = 128 << 20 // bytes of logs that are read
	historyTime  = 2 * time.Second
)

// History returns the changes of a path. The viewer must be allowed to read the znode. If the
// znode is deleted, so is its access-control list, and only a super viewer gets the history.
func (v *View) History(ctx context.Context, who Who, path string) (*History, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	var st wire.StatResponse
	if code := v.srv.Tree().Exists(who.reader(), path, false, &st); code != wire.OK && !(who.Super && errors.Is(code, wire.ErrNoNode)) {
		return nil, treeError(code, path)
	}
	leave, err := v.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	h := &historian{History: History{Path: path, Changes: []PathChange{}, Complete: true}, addresses: v.addresses()}
	end := time.Now().Add(historyTime)
	err = v.srv.ReadHistory(func(fs store.FS, logDir string, stop func() bool) error {
		h.stop = func() bool { return stop() || ctx.Err() != nil || time.Now().After(end) }
		return h.read(fs, logDir)
	})
	if err != nil {
		return nil, &Error{Failed, "the transaction logs cannot be read: " + err.Error(), path, "check the disk of the server"}
	}
	return &h.History, nil
}

// addresses returns the addresses of the sessions that are connected to this server.
func (v *View) addresses() map[wire.SessionID]string {
	all := map[wire.SessionID]string{}
	for _, c := range v.srv.Connections() {
		if c.Session != 0 {
			all[c.Session] = c.Addr.String()
		}
	}
	return all
}

// historian collects the changes of a path from logs.
type historian struct {
	History
	stop      func() bool
	addresses map[wire.SessionID]string
	first     wire.Zxid // the first and the last zxid that was read; 0: none
	last      wire.Zxid
}

// read reads the logs, the newest first, until enough is known or a limit is reached.
func (h *historian) read(fs store.FS, logDir string) error {
	logs, err := store.Logs(fs, logDir)
	if err != nil {
		return err
	}
	for _, log := range slices.Backward(logs) {
		if len(h.Changes) >= HistoryMax || h.Bytes >= historyBytes || h.stop() {
			h.Complete = false
			break
		}
		found := h.readLog(fs, log)
		slices.Reverse(found)
		h.Changes = append(h.Changes, found...)
	}
	if h.last > 0 {
		h.From, h.To = h.first.String(), h.last.String()
	}
	if len(h.Changes) > HistoryMax {
		h.Changes, h.Complete = h.Changes[:HistoryMax], false
	}
	return nil
}

// stopEvery is how many log records or znodes are read between two checks of the time limit.
const stopEvery = 256

// readLog returns the changes in one log, the oldest first. The end of a log may look damaged
// while the server writes it, so damage only ends the reading of this log.
func (h *historian) readLog(fs store.FS, log store.LogFile) (found []PathChange) {
	n, begun := 0, h.Bytes
	for e, err := range store.DumpLog(fs, log.Path) {
		if err != nil {
			h.Complete, h.Note = false, err.Error()
			break
		}
		n++
		h.last = max(h.last, e.Txn.Zxid)
		if h.first == 0 || e.Txn.Zxid < h.first {
			h.first = e.Txn.Zxid
		}
		found = h.add(found, e.Txn)
		if h.Bytes = begun + e.End; h.Bytes >= historyBytes || n%stopEvery == 0 && h.stop() {
			h.Complete = false
			break
		}
	}
	return found
}

// add appends to found the changes that one transaction made to the path.
func (h *historian) add(found []PathChange, t *record.Txn) []PathChange {
	c := PathChange{Zxid: t.Zxid.String(), At: at(t.Time), Address: h.addresses[t.Session]}
	if t.Session != 0 {
		c.Session = t.Session.String()
	}
	switch b := t.Body.(type) {
	case *record.MultiTxn:
		if b.Failed() {
			return found
		}
		c.Multi = true
		for _, op := range b.Ops {
			if h.matches(&c, op.Body) {
				found = append(found, c)
			}
		}
	case *record.CloseSessionTxn:
		if slices.Contains(b.Paths, h.Path) {
			c.What = "deleteSession"
			found = append(found, c)
		}
	default:
		if h.matches(&c, b) {
			found = append(found, c)
		}
	}
	return found
}

// matches reports whether the body of a transaction changes the path, and describes the change in c.
func (h *historian) matches(c *PathChange, body record.TxnBody) bool {
	c.Bytes, c.Version = nil, nil
	path, data := "", []byte(nil)
	switch b := body.(type) {
	case *record.CreateTxn:
		c.What, path, data = "create", b.Path, b.Data
	case *record.CreateContainerTxn:
		c.What, path, data = "create", b.Path, b.Data
	case *record.CreateTTLTxn:
		c.What, path, data = "create", b.Path, b.Data
	case *record.SetDataTxn:
		c.What, path, data, c.Version = "setData", b.Path, b.Data, &b.Version
	case *record.SetACLTxn:
		c.What, path, c.Version = "setACL", b.Path, &b.Version
		return path == h.Path
	case *record.DeleteTxn:
		c.What, path = "delete", b.Path
		return path == h.Path
	default:
		return false
	}
	n := len(data)
	c.Bytes = &n
	return path == h.Path
}
