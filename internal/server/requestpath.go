package server

import "bellwether/wire"

// requestPath returns the path of a request that has one, and is not a multi.
func requestPath(op wire.OpCode, body []byte) (path string, ok bool) {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete, wire.OpDeleteContainer,
		wire.OpSetData, wire.OpSetACL, wire.OpCheck, wire.OpSync,
		wire.OpExists, wire.OpGetData, wire.OpGetACL, wire.OpGetChildren, wire.OpGetChildren2, wire.OpGetAllChildrenNumber,
		wire.OpGetEphemerals, wire.OpAddWatch, wire.OpCheckWatches, wire.OpRemoveWatches:
	default:
		return "", false
	}
	var q wire.PathRequest // the requests of all these operations begin with a path
	in := wire.Decoder(body)
	q.Code(&in)
	return q.Path, in.Err() == nil
}

// opPath returns the path of an operation of a multi, and how many bytes its path and data
// have.
func opPath(r wire.Record) (path string, bytes int64) {
	data := []byte(nil)
	switch q := r.(type) {
	case *wire.CreateRequest:
		path, data = q.Path, q.Data
	case *wire.CreateTTLRequest:
		path, data = q.Path, q.Data
	case *wire.SetDataRequest:
		path, data = q.Path, q.Data
	case *wire.PathVersionRequest:
		path = q.Path
	case *wire.PathWatchRequest:
		path = q.Path
	}
	return path, int64(len(path) + len(data))
}
