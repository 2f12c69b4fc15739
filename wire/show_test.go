package wire_test

import (
	"fmt"

	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// This file prints records in the form of the golden files, so that decoded records can be compared with
// them.

func showStat(s *wire.Stat) wiretest.Object {
	return wiretest.Object{
		"czxid": wiretest.Long(s.Czxid), "mzxid": wiretest.Long(s.Mzxid), "ctime": wiretest.Long(s.Ctime), "mtime": wiretest.Long(s.Mtime),
		"version": s.Version, "cversion": s.Cversion, "aversion": s.Aversion,
		"ephemeralOwner": wiretest.Long(s.EphemeralOwner), "dataLength": s.DataLength,
		"numChildren": s.NumChildren, "pzxid": wiretest.Long(s.Pzxid),
	}
}

func showACL(a *wire.ACL) wiretest.Object {
	return wiretest.Object{"perms": a.Perms, "id": wiretest.ShowID(&a.ID)}
}

func showMultiHeader(h wire.MultiHeader) wiretest.Object {
	return wiretest.Object{"type": h.Type, "done": h.Done, "err": int32(h.Err)}
}

// showConnect shows a handshake record. It shows the last field only if it was sent.
func showConnect(has, readOnly bool, fields wiretest.Object) wiretest.Object {
	if has {
		fields["readOnly"] = readOnly
	}
	return fields
}

func showHandshake(r wire.Record) wiretest.Object {
	switch r := r.(type) {
	case *wire.ConnectRequest:
		return showConnect(r.HasReadOnly, r.ReadOnly, wiretest.Object{
			"protocolVersion": r.ProtocolVersion, "lastZxidSeen": wiretest.Long(r.LastZxidSeen),
			"timeOut": r.TimeoutMS, "sessionId": wiretest.Long(r.Session), "passwd": wiretest.HexOrNil(r.Password),
		})
	case *wire.ConnectResponse:
		return showConnect(r.HasReadOnly, r.ReadOnly, wiretest.Object{
			"protocolVersion": r.ProtocolVersion, "timeOut": r.TimeoutMS,
			"sessionId": wiretest.Long(r.Session), "passwd": wiretest.HexOrNil(r.Password),
		})
	}
	panic(fmt.Sprintf("no words for %T", r))
}

// showRequest shows the body of a request.
func showRequest(r wire.Record) wiretest.Object {
	switch r := r.(type) {
	case *wire.CreateRequest:
		return wiretest.Object{"path": r.Path, "data": wiretest.HexOrNil(r.Data), "acl": wiretest.List(r.ACL, showACL), "flags": r.Flags}
	case *wire.CreateTTLRequest:
		o := showRequest(&r.CreateRequest)
		o["ttl"] = wiretest.Long(r.TTL)
		return o
	case *wire.PathRequest:
		return wiretest.Object{"path": r.Path}
	case *wire.NullPathRequest:
		return wiretest.Object{"path": wiretest.StringOrNil(r.Path)}
	case *wire.PathVersionRequest:
		return wiretest.Object{"path": r.Path, "version": r.Version}
	case *wire.PathWatchRequest:
		return wiretest.Object{"path": r.Path, "watch": r.Watch}
	case *wire.SetDataRequest:
		return wiretest.Object{"path": r.Path, "data": wiretest.HexOrNil(r.Data), "version": r.Version}
	case *wire.SetACLRequest:
		return wiretest.Object{"path": r.Path, "acl": wiretest.List(r.ACL, showACL), "version": r.Version}
	case *wire.ReconfigRequest:
		return wiretest.Object{"joiningServers": wiretest.StringOrNil(r.Joining), "leavingServers": wiretest.StringOrNil(r.Leaving),
			"newMembers": wiretest.StringOrNil(r.Members), "curConfigId": wiretest.Long(r.ConfigID)}
	case *wire.AuthRequest:
		return wiretest.Object{"type": r.Type, "scheme": wiretest.StringOrNil(r.Scheme), "auth": wiretest.HexOrNil(r.Auth)}
	case *wire.AddWatchRequest:
		return wiretest.Object{"path": r.Path, "mode": r.Mode}
	case *wire.WatchesRequest:
		return wiretest.Object{"path": r.Path, "type": r.Type}
	case *wire.SetWatchesRequest:
		return wiretest.Object{"relativeZxid": wiretest.Long(r.RelativeZxid), "dataWatches": r.Data, "existWatches": r.Exist, "childWatches": r.Child}
	case *wire.SetWatches2Request:
		o := showRequest(&r.SetWatchesRequest)
		o["persistentWatches"], o["persistentRecursiveWatches"] = r.Persistent, r.PersistentRecursive
		return o
	case *wire.MultiRequest:
		return wiretest.Object{"end": showMultiHeader(wire.MultiEnd()), "ops": wiretest.List(append([]wire.Op{}, r.Ops...), func(op *wire.Op) wiretest.Object {
			return wiretest.Object{"header": showMultiHeader(wire.MultiHeader{Type: op.Type, Err: -1}), "request": showRequest(op.Request)}
		})}
	}
	panic(fmt.Sprintf("no words for %T", r))
}

// showReply shows the body of a reply or an event.
func showReply(r wire.Record) wiretest.Object {
	switch r := r.(type) {
	case *wire.PathResponse:
		return wiretest.Object{"path": r.Path}
	case *wire.NullPathResponse:
		return wiretest.Object{"path": wiretest.StringOrNil(r.Path)}
	case *wire.PathStatResponse:
		return wiretest.Object{"path": r.Path, "stat": showStat(&r.Stat)}
	case *wire.StatResponse:
		return wiretest.Object{"stat": showStat(&r.Stat)}
	case *wire.DataResponse:
		return wiretest.Object{"data": wiretest.HexOrNil(r.Data), "stat": showStat(&r.Stat)}
	case *wire.ACLResponse:
		return wiretest.Object{"acl": wiretest.List(r.ACL, showACL), "stat": showStat(&r.Stat)}
	case *wire.ChildrenResponse:
		return wiretest.Object{"children": r.Children}
	case *wire.ChildrenStatResponse:
		return wiretest.Object{"children": r.Children, "stat": showStat(&r.Stat)}
	case *wire.EphemeralsResponse:
		return wiretest.Object{"ephemerals": r.Paths}
	case *wire.CountResponse:
		return wiretest.Object{"totalNumber": r.Count}
	case *wire.ErrorResponse:
		return wiretest.Object{"err": int32(r.Err)}
	case *wire.WhoAmIResponse:
		return wiretest.Object{"clientInfo": wiretest.List(r.Clients, func(c *wire.ClientInfo) wiretest.Object {
			return wiretest.Object{"authScheme": c.Scheme, "user": c.User}
		})}
	case *wire.WatcherEvent:
		return wiretest.Object{"type": r.Type, "state": r.State, "path": r.Path}
	case *wire.MultiResponse:
		return wiretest.Object{"end": showMultiHeader(wire.MultiEnd()), "results": wiretest.List(append([]wire.OpResult{}, r.Results...), showResult)}
	}
	panic(fmt.Sprintf("no words for %T", r))
}

func showResult(r *wire.OpResult) wiretest.Object {
	o := wiretest.Object{"header": showMultiHeader(wire.MultiHeader{Type: r.Type, Err: r.Err})}
	switch {
	case r.Type == wire.OpError:
		o["response"] = wiretest.Object{"err": int32(r.Err)}
	case r.Response != nil:
		o["response"] = showReply(r.Response)
	}
	return o
}
