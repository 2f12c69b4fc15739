package wire

import (
	"encoding/hex"
	"fmt"
)

// This file says in the words of the golden files what a record holds, so
// that decoded records can be compared with them.

func showStat(s *Stat) object {
	return object{
		"czxid": long(s.Czxid), "mzxid": long(s.Mzxid), "ctime": long(s.Ctime), "mtime": long(s.Mtime),
		"version": s.Version, "cversion": s.Cversion, "aversion": s.Aversion,
		"ephemeralOwner": long(s.EphemeralOwner), "dataLength": s.DataLength,
		"numChildren": s.NumChildren, "pzxid": long(s.Pzxid),
	}
}

func showID(i *ID) object { return object{"scheme": i.Scheme, "id": i.ID} }

func showACL(a *ACL) object { return object{"perms": a.Perms, "id": showID(&a.ID)} }

func showMultiHeader(h MultiHeader) object {
	return object{"type": h.Type, "done": h.Done, "err": int32(h.Err)}
}

// showConnect shows a handshake record; its last field only where it was sent.
func showConnect(has, readOnly bool, fields object) object {
	if has {
		fields["readOnly"] = readOnly
	}
	return fields
}

func showHandshake(r Record) object {
	switch r := r.(type) {
	case *ConnectRequest:
		return showConnect(r.HasReadOnly, r.ReadOnly, object{
			"protocolVersion": r.ProtocolVersion, "lastZxidSeen": long(r.LastZxidSeen),
			"timeOut": r.TimeoutMS, "sessionId": long(r.Session), "passwd": hexOrNil(r.Password),
		})
	case *ConnectResponse:
		return showConnect(r.HasReadOnly, r.ReadOnly, object{
			"protocolVersion": r.ProtocolVersion, "timeOut": r.TimeoutMS,
			"sessionId": long(r.Session), "passwd": hexOrNil(r.Password),
		})
	}
	panic(fmt.Sprintf("no words for %T", r))
}

// showRequest shows the body of a request.
func showRequest(r Record) object {
	switch r := r.(type) {
	case *CreateRequest:
		return object{"path": r.Path, "data": hexOrNil(r.Data), "acl": list(r.ACL, showACL), "flags": r.Flags}
	case *CreateTTLRequest:
		o := showRequest(&r.CreateRequest)
		o["ttl"] = long(r.TTL)
		return o
	case *PathRequest:
		return object{"path": r.Path}
	case *NullPathRequest:
		return object{"path": stringOrNil(r.Path)}
	case *PathVersionRequest:
		return object{"path": r.Path, "version": r.Version}
	case *PathWatchRequest:
		return object{"path": r.Path, "watch": r.Watch}
	case *SetDataRequest:
		return object{"path": r.Path, "data": hexOrNil(r.Data), "version": r.Version}
	case *SetACLRequest:
		return object{"path": r.Path, "acl": list(r.ACL, showACL), "version": r.Version}
	case *ReconfigRequest:
		return object{"joiningServers": stringOrNil(r.Joining), "leavingServers": stringOrNil(r.Leaving),
			"newMembers": stringOrNil(r.Members), "curConfigId": long(r.ConfigID)}
	case *AuthRequest:
		return object{"type": r.Type, "scheme": stringOrNil(r.Scheme), "auth": hexOrNil(r.Auth)}
	case *AddWatchRequest:
		return object{"path": r.Path, "mode": r.Mode}
	case *WatchesRequest:
		return object{"path": r.Path, "type": r.Type}
	case *SetWatchesRequest:
		return object{"relativeZxid": long(r.RelativeZxid), "dataWatches": r.Data, "existWatches": r.Exist, "childWatches": r.Child}
	case *SetWatches2Request:
		o := showRequest(&r.SetWatchesRequest)
		o["persistentWatches"], o["persistentRecursiveWatches"] = r.Persistent, r.PersistentRecursive
		return o
	case *MultiRequest:
		return object{"end": showMultiHeader(multiEnd()), "ops": list(append([]Op{}, r.Ops...), func(op *Op) object {
			return object{"header": showMultiHeader(MultiHeader{Type: op.Type, Err: -1}), "request": showRequest(op.Request)}
		})}
	}
	panic(fmt.Sprintf("no words for %T", r))
}

