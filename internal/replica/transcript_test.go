package replica

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"bellwether/internal/transcript"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// TestTranscripts plays testdata/*.txt. A line "> command" is a command, and the lines up
// to the next command are its expected output. Times are in ms; a command takes no time. A transcript
// that begins with servers is one of an ensemble.
func TestTranscripts(t *testing.T) { transcript.Play(t, play) }

// stage is a replica with its driver.
type stage struct {
	t     *testing.T
	r     *Replica
	now   Time
	conns map[string]ConnID
	names map[ConnID]string
	ids   map[string]wire.SessionID
	gen   uint64
	last  wire.Zxid
	out   *bytes.Buffer
	held  bool // nothing is taken from the replica until go
}

// play begins a transcript, and returns the function that carries out a command.
func play(t *testing.T, out *bytes.Buffer) func([]string) {
	s := &stage{t: t, conns: map[string]ConnID{}, names: map[ConnID]string{}, ids: map[string]wire.SessionID{}, out: out}
	s.now = Time{Mono: 1000, Wall: 0x11223344}
	e := newEnsembleStage(t, out)
	return func(w []string) {
		if w[0] == "servers" || e.cluster != nil {
			e.command(w)
			return
		}
		s.command(w)
	}
}

// begin makes the replica: begin [zxid Z] [tick N] [containers perMinute].
func (s *stage) begin(opt map[string]string) {
	tr := tree.New(tree.Options{Seed: 1})
	l := tr.Loader()
	l.Reset()
	if err := l.SnapshotDone(wire.Zxid(number(opt["zxid"])), nil); err != nil {
		s.t.Fatal(err)
	}
	l.Finish()
	s.r = New(tr, Options{ServerID: 1, TickMS: max(number(opt["tick"]), 100), ContainerCheckMS: 1000,
		ContainersPerMinute: number(opt["containers"])}, s.now)
	s.last = tr.LastZxid()
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 0, 64)
	return n
}

// pairs reads "key value" words.
func pairs(words []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		m[words[i]] = words[i+1]
	}
	return m
}

func (s *stage) command(w []string) {
	switch w[0] {
	case "begin":
		s.begin(pairs(w[1:]))
		return
	case "connect": // connect C [session NAME] [password bad] [accepts readonly] timeout N
		s.connect(w[1], pairs(w[2:]))
	case "request": // request C XID OP [PATH [DATA]]
		s.request(w[1], w[2:])
	case "touch": // touch C...
		var e Touched
		for _, c := range w[1:] {
			e.Sessions = append(e.Sessions, Touch{s.ids[c], s.now.Mono})
		}
		s.r.Step(s.now, e)
	case "wait": // wait MS: time passes, with a Tick every 25 ms
		for n := number(w[1]); n > 0; n -= 25 {
			s.now.Mono += 25
			s.now.Wall += 25
			s.r.Step(s.now, Tick{})
			s.drain()
		}
	case "jump": // jump MS: time passes at once
		s.now.Mono += number(w[1])
		s.now.Wall += number(w[1])
		s.r.Step(s.now, Tick{})
	case "synced": // synced [Z]
		z := s.last
		if len(w) > 1 {
			z = wire.Zxid(number(w[1]))
		}
		s.r.Step(s.now, Synced{z, s.gen})
	case "hold": // hold: nothing is taken from the replica until go
		s.held = true
	case "go":
		s.held = false
	case "full":
		s.r.Step(s.now, LogFull{wire.Zxid(number(w[1])), s.gen})
	case "free":
		s.r.Step(s.now, LogFree{})
	case "expire": // expire C: before its time
		s.r.Step(s.now, Expire{s.ids[w[1]]})
	case "disconnect":
		s.r.Step(s.now, Disconnected{s.conns[w[1]]})
	default:
		s.t.Fatal("no such command: ", w)
	}
	if !s.held {
		s.drain()
	}
}

func (s *stage) connect(name string, opt map[string]string) {
	id := ConnID(len(s.names) + 1)
	s.conns[name], s.names[id] = id, name
	e := Connect{Conn: id, TimeoutMS: int32(number(opt["timeout"])), ReadOnly: opt["accepts"] == "readonly"}
	if of := opt["session"]; of != "" {
		e.Session = s.ids[of]
		pw := e.Session.Password()
		e.Password = pw[:]
	}
	if opt["password"] == "bad" {
		e.Password = []byte("wrong")
	}
	s.r.Step(s.now, e)
}

func (s *stage) request(c string, w []string) { s.r.Step(s.now, requestOf(s.t, s.conns[c], w)) }

