package peer

import (
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/portblock"
	"bellwether/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventTimeout is how long a test waits for a condition.
const eventTimeout = 3 * time.Minute

// sink gathers events.
type sink struct {
	mu     sync.Mutex
	events []Event
	more   chan struct{}
}

func newSink() *sink { return &sink{more: make(chan struct{}, 1)} }

func (s *sink) handle(e Event) {
	s.mu.Lock()
	s.events = append(s.events, e)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// list returns a copy of the events so far.
func (s *sink) list() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Event(nil), s.events...)
}

// await waits for an event that ok accepts. It removes this event and all before it from the sink, and
// returns it.
func await[E Event](t *testing.T, s *sink, ok func(E) bool) E {
	t.Helper()
	end := time.After(eventTimeout)
	for {
		s.mu.Lock()
		for i, e := range s.events {
			if e, is := e.(E); is && (ok == nil || ok(e)) {
				s.events = s.events[i+1:]
				s.mu.Unlock()
				return e
			}
		}
		s.mu.Unlock()
		select {
		case <-s.more:
		case <-end:
			var want E
			t.Fatalf("no %T among %v", want, s.list())
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(eventTimeout); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// loopbackNet is a set of loopback addresses that no other process uses.
type loopbackNet struct {
	t  *testing.T
	mu sync.Mutex
	// ready holds the listeners that occupy a port until a server of the test listens
	// there.
	ready map[string]net.Listener
	ms    *ensemble.Membership
}

// newLAN chooses addresses for servers 1 to n. The last ones of them are observers.
func newLAN(t *testing.T, n, observers int) *loopbackNet {
	t.Helper()
	l := &loopbackNet{t: t, ready: map[string]net.Listener{}}
	var d ensemble.Definition
	for id := 1; id <= n; id++ {
		s := ensemble.Server{ID: ensemble.ServerID(id), Addresses: []ensemble.Address{{
			Host: "127.0.0.1", QuorumPort: l.port(), ElectionPort: l.port(),
		}}}
		if id > n-observers {
			s.Role = ensemble.Observer
		}
		d.Servers = append(d.Servers, s)
	}
	l.ms = l.membership(d)
	t.Cleanup(l.close)
	return l
}

func (l *loopbackNet) membership(d ensemble.Definition) *ensemble.Membership {
	ms, err := ensemble.New(d)
	if err != nil {
		l.t.Fatal(err)
	}
	return ms
}

// port reserves a free port.
func (l *loopbackNet) port() int {
	free, err := portblock.Free("127.0.0.1", 1)
	if err != nil {
		l.t.Fatal(err)
	}
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0])))
	if err != nil {
		l.t.Fatal(err)
	}
	l.ready[ln.Addr().String()] = ln
	return free[0]
}

// free releases a reserved port, so that connections to it are refused.
func (l *loopbackNet) free(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.ready[address]; ln != nil {
		ln.Close()
		delete(l.ready, address)
	}
}

func (l *loopbackNet) listen(address string) (net.Listener, error) {
	l.free(address)
	return net.Listen("tcp", address)
}

func (l *loopbackNet) close() {
	for _, ln := range l.ready {
		ln.Close()
	}
}

func (l *loopbackNet) election(id int) string {
	s, _ := l.ms.Server(ensemble.ServerID(id))
	return s.Addresses[0].Election()
}

func (l *loopbackNet) quorum(id int) string {
	s, _ := l.ms.Server(ensemble.ServerID(id))
	return s.Addresses[0].Quorum()
}

func (l *loopbackNet) options(id int, s *sink) Options {
	return Options{
		ID: ensemble.ServerID(id), Membership: l.ms, Handle: s.handle, Listen: l.listen,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// mesh starts the mesh of one server.
func (l *loopbackNet) mesh(id int, change ...func(*Options)) (*Mesh, *sink) {
	l.t.Helper()
	s := newSink()
	o := l.options(id, s)
	for _, f := range change {
		f(&o)
	}
	m, err := NewMesh(o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(m.Close)
	return m, s
}

// vote returns a notification that differs from those of other rounds.
func vote(round int) peerwire.Notification {
	return peerwire.Notification{Leader: 1, ElectionEpoch: wire.Epoch(round), Version: peerwire.NotificationPlain}
}

func heard(from, round int) func(Heard) bool {
	return func(h Heard) bool {
		return h.From == ensemble.ServerID(from) && h.Notification.ElectionEpoch == wire.Epoch(round)
	}
}

func up(id int) func(Up) bool { return func(u Up) bool { return u.Server == ensemble.ServerID(id) } }

func down(id int) func(Down) bool {
	return func(d Down) bool { return d.Server == ensemble.ServerID(id) }
}

// fake is a server whose part of the election protocol the test plays.
type fake struct {
	t *testing.T
	net.Conn
}

// callAs dials the election port and introduces itself.
func callAs(t *testing.T, address string, id ensemble.ServerID, own string) *fake {
	t.Helper()
	f := rawDial(t, address)
	msg := peerwire.InitialMessage{Version: peerwire.InitialOne, Server: id, Addresses: []string{own}}
	f.send(wire.Append(nil, &msg))
	return f
}

func rawDial(t *testing.T, address string) *fake {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &fake{t, c}
}

func (f *fake) send(b []byte) {
	f.t.Helper()
	if _, err := f.Write(b); err != nil {
		f.t.Fatal(err)
	}
}

// receive reads one notification.
func (f *fake) receive() peerwire.Notification {
	f.t.Helper()
	f.SetReadDeadline(time.Now().Add(eventTimeout))
	b, err := peerwire.ReadElectionFrame(f, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	var n peerwire.Notification
	if err := wire.Decode(b, &n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// over waits until the other side closes the connection.
func (f *fake) over() {
	f.t.Helper()
	f.SetReadDeadline(time.Now().Add(eventTimeout))
	if _, err := io.Copy(io.Discard, f); err != nil && !connectionReset(err) {
		f.t.Fatal(err)
	}
}

func frame(n peerwire.Notification) []byte { return wire.AppendFrame(nil, &n) }

func portOf(address string) int {
	_, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return n
}
