package admin

import (
	"encoding/json"
	"fmt"
	"math"

	"bellwether/internal/admin/trace"
	"bellwether/internal/server"
	"bellwether/wire"
)

// trac answers the word trac, which ZooKeeper does not have: the traced requests that the server
// keeps, as a JSON array, oldest first.
func trac(_ *Admin, s *server.Server) string {
	all := []trace.Trace{}
	for _, t := range s.Traces(0, math.MaxInt) {
		all = append(all, TraceOf(&t))
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("admin: traces cannot be encoded: %v", err))
	}
	return string(b) + "\n"
}

// TraceOf returns a trace in the form in which servers pass it on.
func TraceOf(t *server.Trace) trace.Trace {
	x := trace.Trace{
		Number: t.Number, Server: t.Server, Session: fmt.Sprintf("0x%x", int64(t.Session)), Cxid: t.Cxid, Op: t.Operation, Path: t.Path,
		Zxid: t.Zxid.String(), Err: int32(t.Err), Requests: t.Requests, Forwarded: t.Forwarded,
		Began: t.Began.UTC(), TookNS: int64(t.Took), Stages: []trace.Stage{}, Slowest: t.Slowest, Peer: t.Peer,
	}
	if t.Client.IsValid() {
		x.Client = t.Client.String()
	}
	if t.Err != wire.OK {
		x.Error = t.Err.Error()
	}
	for _, s := range t.Stages {
		x.Stages = append(x.Stages, trace.Stage{Name: s.Name, FromNS: int64(s.From), ToNS: int64(s.To)})
	}
	for _, a := range t.Acks {
		x.Acks = append(x.Acks, trace.Ack{Server: a.Server, AfterNS: int64(a.After)})
	}
	return x
}
