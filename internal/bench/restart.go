package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bellwether/zk"
)

// ownedRoot is the znode below which measurements write on their own servers.
const ownedRoot = "/bench"

// Restart measures how long a standalone server needs, after it was killed, from the start of
// its process until it has answered a read. On Linux it also reports the resident memory that each znode has needed before.
type Restart struct {
	Owned
	Znodes int // znodes in the tree
	Size   int // bytes of data per znode
	Rounds int // how often the server is killed
}

// Check returns an error if a field is out of range.
func (m Restart) Check() error {
	return firstOf(between("znodes", m.Znodes, 1, keysMax), between("size", m.Size, 0, sizeMax), between("rounds", m.Rounds, 1, roundsMax))
}

// firstOf returns the first error.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Run fills a server, and then kills and starts it.
func (m Restart) Run(ctx context.Context) ([]*Report, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	return m.run(ctx, 1, func(e *ensemble) ([]*Report, error) {
		g := &growth{ensemble: e, report: &Report{Figures: []Figure{{"znodes", float64(m.Znodes)}}}}
		_ = g.note(idleServer, 1) // systems other than Linux do not say it
		if err := e.fill(ctx, m.Znodes, m.Size); err != nil {
			return nil, err
		}
		_ = g.note(perZnode, m.Znodes)
		took := newLatencies()
		for range m.Rounds {
			if err := e.servers.Kill(1); err != nil {
				return nil, err
			}
			begin := time.Now()
			if err := e.start(1); err != nil {
				return nil, err
			}
			if err := e.awaitAnswer(ctx, m.Znodes-1); err != nil {
				return nil, err
			}
			took.record(time.Since(begin))
		}
		r := reportOf("restart", 0, took)
		r.Figures = g.report.Figures
		return []*Report{r}, nil
	})
}

// awaitAnswer waits until a session has read the last key.
func (e *ensemble) awaitAnswer(ctx context.Context, last int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, serveTimeout, errors.New("the server did not answer after its start"))
	defer cancel()
	for ctx.Err() == nil && e.servers.PID(1) != 0 {
		if e.role(ctx, 1) == "" {
			wait(ctx, pollPause)
			continue
		}
		c, err := e.client(ctx)
		if err == nil {
			_, _, err = c.Get(ctx, key(ownedRoot, last))
			c.Detach()
		}
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	if ctx.Err() != nil {
		return e.fail(context.Cause(ctx))
	}
	return e.fail(fmt.Errorf("the server has ended: %v", e.servers.HowEnded(1)))
}

// fill creates znodes.
func (e *ensemble) fill(ctx context.Context, znodes, size int) error {
	c, err := e.client(ctx)
	if err != nil {
		return e.fail(err)
	}
	defer c.Detach()
	if _, _, err := c.Create(ctx, ownedRoot, nil); err != nil {
		return err
	}
	return makeKeys(ctx, c, ownedRoot, znodes, size)
}

// Memory measures the resident memory of a standalone server, per znode, watch and session.
type Memory struct {
	Owned
	Znodes, Size      int // znodes, and bytes of data of each
	Watches, Sessions int
}

// Check returns an error if a field is out of range.
func (m Memory) Check() error {
	return firstOf(between("znodes", m.Znodes, 1, keysMax), between("size", m.Size, 0, sizeMax),
		between("watches", m.Watches, 0, m.Znodes), between("sessions", m.Sessions, 0, connectionsMax), checkFiles(m.Sessions))
}

// Run adds znodes, then watches, then sessions, and reports how the memory grows.
func (m Memory) Run(ctx context.Context) ([]*Report, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	return m.run(ctx, 1, func(e *ensemble) ([]*Report, error) {
		g := &growth{ensemble: e, report: &Report{Kind: "memory"}}
		if err := g.note(idleServer, 1); err != nil {
			return nil, err
		}
		if err := e.fill(ctx, m.Znodes, m.Size); err != nil {
			return nil, err
		}
		if err := g.note(perZnode, m.Znodes); err != nil {
			return nil, err
		}
		c, err := e.client(ctx)
		if err != nil {
			return nil, err
		}
		defer c.Detach()
		if err := inFlight(m.Watches, prepareBatch, func(i int) error {
			_, _, _, err := c.GetW(ctx, key(ownedRoot, i))
			return err
		}); err != nil {
			return nil, err
		}
		if err := g.note("bytes per watch", m.Watches); err != nil {
			return nil, err
		}
		s := Setting{Connect: e.client}
		clients, err := connectAll(ctx, e.client, m.Sessions)
		defer s.closeAll(clients)
		if err != nil {
			return nil, err
		}
		if err := g.note("bytes per session", m.Sessions); err != nil {
			return nil, err
		}
		return []*Report{g.report}, nil
	})
}

// Figures of the memory of a server.
const (
	idleServer = "bytes of the idle server"
	perZnode   = "bytes per znode"
)

// growth follows the memory of the first server.
type growth struct {
	ensemble *ensemble
	report   *Report
	last     int64
}

// note adds to the report by how many bytes the memory has grown for each of n things.
func (g *growth) note(what string, n int) error {
	now, err := resident(g.ensemble.servers.PID(1))
	if err != nil {
		return err
	}
	if n > 0 {
		g.report.Figures = append(g.report.Figures, Figure{what, float64((now - g.last) / int64(n))})
	}
	g.last = now
	return nil
}