// showReply shows the body of a reply or an event.
func showReply(r Record) object {
	switch r := r.(type) {
	case *PathResponse:
		return object{"path": r.Path}
	case *NullPathResponse:
		return object{"path": stringOrNil(r.Path)}
	case *PathStatResponse:
		return object{"path": r.Path, "stat": showStat(&r.Stat)}
	case *StatResponse:
		return object{"stat": showStat(&r.Stat)}
	case *DataResponse:
		return object{"data": hexOrNil(r.Data), "stat": showStat(&r.Stat)}
	case *ACLResponse:
		return object{"acl": list(r.ACL, showACL), "stat": showStat(&r.Stat)}
	case *ChildrenResponse:
		return object{"children": r.Children}
	case *ChildrenStatResponse:
		return object{"children": r.Children, "stat": showStat(&r.Stat)}
	case *EphemeralsResponse:
		return object{"ephemerals": r.Paths}
	case *CountResponse:
		return object{"totalNumber": r.Count}
	case *ErrorResponse:
		return object{"err": int32(r.Err)}
	case *WhoAmIResponse:
		return object{"clientInfo": list(r.Clients, func(c *ClientInfo) object {
			return object{"authScheme": c.Scheme, "user": c.User}
		})}
	case *WatcherEvent:
		return object{"type": r.Type, "state": r.State, "path": r.Path}
	case *MultiResponse:
		return object{"end": showMultiHeader(multiEnd()), "results": list(append([]OpResult{}, r.Results...), showResult)}
	}
	panic(fmt.Sprintf("no words for %T", r))
}

func showResult(r *OpResult) object {
	o := object{"header": showMultiHeader(MultiHeader{Type: r.Type, Err: r.Err})}
	switch {
	case r.Type == OpError:
		o["response"] = object{"err": int32(r.Err)}
	case r.Response != nil:
		o["response"] = showReply(r.Response)
	}
	return o
}

// showTxnBody shows the body of a transaction; buffer shows its data.
func showTxnBody(b TxnBody, buffer func([]byte) any) object {
	acl := func(a *ACL) object { return object{"perms": a.Perms, "scheme": a.ID.Scheme, "id": a.ID.ID} }
	switch b := b.(type) {
	case *CreateTxn:
		return object{"path": b.Path, "data": buffer(b.Data), "acl": list(b.ACL, acl),
			"ephemeral": b.Ephemeral, "parentCVersion": b.ParentCversion}
	case *CreateContainerTxn:
		return object{"path": b.Path, "data": buffer(b.Data), "acl": list(b.ACL, acl), "parentCVersion": b.ParentCversion}
	case *CreateTTLTxn:
		return object{"path": b.Path, "data": buffer(b.Data), "acl": list(b.ACL, acl),
			"parentCVersion": b.ParentCversion, "ttl": b.TTL}
	case *DeleteTxn:
		return object{"path": b.Path}
	case *SetDataTxn:
		return object{"path": b.Path, "data": buffer(b.Data), "version": b.Version}
	case *SetACLTxn:
		return object{"path": b.Path, "acl": list(b.ACL, acl), "version": b.Version}
	case *CheckTxn:
		return object{"path": b.Path, "version": b.Version}
	case *ErrorTxn:
		return object{"err": int32(b.Err)}
	case *CreateSessionTxn:
		return object{"timeOut": b.TimeoutMS}
	case *CloseSessionTxn:
		return object{"paths2Delete": b.Paths}
	}
	panic(fmt.Sprintf("no words for %T", b))
}

// hexBuffer shows a buffer in hex, with no null: the file it is for has none.
func hexBuffer(b []byte) any { return hex.EncodeToString(b) }
