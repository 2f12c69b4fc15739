package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"bellwether/internal/fourletter"
	"bellwether/internal/shadow"
)

// answerShown is how many bytes of an unexpected answer are logged.
const answerShown = 100

// Check connects to each old server and to the observer, so that a wrong address is noticed at the start. It is an error if no old
// server can be reached, and [ErrOwnAddress] if an address is that of the relay itself.
func (r *Relay) Check(ctx context.Context) error {
	var who shadow.Identity
	if len(r.opt.OldTLS) > 0 {
		who.Subject = subjectOf(r.opt.OldTLS[0])
	}
	if err := r.checkOld(ctx, who.Subject); err != nil {
		return err
	}
	o, err := r.openObserver(ctx, who)
	if err != nil {
		return fmt.Errorf("observer %s: %w", r.opt.Observer, err)
	}
	o.close()
	r.checkKind(ctx, who)
	return nil
}

// checkKind warns if the server that stands for Bellwether is another one, or not an observer. It sends the word srvr.
func (r *Relay) checkKind(ctx context.Context, who shadow.Identity) {
	log := r.opt.Logger.With("observer", r.opt.Observer)
	s, err := r.askKind(ctx, who)
	if err != nil {
		log.Warn("cannot check that the server of --observer is a Bellwether observer: allow the word srvr in its 4lw.commands.whitelist", "err", err)
		return
	}
	if !strings.Contains(s.Version, "bellwether") {
		log.Warn("the server of --observer is not a Bellwether server: the comparison says nothing about Bellwether", "version", s.Version)
	}
	if s.Mode != "observer" {
		log.Warn("the server of --observer is not an observer: give it a server line with the role observer, and reconfigEnabled=false", "mode", s.Mode)
	}
}

func (r *Relay) askKind(ctx context.Context, who shadow.Identity) (s fourletter.Srvr, err error) {
	store, err := storeFor(r.opt.ObserverTLS, who.Subject)
	if err != nil {
		return s, err
	}
	conn, err := r.dial(ctx, r.opt.Observer, store)
	if err != nil {
		return s, err
	}
	text, err := fourletter.Ask(ctx, conn, "srvr", askTimeout)
	if s = fourletter.ParseSrvr(text); s.Version != "" {
		return s, nil
	}
	return s, cmp.Or(err, fmt.Errorf("the answer is %q", fourletter.Clip(strings.TrimSpace(text), answerShown)))
}

func (r *Relay) checkOld(ctx context.Context, subject string) error {
	store, _, err := r.storeOld(subject)
	if err != nil {
		return err
	}
	var errs []error
	for _, addr := range r.opt.Old {
		conn, err := r.dialRoute(ctx, route{addr, store})
		if err == nil {
			conn.Close()
			continue
		}
		if errors.Is(err, ErrOwnAddress) {
			return fmt.Errorf("old server %s: %w", addr, err)
		}
		errs = append(errs, err)
	}
	if len(errs) < len(r.opt.Old) {
		return nil
	}
	return errors.Join(errs...)
}
