package server

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"bellwether/internal/config"
	"bellwether/wire"
)

// TestCleanEndAnswers: a server that ends cleanly answers the requests in process. What
// it has answered is there at the next start, and Run returns no error.
func TestCleanEndAnswers(t *testing.T) {
	o := Options{Config: testConfig()}
	s := start(t, o)
	o.FS = s.opt.FS
	c := s.connect()
	c.create("/a", "")
	var out []byte
	for i := range int32(500) {
		out = append(out, request(i, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})...)
		out = append(out, request(i, wire.OpExists, &wire.PathWatchRequest{Path: "/a"})...)
	}
	c.write(out)
	c.reply(nil)
	s.stop()
	sets := int32(1)
	for i := 1; ; i++ {
		b, err := wire.ReadFrame(c.nc, nil, 1<<20)
		if err != nil {
			if !errors.Is(err, io.EOF) && !isReset(err) {
				t.Fatal(err)
			}
			break
		}
		var h wire.ReplyHeader
		wire.Decode(b, &h)
		if h.Xid != int32(i/2) || h.Err != wire.OK {
			t.Fatalf("reply %d: %+v", i, h)
		}
		sets += int32(i+1) % 2
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	var st wire.StatResponse
	start(t, o).connect().must(wire.OpExists, &wire.PathWatchRequest{Path: "/a"}, &st)
	if st.Stat.Version < sets {
		t.Errorf("%d writes were answered, the version is %d", sets, st.Stat.Version)
	}
}

// isReset reports whether the server closed the connection while the client was still
// sending.
func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// TestReload: the whitelist of four-letter words and the limits can be changed while the
// server runs.
func TestReload(t *testing.T) {
	o := Options{Config: testConfig(), FourLetterWords: func(s *Server, w FourLetterWord) (string, bool) {
		if s.Config().AllowsWord(w.Name) {
			return "yes", true
		}
		return "no", true
	}}
	s := start(t, o)
	word := func() string {
		c := s.dial()
		c.write([]byte("mntr"))
		b, err := io.ReadAll(c.nc)
		if err != nil {
			t.Fatal(err)
		}
		c.nc.Close()
		return string(b)
	}
	if got := word(); got != "no" {
		t.Errorf("before: %s", got)
	}
	eventually(t, "the word's connection is gone", func() bool { return len(s.conns.sockets()) == 0 })
	next := *o.Config
	next.FourLetterWords = []string{"mntr"}
	next.Limits = config.Limits{ClientCnxns: 1, FrameBytes: 100, Sessionless: next.Limits.Sessionless, Outstanding: 10}
	s.Reload(&next)
	if got := word(); got != "yes" {
		t.Errorf("after: %s", got)
	}
	eventually(t, "the word's connection is gone", func() bool { return len(s.conns.sockets()) == 0 })
	s.connect()
	s.dial().closed()
}

// TestTruncatedInputLeavesNothing: connections that end within a frame or a handshake
// have no effect.
func TestTruncatedInputLeavesNothing(t *testing.T) {
	s := start(t, Options{})
	full := request(1, wire.OpCreate, create("/a", "data"))
	for n := range full {
		c := s.connect()
		c.write(full[:n])
		c.nc.Close()
	}
	hello := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)})
	for n := range hello {
		c := s.dial()
		c.write(hello[:n])
		c.nc.Close()
	}
	eventually(t, "all connections are gone", func() bool { return len(s.conns.sockets()) == 0 })
	if h := s.connect().call(wire.OpExists, &wire.PathWatchRequest{Path: "/a"}, nil); h.Err != wire.ErrNoNode {
		t.Errorf("a request cut short was carried out: %v", h.Err)
	}
}

// TestStopWithoutLeader: a server that is stopped while it has no leader ends at once and
// cleanly, although requests wait that cannot be answered, including requests for
// sessions.
func TestStopWithoutLeader(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	g.settled()
	m := g.follower()
	c := m.dial()
	c.handshake(wire.ConnectRequest{TimeoutMS: 20_000, Password: make([]byte, 16)})
	for _, other := range g.servers {
		if other != m {
			g.kill(other)
		}
	}
	eventually(t, "it has no leader", func() bool { return !m.Serving() })
	c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1})
	eventually(t, "a request is held", func() bool { return m.inProcess.Load() == 1 })
	g.stopped(m) // a request that is not answered within shutdownMax is an error
	c.closed()
}

// TestStopOfALeaderWithoutQuorum: a leader that is stopped when no server follows it ends
// at once, although a write is in process for which there is no quorum.
func TestStopOfALeaderWithoutQuorum(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	g.change = func(c *config.Config) {
		c.TickTime, c.MaxSessionTimeout = 4*shutdownMax, 10*shutdownMax
	}
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	c := l.dial()
	c.handshake(wire.ConnectRequest{TimeoutMS: int32(4 * shutdownMax.Milliseconds()), Password: make([]byte, 16)})
	for _, other := range g.servers {
		if other != l {
			g.kill(other)
		}
	}
	c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1})
	eventually(t, "a write is in process", func() bool { return l.inProcess.Load() == 1 })
	g.stopped(l)
	c.closed()
}

// TestStopTogetherUnderWrites: three servers that are stopped together under writes all
// end cleanly.
func TestStopTogetherUnderWrites(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	g.settled()
	var all sync.WaitGroup
	defer all.Wait()
	for _, m := range g.servers {
		c := m.connect()
		all.Go(func() {
			for xid := int32(1); ; xid++ {
				if _, err := c.nc.Write(request(xid, wire.OpSetData, &wire.SetDataRequest{Path: "/", Version: -1})); err != nil {
					return
				}
				if _, err := wire.ReadFrame(c.nc, nil, 1<<20); err != nil {
					return
				}
			}
		})
	}
	g.wrote(20)
	ended := make(chan error, len(g.servers))
	for _, m := range g.servers {
		go func() { ended <- m.end() }()
	}
	for range g.servers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
