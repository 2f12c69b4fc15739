package api

import (
	"context"

	"bellwether/internal/admin/view"
)

// transferRequest is the body of transferLeadership.
type transferRequest struct {
	To *int64 `json:"to,omitempty"` // id of the next leader; missing: the most suitable server
}

// snapshotRequest is the body of takeSnapshot.
type snapshotRequest struct{}

// kickRequest is the body of kickBid.
type kickRequest struct {
	Bid   string `json:"bid"`   // path of the bid
	Token string `json:"token"` // czxid of the bid, so that a later bid at the same path is not deleted
}

// closeRequest is the body of closeSession.
type closeRequest struct {
	Session string `json:"session"` // id, such as 0x100000000000001
}

// createRequest is the body of createNode. At most one of Data and DataBase64 is set.
type createRequest struct {
	Path       string `json:"path"`
	Data       string `json:"data,omitempty"`        // as text
	DataBase64 []byte `json:"data_base64,omitempty"` // any bytes
	Kind       string `json:"kind,omitempty"`        // persistent or container; missing: persistent
}

// setRequest is the body of setNode. At most one of Data and DataBase64 is set.
type setRequest struct {
	Path       string `json:"path"`
	Version    int32  `json:"version"`               // that the data must have; -1: any
	Data       string `json:"data,omitempty"`        // as text
	DataBase64 []byte `json:"data_base64,omitempty"` // any bytes
}

// deleteRequest is the body of deleteNode.
type deleteRequest struct {
	Path    string `json:"path"`
	Version int32  `json:"version"` // that the data must have; -1: any
}

// bytesOf returns the data of a change. It may be given as text or as bytes, but not as both.
func bytesOf(text string, data []byte) ([]byte, error) {
	if text != "" && len(data) > 0 {
		return nil, &view.Error{Kind: view.Wrong, What: "the data is given twice", Where: "data_base64", Do: "send either data or data_base64"}
	}
	if len(data) > 0 {
		return data, nil
	}
	return []byte(text), nil
}

func (a *API) transfer(ctx context.Context, q *request) (any, error) {
	return a.changes.Transfer(ctx, q.operator, q.body.(*transferRequest).To)
}

func (a *API) snapshot(ctx context.Context, q *request) (any, error) {
	return a.changes.Snapshot(ctx, q.operator)
}

func (a *API) kick(ctx context.Context, q *request) (any, error) {
	b := q.body.(*kickRequest)
	return Done{"kicked " + b.Bid}, a.changes.Kick(ctx, q.operator, b.Bid, b.Token)
}

func (a *API) closeSession(_ context.Context, q *request) (any, error) {
	id := q.body.(*closeRequest).Session
	return Done{"closed session " + id}, a.changes.CloseSession(q.operator, id)
}

func (a *API) create(ctx context.Context, q *request) (any, error) {
	b := q.body.(*createRequest)
	data, err := bytesOf(b.Data, b.DataBase64)
	if err != nil {
		return nil, err
	}
	return a.changes.Create(ctx, q.operator, b.Path, data, b.Kind)
}

func (a *API) set(ctx context.Context, q *request) (any, error) {
	b := q.body.(*setRequest)
	data, err := bytesOf(b.Data, b.DataBase64)
	if err != nil {
		return nil, err
	}
	return a.changes.Set(ctx, q.operator, b.Path, data, b.Version)
}

func (a *API) delete(ctx context.Context, q *request) (any, error) {
	b := q.body.(*deleteRequest)
	return Done{"deleted " + b.Path}, a.changes.Delete(ctx, q.operator, b.Path, b.Version)
}
