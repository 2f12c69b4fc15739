package replica

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// asked holds what the model knows about one unanswered request.
type asked struct {
	xid   int32
	op    wire.OpCode
	value string
}

// model drives a replica at random and checks every output against what each client may
// see.
type model struct {
	t       *rapid.T
	r       *Replica
	now     Time
	gen     uint64
	log     []*record.Txn // appended and not taken back
	durable wire.Zxid
	full    bool
	conns   []*clientModel
	nextID  ConnID
	count   int
}

// clientModel is one client: the requests that it waits for, and the last zxid that it
// saw.
type clientModel struct {
	id      ConnID
	session wire.SessionID
	xid     int32
	waiting []asked
	seen    wire.Zxid
}

// TestEffectsAreInOrder: the outputs of a replica are in order for every client, whatever
// the log writer does. Each request is answered once and in its place. Nothing is
// answered before it is durable. A read sees the earlier writes of its connection and
// none of the later ones. The zxids of transactions have no gaps.
func TestEffectsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, now: Time{1, 1}}
		m.r = New(tree.New(tree.Options{Seed: 1}), Options{ServerID: 1, TickMS: 1000}, m.now)
		for range 3 {
			m.connect(0)
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask":     func(t *rapid.T) { m.ask(rapid.SampledFrom(m.conns).Draw(t, "client")) },
			"synced":  m.synced,
			"full":    m.logFull,
			"free":    func(*rapid.T) { m.full = false; m.step(LogFree{}) },
			"replace": m.replace,
			"tick":    func(*rapid.T) { m.now.Mono += 10; m.step(Tick{}) },
		})
	})
}

func (m *model) step(e Event) {
	m.r.Step(m.now, e)
	m.drain()
}

// connect opens a connection with a new session and commits that.
func (m *model) connect(session wire.SessionID) {
	m.nextID++
	c := &clientModel{id: m.nextID, session: session}
	m.conns = append(m.conns, c)
	pw := session.Password()
	m.step(Connect{Conn: c.id, Session: session, Password: pw[:], TimeoutMS: 20_000})
	if session == 0 {
		m.commit(m.r.alone.proposed)
	}
	if c.session == 0 {
		m.t.Fatal("no session")
	}
}

// replace moves a session to a new connection.
func (m *model) replace(t *rapid.T) {
	i := rapid.IntRange(0, len(m.conns)-1).Draw(t, "moved")
	old := m.conns[i]
	m.conns = append(m.conns[:i], m.conns[i+1:]...)
	if rapid.Bool().Draw(t, "goes first") {
		m.step(Disconnected{old.id})
	}
	m.connect(old.session)
}

// ask sends one random request: a set of /zookeeper to a unique value, a get of it, a
// sync, a create that fails, or a record that cannot be decoded.
func (m *model) ask(c *clientModel) {
	c.xid++
	m.count++
	a := asked{xid: c.xid, value: fmt.Sprint(m.count)}
	q := &Request{Conn: c.id, Xid: c.xid}
	switch rapid.IntRange(0, 7).Draw(m.t, "kind") {
	case 0, 1, 2:
		a.op, q.Body = wire.OpSetData, wire.Append(nil, &wire.SetDataRequest{Path: "/zookeeper", Data: []byte(a.value), Version: -1})
	case 3, 4, 5:
		a.op, q.Body = wire.OpGetData, wire.Append(nil, &wire.PathWatchRequest{Path: "/zookeeper"})
	case 6:
		a.op, q.Body = wire.OpSync, wire.Append(nil, &wire.PathRequest{Path: "/"})
	default:
		a.op, q.Body = wire.OpCreate, wire.Append(nil, &wire.CreateRequest{Path: "/no/such", ACL: wire.OpenACL()})
	}
	q.Op = a.op
	c.waiting = append(c.waiting, a)
	m.step(q)
}

func (m *model) synced(t *rapid.T) {
	if len(m.log) > 0 {
		m.commit(m.log[rapid.IntRange(0, len(m.log)-1).Draw(t, "through")].Zxid)
	}
}

func (m *model) commit(z wire.Zxid) {
	m.durable = max(m.durable, z)
	for len(m.log) > 0 && m.log[0].Zxid <= z {
		m.log = m.log[1:]
	}
	m.step(Synced{z, m.gen})
}

// logFull cuts the log at a random place after what is durable.
func (m *model) logFull(t *rapid.T) {
	if m.full || len(m.log) == 0 {
		return
	}
	keep := rapid.IntRange(0, len(m.log)).Draw(t, "kept")
	if keep > 0 {
		m.durable = m.log[keep-1].Zxid
	}
	m.full, m.log = true, nil
	m.step(LogFull{m.durable, m.gen})
}

func (m *model) drain() {
	rd := m.r.Ready()
	if err := m.r.check(); err != nil {
		m.t.Fatal(err)
	}
	for _, d := range rd.Duties {
		m.gen = d.Generation
		m.appended(d.Append)
	}
	for {
		o, ok := m.r.Next()
		if !ok {
			return
		}
		if m.r.Applied() > m.durable {
			m.t.Fatalf("applied %v, durable is %v", m.r.Applied(), m.durable)
		}
		for _, c := range m.conns {
			if c.id == o.Conn {
				m.effect(c, o)
			}
		}
	}
}

func (m *model) appended(txns []*record.Txn) {
	for _, txn := range txns {
		last := m.durable
		if len(m.log) > 0 {
			last = m.log[len(m.log)-1].Zxid
		}
		if txn.Zxid != last+1 {
			m.t.Fatalf("appended %v after %v", txn.Zxid, last)
		}
		m.log = append(m.log, txn)
	}
}

func (m *model) effect(c *clientModel, o Output) {
	if o.Kind == Attached {
		c.session = o.Session
		return
	}
	if o.Kind == Close {
		m.t.Fatalf("connection %d is closed", c.id)
	}
	if len(c.waiting) == 0 || c.waiting[0].xid != o.Request.Xid {
		m.t.Fatalf("connection %d: answer to %d, waiting %v", c.id, o.Request.Xid, c.waiting)
	}
	a := c.waiting[0]
	c.waiting = c.waiting[1:]
	if o.Kind == Turn {
		m.read(c, a)
		return
	}
	if o.Header.Zxid < c.seen || o.Header.Zxid > m.durable {
		m.t.Fatalf("connection %d: reply with zxid %v, seen %v, durable %v", c.id, o.Header.Zxid, c.seen, m.durable)
	}
	c.seen = o.Header.Zxid
	if a.op == wire.OpSetData && o.Header.Err == wire.OK {
		if got := m.value(); got != a.value {
			m.t.Fatalf("connection %d: its set of %s is answered, the tree holds %s", c.id, a.value, got)
		}
	}
}

// read checks the result of a read: neither a value that the connection sets later, nor
// one older than its last set that was answered.
func (m *model) read(c *clientModel, a asked) {
	if a.op != wire.OpGetData {
		m.t.Fatalf("a turn for %v", a.op)
	}
	got := m.value()
	for _, later := range c.waiting {
		if later.op == wire.OpSetData && later.value == got {
			m.t.Fatalf("connection %d read %s, which it writes later", c.id, got)
		}
	}
	if m.r.Applied() < c.seen {
		m.t.Fatalf("connection %d read at %v, seen is %v", c.id, m.r.Applied(), c.seen)
	}
	c.seen = m.r.Applied()
}

func (m *model) value() string {
	var d wire.DataResponse
	m.r.tree.GetData(anonymousReader{}, "/zookeeper", false, &d)
	return string(d.Data)
}
