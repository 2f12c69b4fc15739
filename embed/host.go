package embed

import (
	"context"
	"log/slog"
	"sync"
)

// host is what stands between a running server and its connections: it can be
// held, and it dies with the server. A nil host is a client's, which runs.
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

// await waits while the host is held; false if it is dead.
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

// kill lets nothing in or out any more.
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

// voice is the log of a server, which says nothing once its host is dead: the
// last words of a process that was killed are never heard.
type voice struct {
	slog.Handler
	host *host
}

func (v voice) Enabled(ctx context.Context, l slog.Level) bool {
	return v.host.alive() && v.Handler.Enabled(ctx, l)
}

func (v voice) WithAttrs(a []slog.Attr) slog.Handler { return voice{v.Handler.WithAttrs(a), v.host} }
func (v voice) WithGroup(name string) slog.Handler   { return voice{v.Handler.WithGroup(name), v.host} }
