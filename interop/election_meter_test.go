package interop

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"bellwether/wire"
)

// meterFrameMax bounds the size of a frame that passes a meter, in bytes.
const meterFrameMax = 4 << 20

// meter is a proxy to a server that counts every watch event and can freeze or break
// connections as networks do. Each connection has a goroutine per direction; close waits for
// all of them.
type meter struct {
	Addr string

	to       string
	listener net.Listener
	wait     sync.WaitGroup

	mu       sync.Mutex
	passages map[*passage]bool
	events   []metered
	lossFor  func(path string) bool // the replies to creates of these paths are lost, because the connection ends
}

// metered is a watch event that has passed the meter.
type metered struct {
	session wire.SessionID
	typ     wire.EventType
	path    string
}

// passage is one connection through a meter.
type passage struct {
	m              *meter
	client, server net.Conn

	mu      sync.Mutex
	session wire.SessionID
	frozen  chan struct{} // closed when the connection is unfrozen; nil while it is not frozen
	loseXid int32         // the reply to this request is dropped; 0: none
}

func newMeter(t testing.TB, addr string) *meter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{Addr: l.Addr().String(), to: addr, listener: l, passages: map[*passage]bool{}}
	m.wait.Go(m.accept)
	t.Cleanup(m.close)
	return m
}

func (m *meter) accept() {
	for {
		client, err := m.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", m.to)
		if err != nil {
			client.Close()
			continue
		}
		l := &passage{m: m, client: client, server: server}
		m.mu.Lock()
		m.passages[l] = true
		m.mu.Unlock()
		m.wait.Go(func() { l.end(l.pass(client, server, l.request)) })
		m.wait.Go(func() { l.end(l.pass(server, client, l.reply)) })
	}
}

func (m *meter) close() {
	m.listener.Close()
	m.each(func(l *passage) { l.thaw(); l.cut() })
	m.wait.Wait()
}

// each calls f for every connection.
func (m *meter) each(f func(*passage)) {
	m.mu.Lock()
	lines := make([]*passage, 0, len(m.passages))
	for l := range m.passages {
		lines = append(lines, l)
	}
	m.mu.Unlock()
	for _, l := range lines {
		f(l)
	}
}

// of calls f for the connections of a session.
func (m *meter) of(id wire.SessionID, f func(*passage)) {
	m.each(func(l *passage) {
		l.mu.Lock()
		mine := l.session == id
		l.mu.Unlock()
		if mine {
			f(l)
		}
	})
}

// since returns the events from the nth on.
func (m *meter) since(n int) []metered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]metered(nil), m.events[n:]...)
}

// loseCreates drops the next n replies to creates of paths that contain part.
func (m *meter) loseCreates(part string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lossFor = func(path string) bool {
		if n == 0 || !strings.Contains(path, part) {
			return false
		}
		n--
		return true
	}
}

var errLost = errors.New("the reply was lost on purpose")

// pass copies frames until either end closes. The first frame in each direction has no
// header.
func (l *passage) pass(from, to net.Conn, look func(frame []byte, first bool) error) error {
	for first := true; ; first = false {
		frame, err := wire.ReadFrame(from, nil, meterFrameMax)
		if err != nil {
			return err
		}
		l.await()
		if err := look(frame, first); err != nil {
			return err
		}
		out, start := wire.BeginFrame(nil)
		if _, err := to.Write(wire.EndFrame(append(out, frame...), start)); err != nil {
			return err
		}
	}
}

// request notes a create whose reply must be dropped.
func (l *passage) request(frame []byte, first bool) error {
	var h wire.RequestHeader
	if first || wire.Decode(frame[:min(len(frame), 8)], &h) != nil || h.Op != wire.OpCreate && h.Op != wire.OpCreate2 {
		return nil
	}
	c := wire.Decoder(frame[8:])
	var path string
	c.String(&path)
	l.m.mu.Lock()
	lose := l.m.lossFor != nil && l.m.lossFor(path)
	l.m.mu.Unlock()
	if lose {
		l.mu.Lock()
		l.loseXid = h.Xid
		l.mu.Unlock()
	}
	return nil
}

// reply counts events and notes the session.
func (l *passage) reply(frame []byte, first bool) error {
	if first {
		var resp wire.ConnectResponse
		if err := wire.Decode(frame, &resp); err == nil {
			l.mu.Lock()
			l.session = resp.Session
			l.mu.Unlock()
		}
		return nil
	}
	var h wire.ReplyHeader
	c := wire.Decoder(frame)
	h.Code(&c)
	if h.Xid == wire.XidEvent {
		var e wire.WatcherEvent
		e.Code(&c)
		l.mu.Lock()
		id := l.session
		l.mu.Unlock()
		l.m.mu.Lock()
		l.m.events = append(l.m.events, metered{id, e.Type, e.Path})
		l.m.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loseXid != 0 && h.Xid == l.loseXid {
		return errLost
	}
	return c.Err()
}

// await waits while the connection is frozen.
func (l *passage) await() {
	l.mu.Lock()
	frozen := l.frozen
	l.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// freeze stops the traffic in both directions and keeps the connection open.
func (l *passage) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen == nil {
		l.frozen = make(chan struct{})
	}
}

func (l *passage) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen != nil {
		close(l.frozen)
		l.frozen = nil
	}
}

func (l *passage) cut() {
	l.client.Close()
	l.server.Close()
}

// end closes both sides when one direction has ended.
func (l *passage) end(error) {
	l.thaw()
	l.cut()
	l.m.mu.Lock()
	delete(l.m.passages, l)
	l.m.mu.Unlock()
}
