package server

import (
	"errors"
	"io"
	"net"
	"testing"

	"bellwether/internal/config"
	"bellwether/wire"
)

// A clean end answers what is in process; what was answered is there at the
// next start, and Run reports no error.
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

// isReset: the server closed while we were still sending.
func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// The white list and the limits change while the server runs.
func TestReload(t *testing.T) {
	o := Options{Config: testConfig(), Words: func(s *Server, word string, _ int64) (string, bool) {
		if s.Config().AllowsWord(word) {
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
	eventually(t, "the word's connection is gone", func() bool { return s.crowd.len() == 0 })
	next := *o.Config
	next.FourLetterWords = []string{"mntr"}
	next.Limits = config.Limits{ClientCnxns: 1, FrameBytes: 100, Sessionless: next.Limits.Sessionless, Outstanding: 10}
	s.Reload(&next)
	if got := word(); got != "yes" {
		t.Errorf("after: %s", got)
	}
	eventually(t, "the word's connection is gone", func() bool { return s.crowd.len() == 0 })
	s.connect()
	s.dial().closed()
}

// Connections that end in the middle of a frame, or of a handshake, leave
// nothing behind.
func TestTruncatedInputLeavesNothing(t *testing.T) {
	s := start(t, Options{})
	full := request(1, wire.OpCreate, create("/a", "data"))
	for n := range full {
		c := s.connect()
		c.write(full[:n])
		c.nc.Close()
	}
	hello := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 5000, Password: make([]byte, 16)})
	for n := range hello {
		c := s.dial()
		c.write(hello[:n])
		c.nc.Close()
	}
	eventually(t, "all connections are gone", func() bool { return s.crowd.len() == 0 })
	if h := s.connect().call(wire.OpExists, &wire.PathWatchRequest{Path: "/a"}, nil); h.Err != wire.ErrNoNode {
		t.Errorf("a request cut short was carried out: %v", h.Err)
	}
}
