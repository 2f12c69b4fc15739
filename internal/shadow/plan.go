package shadow

import (
	"strings"

	"bellwether/wire"
)

// Reason says why a reply was not compared, or not to the end.
type Reason string

// The reasons for which a reply is not compared at all.
const (
	NotState      Reason = "says nothing about znodes"
	NotWatch      Reason = "a watch: the client's connection is not followed by a session at the observer"
	NotSession    Reason = "concerns the client's session or connection"
	NotConfig     Reason = "/zookeeper/config: each server makes it of its own configuration"
	NotSASL       Reason = "a login by SASL, which cannot be repeated at the observer"
	NotAuths      Reason = "the client has sent too many or too large auth packets"
	NotCut        Reason = "the request or the reply is too large, or too many bytes were waiting"
	NotParts      Reason = "the request has more parts than are compared"
	NotDecoded    Reason = "the request or the reply cannot be decoded"
	NotErrorWrite Reason = "the error of the write cannot be derived from the observer's state"
)

// The reasons for which a comparison does not decide.
const (
	UnsureChanged    Reason = "the znode was changed before the observer answered"
	UnsureUnreadable Reason = "the client may not read the znode that it has written"
	UnsureExists     Reason = "exists without READ: Bellwether refuses it, as ZooKeeper does from 3.8.4 and 3.9.2"
	UnsureRights     Reason = "the observer cannot know who the client is (SASL, or a certificate that shadow does not have)"
	UnsureRefused    Reason = "the observer closed the session or throttled the request"
	UnsureIdentity   Reason = "the observer refuses an auth packet of the client"
	UnsureBehind     Reason = "the observer did not reach the zxid of the reply in time"
	UnsureNoObserver Reason = "no connection to the observer"
	UnsureDropped    Reason = "dropped: too many comparisons were waiting"
	UnsureLanes      Reason = "dropped: too many identities at the same time"
	UnsureStopped    Reason = "shadow was stopped first"
	UnsureWatch      Reason = "the observer has set the watch, or lost it, at another zxid"
	UnsureEnded      Reason = "the connection ended first"
	UnsureLost       Reason = "a reply of the connection was not followed, and so its watches are not known"
)

// checksMax is the largest number of checks of one pair.
const checksMax = 64

// Check is one read at the observer, and what the old server's reply says about its result.
type Check struct {
	Path string
	Zxid wire.Zxid   // the state that the reply describes
	Ask  wire.OpCode // the read; OpAuth: only whether the observer accepts the identity
	Weak bool        // the session at the observer has fewer identities than the client
	want claim

	super bool // the session at the observer is the super user's
}

// claim is what a reply says about one znode, or about the connection. At most one of code, absent and the other
// fields says something.
type claim struct {
	code   wire.Code // the same read fails with this error
	absent bool      // there is no such znode
	write  bool      // the claim is from the reply to a write
	exists bool      // the client has called exists

	stat     wire.Stat
	known    fields // which fields of stat the reply tells
	data     *[]byte
	children *[]string
	acl      *[]wire.ACL // with write: as the client has sent it
	count    *int32
	ids      *[]wire.ClientInfo
	must     *condition // why a write has failed
}

// Plan returns the checks of a pair. If the second result is not empty, the pair, or a part of it, is not
// compared for this reason.
func Plan(p *Pair) ([]Check, Reason) {
	if why := excluded(p); why != "" {
		return nil, why
	}
	var all []Check
	var why Reason
	switch {
	case p.Op == wire.OpAuth:
		return []Check{{Ask: wire.OpAuth, Zxid: p.Header.Zxid}}, ""
	case p.Op == wire.OpMultiRead:
		all, why = planMultiRead(p)
	case p.Op == wire.OpMulti:
		all, why = planMulti(p)
	case p.Op.IsWrite():
		all, why = planWrite(p)
	default:
		all, why = planRead(p)
	}
	kept := all[:0]
	for _, c := range all {
		if c.Path == configPath {
			why = NotConfig
			continue
		}
		c.Zxid, c.Weak = p.Header.Zxid, p.Identity.SASL
		kept = append(kept, c)
	}
	if len(kept) > checksMax {
		return kept[:checksMax], NotParts
	}
	return kept, why
}

const (
	configPath = "/zookeeper/config"
	quotaPath  = "/zookeeper/quota"
)

// excluded returns why a pair cannot be compared, whatever the reply is, or "".
func excluded(p *Pair) Reason {
	switch p.Op {
	case wire.OpSync, wire.OpPing:
		return NotState
	case wire.OpSetWatches, wire.OpSetWatches2, wire.OpAddWatch, wire.OpCheckWatches, wire.OpRemoveWatches:
		return NotWatch
	case wire.OpCloseSession, wire.OpCreateSession:
		return NotSession
	case wire.OpReconfig:
		return NotConfig
	case wire.OpSASL:
		return NotSASL
	}
	switch {
	case p.Identity.Many:
		return NotAuths
	case p.Cut:
		return NotCut
	case ofSession(p.Header.Err), p.Op == wire.OpAuth && p.Header.Err != wire.OK:
		return NotSession
	}
	return ""
}

