package embed

import (
	"context"
	"log/slog"
	"sync"
)

// host is the process of a running server as its connections see it. It can be paused, and its connections end
// with it. A client has a nil host, which always runs.
type host struct {
	server int

	mu     sync.Mutex
	change sync.Cond // uses mu; signals a change of the fields below
	held   bool
	dead   bool
}

func newHost(server int) *host {
	h := &host{server: server}
	h.change.L = &h.mu
	return h
}

// await waits while the host is paused. It returns false if the host has ended.
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

// kill ends the host: nothing more is read or written.
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

// serverLog is the log handler of a server. It drops all records once the server's host has ended, because a killed
// process logs nothing more.
type serverLog struct {
	slog.Handler
	host *host
}

func (v serverLog) Enabled(ctx context.Context, l slog.Level) bool {
	return v.host.alive() && v.Handler.Enabled(ctx, l)
}

func (v serverLog) WithAttrs(a []slog.Attr) slog.Handler {
	return serverLog{v.Handler.WithAttrs(a), v.host}
}
func (v serverLog) WithGroup(name string) slog.Handler {
	return serverLog{v.Handler.WithGroup(name), v.host}
}
