package shadow

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"

	"bellwether/wire"
)

const (
	// unansweredMax is how many requests of a connection may wait for a reply.
	unansweredMax = 1 << 16
	// unansweredBytesMax is how many bytes of such requests are kept. Further ones are matched but not compared.
	unansweredBytesMax = 2 << 20
	// eventsMax is how many watch events may arrive between two replies.
	eventsMax = 1 << 16
	// credentialsMax is how many auth packets of a connection are kept, and credentialMax the longest one.
	credentialsMax = 16
	credentialMax  = 4096
)

// Stop says why a Tap no longer decodes its connection.
type Stop string

// The reasons.
const (
	StopWord      Stop = "four-letter word"
	StopTLS       Stop = "TLS, without --listen-tls"
	StopBytes     Stop = "bytes that are not of the protocol"
	StopUnmatched Stop = "a reply to no known request"
	StopMany      Stop = "too many requests without a reply"
	StopRefused   Stop = "session refused"
	StopEvents    Stop = "too many watch events without a reply"
)

func (s Stop) Error() string { return string(s) }

// Credential is the content of an auth packet.
type Credential struct {
	Scheme string
	Auth   []byte
}

// Identity says as whom a client has sent a request.
type Identity struct {
	Subject     string       // of the certificate that the old server has seen; empty: none
	Credentials []Credential // in the order in which they were sent; never changed
	SASL        bool         // the client has logged in by SASL, which cannot be repeated
	Many        bool         // the client has sent more auth packets than are kept
}

// Key returns a text that is the same for equal identities only.
func (i Identity) Key() string {
	var b strings.Builder
	b.WriteString(strconv.Quote(i.Subject))
	for _, c := range i.Credentials {
		b.WriteString(strconv.Quote(c.Scheme) + strconv.Quote(string(c.Auth)))
	}
	return b.String()
}

// Pair is a request and the reply of the old server.
type Pair struct {
	Op       wire.OpCode
	Request  []byte // the request behind its header; nil if it was not kept
	Header   wire.ReplyHeader
	Answer   []byte // the reply behind its header
	Session  wire.SessionID
	Identity Identity
	Cut      bool // the request or the reply was too long to be kept

	// Watched is not 0 if the client has set a watch: the number of this pair among those of the connection.
	Watched int64
	After   wire.Zxid // of the last reply before
	// Events are what the server has sent since that reply. A reply without a zxid, as to an auth packet, leaves them to the
	// next one.
	Events []wire.WatcherEvent
}

// Bytes returns the memory that the pair holds.
func (p *Pair) Bytes() int64 {
	n := len(p.Request) + len(p.Answer)
	for _, e := range p.Events {
		n += len(e.Path) + eventCost
	}
	return int64(n)
}

// eventCost is the memory of an event without its path.
const eventCost = 24

// unanswered is a request without a reply.
type unanswered struct {
	xid      int32
	op       wire.OpCode
	body     []byte
	identity Identity
	cut      bool
}

// Tap decodes the bytes of one client connection. It reads only; it never fails the connection: when it cannot
// decode something, it stops, and ignores all further bytes.
type Tap struct {
	toServer, toClient  framer
	requested, answered bool // the first frame of each direction has passed
	session             wire.SessionID
	identity            Identity
	waiting             []unanswered
	waitingBytes        int
	watched             int64 // the next Pair.Watched; 0: the client has set no watch
	last                wire.Zxid
	events              []wire.WatcherEvent // since the reply with this zxid
	stop                Stop
}

// NewTap returns a tap. subject is that of the certificate that the old server sees; empty: none.
func NewTap(subject string) *Tap {
	return &Tap{toServer: framer{max: requestMax}, toClient: framer{max: replyMax}, identity: Identity{Subject: subject}}
}

// Unread returns how many events no reply has followed.
func (t *Tap) Unread() int { return len(t.events) }

// Stopped returns why the tap no longer decodes, "" if it does.
func (t *Tap) Stopped() Stop { return t.stop }

// Assembling returns how many bytes the tap holds of a reply that has arrived in part.
func (t *Tap) Assembling() int64 { return int64(len(t.toClient.body)) }

// Cut makes the tap drop the content of a long reply that has arrived in part. It keeps watch events, which the order needs.
func (t *Tap) Cut() {
	if b := t.toClient.body; len(b) > headKept && int32(binary.BigEndian.Uint32(b)) != wire.XidEvent {
		t.toClient.cut()
	}
}

// FromClient takes bytes that the client has sent. The caller must call it before the bytes go to the server, so
// that the tap knows each request before its reply.
func (t *Tap) FromClient(p []byte) {
	if t.stop != "" {
		return
	}
	t.ended(t.toServer.feed(p, t.request))
	if t.stop == StopBytes && !t.requested {
		t.stop = firstBytes(t.toServer.head)
	}
}