// ofSession reports whether an error concerns the session, the connection or the load of a server, and not the
// request.
func ofSession(code wire.Code) bool {
	switch code {
	case wire.ErrSessionExpired, wire.ErrSessionMoved, wire.ErrSessionClosedRequireAuth, wire.ErrThrottledOp, wire.ErrNotReadOnly,
		wire.ErrAuthFailed, wire.ErrClosing, wire.ErrConnectionLoss, wire.ErrOperationTimeout, wire.ErrEphemeralOnLocalSession:
		return true
	}
	return false
}

// planRead makes the checks of a read.
func planRead(p *Pair) ([]Check, Reason) {
	switch p.Op {
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		var r wire.PathWatchRequest
		if wire.Decode(p.Request, &r) != nil {
			return nil, NotDecoded
		}
		return one(readCheck(p.Op, r.Path, p.Header.Err, p.Answer))
	case wire.OpGetACL, wire.OpGetAllChildrenNumber:
		var r wire.PathRequest
		if wire.Decode(p.Request, &r) != nil {
			return nil, NotDecoded
		}
		return one(readCheck(p.Op, r.Path, p.Header.Err, p.Answer))
	case wire.OpWhoAmI:
		return one(readCheck(p.Op, "", p.Header.Err, p.Answer))
	case wire.OpGetEphemerals:
		return planEphemerals(p)
	}
	return nil, NotState
}

func one(c Check, ok bool) ([]Check, Reason) {
	if !ok {
		return nil, NotDecoded
	}
	return []Check{c}, ""
}

// readCheck makes the check of one read from its reply. It returns false if the reply cannot be decoded.
func readCheck(op wire.OpCode, path string, code wire.Code, answer []byte) (Check, bool) {
	c := Check{Path: path, Ask: op}
	c.want.exists = op == wire.OpExists
	if op == wire.OpGetChildren {
		c.Ask = wire.OpGetChildren2 // with a stat, which tells whether the children have changed since
	}
	switch code {
	case wire.OK:
	case wire.ErrNoNode:
		c.want.absent = true
		return c, true
	default:
		c.want.code = code
		return c, true
	}
	rec := newAnswer(op)
	if wire.Decode(answer, rec) != nil {
		return c, false
	}
	c.want.says(rec)
	return c, true
}

// newAnswer returns an empty record for the answer to a read.
func newAnswer(op wire.OpCode) wire.Record {
	switch op {
	case wire.OpExists:
		return new(wire.StatResponse)
	case wire.OpGetData:
		return new(wire.DataResponse)
	case wire.OpGetChildren:
		return new(wire.ChildrenResponse)
	case wire.OpGetChildren2:
		return new(wire.ChildrenStatResponse)
	case wire.OpGetACL:
		return new(wire.ACLResponse)
	case wire.OpGetAllChildrenNumber:
		return new(wire.CountResponse)
	}
	return new(wire.WhoAmIResponse)
}

// says fills the claim from the answer to a read.
func (w *claim) says(rec wire.Record) {
	switch r := rec.(type) {
	case *wire.StatResponse:
		w.stat, w.known = r.Stat, allFields
	case *wire.DataResponse:
		w.data, w.stat, w.known = &r.Data, r.Stat, allFields
	case *wire.ChildrenResponse:
		w.children = &r.Children
	case *wire.ChildrenStatResponse:
		w.children, w.stat, w.known = &r.Children, r.Stat, allFields
	case *wire.ACLResponse:
		w.acl, w.stat, w.known = &r.ACL, r.Stat, allFields
	case *wire.CountResponse:
		w.count = &r.Count
	case *wire.WhoAmIResponse:
		w.ids = &r.Clients
	}
}

// planMultiRead makes a check of each part of a multiRead.
func planMultiRead(p *Pair) ([]Check, Reason) {
	var q wire.MultiRequest
	var r wire.MultiResponse
	if p.Header.Err != wire.OK || wire.Decode(p.Request, &q) != nil || wire.Decode(p.Answer, &r) != nil || len(q.Ops) != len(r.Results) {
		return nil, NotDecoded
	}
	var all []Check
	for i, op := range q.Ops {
		read, ok := op.Request.(*wire.PathWatchRequest)
		if !ok {
			return nil, NotDecoded
		}
		var answer []byte
		if res := r.Results[i]; res.Type == op.Type {
			answer = wire.Append(nil, res.Response)
		} else if res.Err == wire.OK {
			return nil, NotDecoded
		}
		c, ok := readCheck(op.Type, read.Path, r.Results[i].Err, answer)
		if !ok {
			return nil, NotDecoded
		}
		all = append(all, c)
	}
	return all, ""
}

// planEphemerals checks that each znode in the reply exists and belongs to the client's session.
func planEphemerals(p *Pair) ([]Check, Reason) {
	if p.Header.Err != wire.OK {
		return nil, NotState
	}
	var r wire.EphemeralsResponse
	if wire.Decode(p.Answer, &r) != nil {
		return nil, NotDecoded
	}
	var all []Check
	for _, path := range r.Paths {
		c := Check{Path: path, Ask: wire.OpExists}
		c.want.write = true // the client need not be allowed to read the znode
		c.want.known, c.want.stat.EphemeralOwner = fieldOwner, p.Session
		all = append(all, c)
	}
	return all, ""
}

// volatile reports whether servers change the data of a znode without a transaction of its own: they count there what a quota limits.
func volatile(path string) bool {
	return strings.HasPrefix(path, quotaPath+"/") && strings.HasSuffix(path, "/zookeeper_stats")
}
