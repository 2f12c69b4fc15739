package relay

import (
	"context"
	"errors"
	"net"

	"bellwether/internal/secure"
)

// route is a way to an old server. The certificate can decide whether the server answers.
type route struct {
	addr  string
	store *secure.Store
}

// dialOld connects a client to the next old server that answers. subject is that of the client's certificate. It returns the
// subject that the old server sees.
func (r *Relay) dialOld(ctx context.Context, subject string) (conn net.Conn, seen string, err error) {
	store, seen, err := r.storeOld(subject)
	if err != nil {
		return nil, "", err
	}
	conn, err = r.dialNext(ctx, store)
	return conn, seen, err
}

// storeOld returns the store with which a client is connected, and the subject that the old server sees. A client without TLS is
// connected with the first certificate, if there is one.
func (r *Relay) storeOld(subject string) (store *secure.Store, seen string, err error) {
	if len(r.opt.OldTLS) > 0 && r.clients == nil {
		subject = subjectOf(r.opt.OldTLS[0])
	}
	store, err = storeFor(r.opt.OldTLS, subject)
	if err != nil || store == nil {
		return nil, "", err
	}
	return store, subject, nil
}

func (r *Relay) dialNext(ctx context.Context, store *secure.Store) (net.Conn, error) {
	r.mu.Lock()
	first := r.next
	r.next++
	r.mu.Unlock()
	var errs []error
	for i := range r.opt.Old {
		conn, err := r.dialRoute(ctx, route{r.opt.Old[(first+i)%len(r.opt.Old)], store})
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// dialRoute connects to one old server. It logs the first failure, and the next success.
func (r *Relay) dialRoute(ctx context.Context, to route) (net.Conn, error) {
	conn, err := r.dial(ctx, to.addr, to.store)
	if ctx.Err() != nil { // an error says nothing about the server
		return conn, err
	}
	r.mu.Lock()
	failed := r.down[to]
	r.down[to] = err != nil
	r.mu.Unlock()
	switch {
	case err != nil && !failed:
		r.opt.Logger.Warn("an old server cannot be reached", "old", to.addr, "err", err)
	case err == nil && failed:
		r.opt.Logger.Info("an old server can be reached again", "old", to.addr)
	}
	return conn, err
}