// FromServer takes bytes that the server has sent, and calls emit for each reply to a request.
func (t *Tap) FromServer(p []byte, emit func(Pair)) {
	if t.stop == "" {
		t.ended(t.toClient.feed(p, func(body []byte, whole bool) error { return t.reply(body, whole, emit) }))
	}
}

// ended stops the tap after an error and drops what it holds.
func (t *Tap) ended(err error) {
	if err == nil {
		return
	}
	if !errors.As(err, &t.stop) {
		t.stop = StopBytes
	}
	t.waiting, t.toServer.body, t.toClient.body = nil, nil, nil
}

// firstBytes says what a connection is whose first bytes are no frame.
func firstBytes(head [4]byte) Stop {
	word := !slices.ContainsFunc(head[:], func(c byte) bool { return c < 'a' || c > 'z' })
	switch {
	case word:
		return StopWord
	case head[0] == 22 && head[1] == 3: // a TLS record with a handshake
		return StopTLS
	}
	return StopBytes
}

// request handles a frame of the client.
func (t *Tap) request(body []byte, whole bool) error {
	if !t.requested {
		var r wire.ConnectRequest
		if err := wire.Decode(body, &r); err != nil {
			return err
		}
		t.requested = true
		return nil
	}
	c := wire.Decoder(body)
	var h wire.RequestHeader
	h.Code(&c)
	if c.Err() != nil {
		return c.Err()
	}
	if len(t.waiting) >= unansweredMax {
		return StopMany
	}
	if whole {
		t.noteIdentity(h.Op, c.Rest())
		if t.watched == 0 && setsWatch(h.Op, c.Rest()) {
			t.watched = 1
		}
	}
	q := unanswered{xid: h.Xid, op: h.Op, identity: t.identity, cut: true}
	if rest := c.Rest(); whole && t.waitingBytes+len(rest) <= unansweredBytesMax {
		q.body, q.cut = rest, false
		t.waitingBytes += len(rest)
	}
	t.waiting = append(t.waiting, q)
	return nil
}

// noteIdentity notes how a request changes the identity of those behind it.
func (t *Tap) noteIdentity(op wire.OpCode, body []byte) {
	switch op {
	case wire.OpSASL:
		t.identity.SASL = true
	case wire.OpAuth:
		var r wire.AuthRequest
		if wire.Decode(body, &r) != nil {
			return // the server refuses it
		}
		if len(t.identity.Credentials) == credentialsMax || len(body) > credentialMax {
			t.identity.Many = true
			return
		}
		t.identity.Credentials = append(slices.Clip(t.identity.Credentials), Credential{r.Scheme.String, r.Auth})
	}
}

// reply handles a frame of the server.
func (t *Tap) reply(body []byte, whole bool, emit func(Pair)) error {
	if !t.answered {
		var r wire.ConnectResponse
		if err := wire.Decode(body, &r); err != nil {
			return err
		}
		if r.TimeoutMS <= 0 {
			return StopRefused
		}
		t.answered, t.session = true, r.Session
		return nil
	}
	c := wire.Decoder(body)
	var h wire.ReplyHeader
	h.Code(&c)
	if c.Err() != nil {
		return c.Err()
	}
	if h.Xid == wire.XidEvent {
		return t.event(c.Rest())
	}
	q, ok := t.take(h.Xid)
	if !ok {
		return StopUnmatched
	}
	p := Pair{Op: q.op, Request: q.body, Header: h, Answer: c.Rest(), Session: t.session, Identity: q.identity, Cut: q.cut || !whole, After: t.last}
	if h.Zxid >= t.last && h.Zxid != 0 {
		t.last, p.Events, t.events = h.Zxid, t.events, nil
	}
	if t.watched > 0 {
		p.Watched = t.watched
		t.watched++
	}
	if q.op != wire.OpPing || t.watched > 0 {
		emit(p)
	}
	return nil
}

// event keeps a watch event.
func (t *Tap) event(body []byte) error {
	var e wire.WatcherEvent
	if err := wire.Decode(body, &e); err != nil {
		return err
	}
	if len(t.events) == eventsMax {
		return StopEvents
	}
	t.events = append(t.events, e)
	return nil
}

// setsWatch reports whether a request sets a watch.
func setsWatch(op wire.OpCode, body []byte) bool {
	switch op {
	case wire.OpAddWatch, wire.OpSetWatches, wire.OpSetWatches2:
		return true
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		var r wire.PathWatchRequest
		return wire.Decode(body, &r) == nil && r.Watch
	}
	return false
}

// take removes and returns the request that a reply answers: usually the first one. Replies to pings, auth packets and
// logins may overtake others.
func (t *Tap) take(xid int32) (unanswered, bool) {
	i := slices.IndexFunc(t.waiting, func(q unanswered) bool {
		return q.xid == xid || q.op == wire.OpPing && xid == wire.XidPing
	})
	if i < 0 {
		return unanswered{}, false
	}
	q := t.waiting[i]
	if i == 0 {
		t.waiting[0], t.waiting = unanswered{}, t.waiting[1:]
	} else {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.waitingBytes -= len(q.body)
	return q, true
}