// requestOf returns the request that XID OP [PATH [DATA]] describe.
func requestOf(t *testing.T, conn ConnID, w []string) *Request {
	q := &Request{Conn: conn, Xid: int32(number(w[0]))}
	var body wire.Record
	path, data := "", ""
	if len(w) > 2 {
		path = w[2]
	}
	if len(w) > 3 {
		data = w[3]
	}
	switch w[1] {
	case "create", "createEphemeral", "createContainer":
		r := &wire.CreateRequest{Path: path, Data: []byte(data), ACL: wire.OpenACL()}
		q.Op = wire.OpCreate
		if w[1] == "createEphemeral" {
			r.Flags = wire.FlagEphemeral
		}
		if w[1] == "createContainer" {
			q.Op, r.Flags = wire.OpCreateContainer, wire.FlagContainer
		}
		body = r
	case "set":
		q.Op, body = wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: -1}
	case "delete":
		q.Op, body = wire.OpDelete, &wire.PathVersionRequest{Path: path, Version: -1}
	case "get":
		q.Op, body = wire.OpGetData, &wire.PathWatchRequest{Path: path}
	case "sync":
		q.Op, body = wire.OpSync, &wire.PathRequest{Path: path}
	case "ping":
		q.Op = wire.OpPing
	case "remove": // remove a server from the ensemble
		q.Op, body = wire.OpReconfig, &wire.ReconfigRequest{Leaving: wire.Text(path), ConfigID: -1}
	case "removeIf": // remove a server if the membership has this version: removeIf ID VERSION
		version, err := strconv.ParseInt(data, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		q.Op, body = wire.OpReconfig, &wire.ReconfigRequest{Leaving: wire.Text(path), ConfigID: version}
	case "whole": // the whole membership, with commas
		q.Op, body = wire.OpReconfig, &wire.ReconfigRequest{Members: wire.Text(path), ConfigID: -1}
	case "join": // add a server, whose line is given
		q.Op, body = wire.OpReconfig, &wire.ReconfigRequest{Joining: wire.Text(path), ConfigID: -1}
	case "close":
		q.Op = wire.OpCloseSession
	case "broken":
		q.Op, q.Body = wire.OpCreate, []byte{0, 0}
	case "brokenSync":
		q.Op, q.Body = wire.OpSync, []byte{0, 0}
	case "throttled":
		q.Op, q.Refuse = wire.OpSetData, wire.ErrThrottledOp
	default:
		t.Fatal("no such request: ", w)
	}
	if body != nil {
		q.Body = wire.Append(nil, body)
	}
	return q
}

// drain prints all duties and outputs.
func (s *stage) drain() {
	rd := s.r.Ready()
	if err := s.r.check(); err != nil {
		fmt.Fprintf(s.out, "  invariant: %v\n", err)
	}
	for _, d := range rd.Duties {
		s.gen = d.Generation
		for _, txn := range d.Append {
			s.last = txn.Zxid
			fmt.Fprintf(s.out, "  append %v %v%s\n", txn.Zxid, txn.Type, s.owner(txn.Session))
		}
	}
	for {
		o, ok := s.r.Next()
		if !ok {
			break
		}
		s.effect(o)
	}
	for _, h := range append(rd.Observations, s.r.Ready().Observations...) {
		fmt.Fprintf(s.out, "  happened: %v\n", h)
	}
}

// owner names a session by the last of its connections.
func (s *stage) owner(id wire.SessionID) string {
	last := ""
	for name, i := range s.ids {
		if i == id && name > last {
			last = name
		}
	}
	if last == "" {
		return ""
	}
	return " of " + last
}

func (s *stage) effect(o Output) {
	name := s.names[o.Conn]
	switch o.Kind {
	case Attached:
		if o.Session == 0 {
			fmt.Fprintf(s.out, "  %s refused\n", name)
			return
		}
		s.ids[name] = o.Session
		how := ""
		if o.ReadOnly {
			how = ", read-only"
		}
		fmt.Fprintf(s.out, "  %s attached to %v for %d ms%s\n", name, o.Session, o.TimeoutMS, how)
	case Reply:
		fmt.Fprintf(s.out, "  %s reply %d zxid %v: %v\n", name, o.Header.Xid, o.Header.Zxid, o.Header.Err)
	case Turn:
		var q wire.PathWatchRequest
		wire.Decode(o.Request.Body, &q)
		var d wire.DataResponse
		code := s.r.tree.GetData(anonymousReader{}, q.Path, false, &d)
		fmt.Fprintf(s.out, "  %s turn %d %v %s: %v %q\n", name, o.Request.Xid, o.Request.Op, q.Path, code, d.Data)
	case Close:
		fmt.Fprintf(s.out, "  %s close\n", name)
	}
}

// anonymousReader is a client that reads without a connection.
type anonymousReader struct{}

func (anonymousReader) Session() wire.SessionID { return 0 }
func (anonymousReader) Identities() []wire.ID   { return nil }
func (anonymousReader) Notify(tree.Event)       {}
func (anonymousReader) Overflow()               {}
func (anonymousReader) Reserve(wire.Zxid)       {}
