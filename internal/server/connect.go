package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"bellwether/internal/audit"
	"bellwether/internal/store"
	"bellwether/wire"
)

// Operator is a person who changes something through the admin port.
type Operator struct {
	Name string
	Addr netip.AddrPort // from where; shown to operators and in the audit log
}

// operatorScheme is the scheme of the identity by which the audit log names an operator. No
// ACL has entries of this scheme.
const operatorScheme = "operator"

// ErrNotServing says that the server does not serve now: it loads its data, has no quorum, or is ending.
var ErrNotServing = errors.New("the server does not serve clients now: wait until it has a quorum, or until its start is complete")

// Connect returns the client's end of a connection within the process, which has the rights of
// super. Its requests are handled like those of all other clients, and the audit log names the
// operator. The caller must close it.
func (s *Server) Connect(o Operator) (net.Conn, error) {
	if !s.Serving() || s.stopping.Load() {
		return nil, ErrNotServing
	}
	theirs, ours := net.Pipe()
	c, reason := s.conns.add(s, &pipeEnd{ours, net.TCPAddrFromAddrPort(o.Addr)})
	if c == nil {
		theirs.Close()
		ours.Close()
		return nil, errors.New(reason + ": close a session, or raise the limit")
	}
	c.operator = true
	ids := []wire.ID{{Scheme: "super"}, {Scheme: operatorScheme, ID: o.Name}, {Scheme: "ip", ID: c.addr.Addr().String()}}
	c.ids.Store(&ids)
	s.readers.Go(c.run)
	return theirs, nil
}

// pipeEnd is the server's end of a connection within the process. It has the operator's
// address.
type pipeEnd struct {
	net.Conn
	from net.Addr
}

func (p *pipeEnd) RemoteAddr() net.Addr { return p.from }

// ErrNoSession says that a session does not exist.
var ErrNoSession = errors.New("there is no such session: it has ended, or its id is wrong")

// closeSessionMax is how long the end of a session may take.
const closeSessionMax = 10 * time.Second

// closeSessionTries is how often the operator's connection takes over a session that the client
// takes back.
const closeSessionTries = 10

// CloseSession ends the session of a client on behalf of an operator, on whichever server the
// client is connected. The operator's connection takes the session over and closes it. A client
// that reconnects between the two takes the session back and so ends the operator's connection:
// then CloseSession tries again.
func (s *Server) CloseSession(o Operator, id wire.SessionID) (err error) {
	defer func() { s.Record(o, "closeSession", id.String(), err) }()
	var password [wire.PasswordLen]byte
	s.ask(func(l *loop) { password = l.replica.Password(id) })
	end := time.Now().Add(closeSessionMax)
	for try := range closeSessionTries {
		var nc net.Conn
		if nc, err = s.Connect(o); err != nil {
			if try == 0 {
				return err
			}
			break
		}
		err = takeAndClose(nc, id, password[:], end)
		nc.Close()
		if try > 0 && errors.Is(err, ErrNoSession) {
			return nil // the try before closed it, though the answer was lost
		}
		if err == nil || errors.Is(err, ErrNoSession) {
			return err
		}
	}
	return fmt.Errorf("it is not known whether session %v has ended: %w", id, err)
}

// takeAndClose takes a session over and closes it.
func takeAndClose(nc net.Conn, id wire.SessionID, password []byte, end time.Time) error {
	if err := nc.SetDeadline(end); err != nil {
		return err
	}
	frames := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: int32(closeSessionMax.Milliseconds()), Session: id, Password: password})
	frames = wire.AppendFrame(frames, &wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession})
	if _, err := nc.Write(frames); err != nil {
		return err
	}
	frame, err := wire.ReadFrame(nc, nil, wire.FrameMax)
	var connected wire.ConnectResponse
	if err == nil {
		err = wire.Decode(frame, &connected)
	}
	switch {
	case err != nil:
		return err
	case connected.Session == 0:
		return ErrNoSession
	}
	var h wire.ReplyHeader
	if frame, err = wire.ReadFrame(nc, frame, wire.FrameMax); err == nil {
		err = wire.Decode(frame, &h)
	}
	if err == nil && h.Err != wire.OK {
		err = h.Err
	}
	return err
}

// Record writes a change by an operator that is not a request of a client, such as a leadership
// transfer, into the log and the audit log.
func (s *Server) Record(o Operator, operation, object string, failure error) {
	r := audit.Record{User: o.Name, IP: o.Addr.Addr().String(), Operation: operation, Znode: object, Result: audit.Success}
	if failure != nil {
		r.Result = audit.Failure
	}
	s.log.Info("an operator has asked for a change", "operator", o.Name, "from", o.Addr, "change", operation, "of", object, "result", r.Result, "err", failure)
	if s.audit != nil {
		s.audit.Write(r)
	}
}

// ReadHistory calls read with the file system and the folder of the transaction logs, while
// the history is not cut or replaced. read must return soon after stop returns true, and
// must not be slow: a follower that must cut its history waits for it.
func (s *Server) ReadHistory(read func(fs store.FS, logDir string, stop func() bool) error) error {
	s.historyLock.mu.RLock()
	defer s.historyLock.mu.RUnlock()
	return read(s.opt.FS, s.config().DataLogDir, s.historyLock.urgent.Load)
}
