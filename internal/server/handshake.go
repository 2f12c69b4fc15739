package server

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"time"

	"bellwether/internal/replica"
	"bellwether/wire"
)

// handshake reads the first frame and waits for its answer. It returns false if the
// connection must be closed.
func (c *conn) handshake() bool {
	frame, err := c.firstFrame()
	if err != nil {
		c.srv.sessionless(c, err)
		return false
	}
	if frame == nil {
		return false // the client sent a four-letter word
	}
	c.identify()
	c.note(&batch{packets: 1, bytes: int64(frameHead + len(frame))})
	var q wire.ConnectRequest
	if err := wire.Decode(frame, &q); err != nil {
		const what = "connection request is malformed"
		c.srv.warn(what, c.net.RemoteAddr(), what, "addr", c.addr, "err", err)
		return false
	}
	if !c.srv.admits(c, q.Session) {
		return false
	}
	c.hasReadOnly, c.known = q.HasReadOnly, true
	if q.LastZxidSeen.Counter() == 0 {
		c.seen = q.LastZxidSeen
	}
	if q.Session == 0 {
		c.asked = c.srv.clock()
	}
	c.srv.inbox.push(replica.Connect{Conn: c.id, Session: q.Session, TimeoutMS: q.TimeoutMS, Seen: q.LastZxidSeen,
		Password: append([]byte(nil), q.Password...), ReadOnly: q.ReadOnly}, c)
	select {
	case <-c.attached:
	case <-c.srv.dead:
	}
	return c.Session() != 0
}

// firstFrame returns the first frame. If the client sent a four-letter word instead, it
// answers that and returns nil.
func (c *conn) firstFrame() ([]byte, error) {
	for {
		if err := c.in.read(); err != nil {
			return nil, err
		}
		have := c.in.buf[c.in.r:c.in.w]
		if len(have) >= 4 && isWord(have[:4]) {
			return nil, c.word(string(have[:4]), have[4:])
		}
		if frame, err := c.in.frame(); frame != nil || err != nil {
			return frame, err
		}
	}
}

// isWord reports whether four bytes can be a four-letter word. As the length of a frame
// they would be far above every limit.
func isWord(b []byte) bool {
	for _, ch := range b {
		if ch < 'a' || ch > 'z' {
			return false
		}
	}
	return true
}

// FourLetterWord is a four-letter word that a client has sent.
type FourLetterWord struct {
	Name  string
	Local bool // the word came over the loopback interface
	// Arg reads the eight bytes that follow a word with an argument. It returns false if
	// they do not arrive within argTimeout. It may be called only for a word that is carried
	// out, so that a word that is refused is answered at once.
	Arg func() (int64, bool)
}

// argLen is the length of a word's argument in bytes.
const argLen = 8

// argTimeout is how long the rest of a word's argument may take to arrive.
const argTimeout = time.Second

// word answers a four-letter word. An unknown word gets no answer.
func (c *conn) word(word string, rest []byte) error {
	if c.srv.opt.FourLetterWords == nil {
		return nil
	}
	w := FourLetterWord{Name: word, Local: c.addr.Addr().IsLoopback(), Arg: func() (int64, bool) { return c.wordArg(rest) }}
	c.note(&batch{packets: 1, bytes: int64(len(word))})
	if text, known := c.srv.opt.FourLetterWords(c.srv, w); known {
		what := "Processing " + word + " command"
		c.srv.log.Log(context.Background(), c.srv.notices.Level(slog.LevelInfo, what, c.addr.String()), what, "from", c.addr)
		c.out.raw(text)
	}
	return nil
}

// wordArg reads the argument of a word. rest holds its first bytes.
func (c *conn) wordArg(rest []byte) (int64, bool) {
	c.net.SetReadDeadline(time.Now().Add(argTimeout))
	var arg [argLen]byte
	have := copy(arg[:], rest)
	_, err := io.ReadFull(c.net, arg[have:])
	return int64(binary.BigEndian.Uint64(arg[:])), err == nil
}

// admits reports whether a connection may have a session now.
func (s *Server) admits(c *conn, session wire.SessionID) bool {
	if !s.serving.Load() {
		s.stats.notServing.Add(1)
		return false
	}
	if !s.admitsSession(session) {
		s.stats.rejected.Add(1)
		s.stats.connsThrottled.Add(1)
		const what = "connection is refused: too many ask for sessions (connection_throttle_tokens)"
		s.warn(what, c.net.RemoteAddr(), what, "addr", c.addr, "session", session)
		return false
	}
	s.stats.connectRequests.Add(1)
	return true
}

// attach answers a handshake. The loop calls it.
func (s *Server) attach(c *conn, o replica.Output, z wire.Zxid) {
	pw := o.Password[:]
	r := &wire.ConnectResponse{TimeoutMS: o.TimeoutMS, Session: o.Session, Password: pw, ReadOnly: o.ReadOnly, HasReadOnly: c.hasReadOnly}
	c.readOnly = o.ReadOnly
	if o.Session == 0 {
		r.Password = make([]byte, wire.PasswordLen)
	}
	c.timeout.Store(o.TimeoutMS)
	c.heard.Store(s.clock() / 1e6)
	c.session.Store(int64(o.Session))
	c.push(item{record: r, bare: true})
	if now := s.clock(); o.Session != 0 && c.asked > 0 {
		s.stats.throughLoop(wire.OpCreateSession, now-c.asked)
		c.out.answered(0, wire.OpCreateSession, z, now-c.asked, now)
	} else {
		c.out.answered(0, wire.OpCreateSession, z, 0, now)
	}
	if o.Session != 0 {
		c.release()
	}
}

// release lets the reader continue after the handshake.
func (c *conn) release() {
	select {
	case <-c.attached:
	default:
		close(c.attached)
	}
}
