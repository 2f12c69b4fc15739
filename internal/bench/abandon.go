package bench

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// Abandon opens sessions and ends their connections without closing the sessions, so that the sessions stay until
// they expire. It needs the Raw of its Setting, with the session timeout.
type Abandon struct {
	Setting
	Sessions   int
	Ephemerals bool   // each session creates a sequential ephemeral child of the root, which must exist
	Name       string // how the names of these children begin; empty: "bid-"
	// Hold keeps all connections until the caller ends them, so that the servers have heard of all sessions at about
	// the same time. Otherwise a connection ends as soon as its session is open, and few are open at a time.
	Hold bool
}

// Check returns an error if a field is out of range.
func (a Abandon) Check() error {
	open := 0
	if a.Hold {
		open = a.Sessions
	}
	if a.Raw == nil {
		return fmt.Errorf("sessions: want connections without the client library")
	}
	return firstOf(between("sessions", a.Sessions, 1, keysMax), checkFiles(open))
}

// Run opens the sessions. The latency in the report is the time until a session is open, and its ephemeral znode
// created. The caller must call end, also after an error: it ends the connections that Hold has kept, after each of
// them has sent a ping.
func (a Abandon) Run(ctx context.Context) (r *Report, end func(), err error) {
	lines := make([]*line, a.Sessions)
	end = func() { abandonAll(lines) }
	if err := a.Check(); err != nil {
		return nil, end, err
	}
	a.Warmup = 0
	path := a.Raw.Chroot + a.Root + bidPath
	if a.Name != "" {
		path = a.Raw.Chroot + a.Root + "/" + a.Name
	}
	m, took := a.begin(), newLatencies()
	err = inFlight(a.Sessions, dialWidth, func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		begin := time.Now()
		l, err := a.Raw.open(ctx, a.Raw.Servers[i%len(a.Raw.Servers)])
		if err != nil {
			return err
		}
		if a.Ephemerals {
			err = l.createEphemeral(path)
		}
		took.record(time.Since(begin))
		if lines[i] = l; !a.Hold {
			abandonAll(lines[i : i+1])
		}
		return err
	})
	return m.report("sessions: open, and end the connection", took), end, err
}

// createEphemeral creates a sequential ephemeral znode and waits for the reply. The line must have nothing in flight.
func (l *line) createEphemeral(path string) error {
	l.xid++
	_ = l.conn.SetDeadline(time.Now().Add(greetTimeout)) // an error shows at the next call
	request := wire.AppendFrame(nil, &wire.RequestHeader{Xid: l.xid, Op: wire.OpCreate},
		&wire.CreateRequest{Path: path, ACL: openACL, Flags: int32(zk.Ephemeral | zk.Sequential)})
	if _, err := l.conn.Write(request); err != nil {
		return l.lost(err)
	}
	frame, err := wire.ReadFrame(bufio.NewReader(l.conn), nil, FrameMax)
	if err != nil {
		return l.lost(err)
	}
	var h wire.ReplyHeader
	d := wire.Decoder(frame)
	if h.Code(&d); h.Err != 0 {
		return fmt.Errorf("server %s: %w", l.server, h.Err)
	}
	return nil
}

// abandonAll sends a ping on each line and ends its connection, but not its session.
func abandonAll(lines []*line) {
	for i, l := range lines {
		if l == nil {
			continue
		}
		l.ping()
		_, _ = l.conn.Write(l.out) // if it fails, the session expires earlier
		l.conn.Close()
		lines[i] = nil
	}
}
