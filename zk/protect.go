package zk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"

	"bellwether/wire"
)

// CreateProtected is a Create that survives a lost answer. The last part of the path
// gets a random prefix of 32 hex digits and a dash. By this prefix the client looks
// for the znode before it tries again; if the znode is ephemeral, the client also
// compares the owner. If the context ends while the outcome is unknown, the znode is
// removed in the background. If the session expires meanwhile, CreateProtected of an
// ephemeral znode returns ErrSessionExpired.
func (c *Client) CreateProtected(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, Stat, error) {
	p := protected{c: c, spec: specOf(opts), data: data}
	if !validPath(path, p.spec.mode&Sequential != 0) {
		return "", Stat{}, opError(wire.OpCreate, path, ErrBadArguments)
	}
	cut := strings.LastIndexByte(path, '/') + 1
	var nonce [16]byte
	rand.Read(nonce[:])
	p.prefix = hex.EncodeToString(nonce[:]) + "-"
	p.dir, p.path = parentOf(path), path[:cut]+p.prefix+path[cut:]
	made, stat, err := p.run(ctx)
	if err != nil {
		err = protectedError(err, path)
	}
	return made, stat, err
}

// protectedError replaces the path of an error by the one that the caller gave.
func protectedError(err error, path string) error {
	var e *OpError
	if errors.As(err, &e) {
		err = e.Err
	}
	return opError(wire.OpCreate, path, err)
}

// protected is one CreateProtected in progress.
type protected struct {
	c      *Client
	spec   createSpec
	data   []byte
	prefix string // prefix of the name
	dir    string
	path   string // path with the prefix
	owner  SessionID
}

func (p *protected) run(ctx context.Context) (string, Stat, error) {
	for {
		made, stat, err := p.c.create(ctx, p.path, p.data, &p.spec)
		var lost *UnknownOutcomeError
		if !errors.As(err, &lost) {
			return made, stat, err
		}
		p.owner = lost.Session
		ctx = p.bound(ctx)
		made, stat, found, e := p.findAnywhere(ctx)
		switch {
		case found:
			return made, stat, nil
		case errors.Is(e, ErrSessionExpired) && p.ephemeral():
			return "", Stat{}, e
		case e != nil:
			p.tidy()
			return "", Stat{}, err
		}
	}
}

func (p *protected) ephemeral() bool { return p.spec.mode&Ephemeral != 0 }

// bound binds the calls about an ephemeral znode to the session in which it was created.
func (p *protected) bound(ctx context.Context) context.Context {
	if p.ephemeral() {
		return InSession(ctx, p.owner)
	}
	return ctx
}

// findAnywhere does what find does. If the session ends meanwhile, it continues in the next
// session, unless the context is bound to one session.
func (p *protected) findAnywhere(ctx context.Context) (made string, stat Stat, found bool, err error) {
	for {
		made, stat, found, err = p.find(ctx)
		if pinned(ctx) != 0 || !errors.Is(err, ErrSessionExpired) || p.c.Err() != nil {
			return made, stat, found, err
		}
	}
}

// find looks for the znode that a create with a lost answer may have made. It sends a
// sync before it reads, so that it sees the znode if the create was carried out.
func (p *protected) find(ctx context.Context) (made string, stat Stat, found bool, err error) {
	if err = p.c.Sync(ctx, p.dir); err != nil {
		return "", stat, false, err
	}
	names, _, err := p.c.Children(ctx, p.dir)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return "", stat, false, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, p.prefix) {
			continue
		}
		made = strings.TrimSuffix(p.dir, "/") + "/" + name
		stat, found, err = p.c.Exists(ctx, made)
		if err != nil || !found || p.ephemeral() && stat.EphemeralOwner != p.owner {
			return "", stat, false, err
		}
		return made, stat, true, nil
	}
	return "", stat, false, nil
}

// tidy removes, in the background, the znode that a create may have made although its
// caller gets an error. It gives up when the client ends or, for an ephemeral znode, when
// the session of the create has ended.
func (p *protected) tidy() {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return // an ephemeral ends with the session
	}
	c.clean(func(ctx context.Context) {
		if err := p.remove(p.bound(ctx)); err != nil {
			c.opt.Logger.Warn("a created znode may be left over", "path", p.path, "err", err)
		}
	})
}

func (p *protected) remove(ctx context.Context) error {
	for {
		made, _, found, err := p.findAnywhere(ctx)
		if err == nil && found {
			err = p.c.Delete(ctx, made, AnyVersion)
		}
		switch {
		case err == nil, errors.Is(err, ErrNoNode):
			return nil
		case errors.Is(err, ErrSessionExpired) && p.ephemeral():
			return nil // the znode was deleted with the session
		case ctx.Err() != nil, p.c.Err() != nil, !isLost(err) && !errors.Is(err, ErrSessionExpired):
			return err
		}
	}
}
