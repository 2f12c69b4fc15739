package embed

import (
	"context"
	"log/slog"
	"sync"
)

// host is the process of a running server, as its connections see it: it can be paused,
// and its connections end with it. A nil host is a client's, which always runs.
type host struct {
	server int

	mu     sync.Mutex
	change sync.Cond // on mu
	held   bool
	dead   bool
}

func newHost(server int) *host {
	h := &host{server: server}
	h.change.L = &h.mu
	return h
}

// await waits while the host is paused; it returns false if the host has ended.
func (h *host) await() bool {
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.held && !h.dead {
		h.change.Wait()
	}
	return !h.dead
}

func (h *host) hold(held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = held
	h.change.Broadcast()
}

// kill stops everything that would still be read or written.
func (h *host) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dead = true
	h.change.Broadcast()
}

func (h *host) alive() bool {
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.dead
}

// voice is the log of a server. It drops everything once the server's host has ended,
// because a killed process logs nothing more.
type voice struct {
	slog.Handler
	host *host
}

func (v voice) Enabled(ctx context.Context, l slog.Level) bool {
	return v.host.alive() && v.Handler.Enabled(ctx, l)
}

func (v voice) WithAttrs(a []slog.Attr) slog.Handler { return voice{v.Handler.WithAttrs(a), v.host} }
func (v voice) WithGroup(name string) slog.Handler   { return voice{v.Handler.WithGroup(name), v.host} }
