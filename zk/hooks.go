package zk

import (
	"context"
	"time"
)

// Hooks are told what a client does, for metrics and spans. The module otel in Bellwether's
// repository has Hooks for OpenTelemetry.
type Hooks interface {
	// CallBegins is called at the start of each call, with the context of the caller. The
	// function that it returns is called at the end, on the same goroutine. Both may close the client.
	CallBegins(ctx context.Context, op OpCode, path string) func(CallEnd)
	// StateChanged is called with each status, in order, on the goroutine that calls the
	// Logger. If it blocks, only later calls of StateChanged and of the Logger are delayed.
	// While 1024 calls wait, new ones are dropped. StateChanged may close the client.
	StateChanged(s Status)
}

// CallEnd says how a call has ended.
type CallEnd struct {
	Took   time.Duration
	Err    error
	Server string // IP:port to which the client was connected at the end; empty: none
	// Session and Cxid identify an answered request in the server's log and traces; Zxid is
	// that of the answer. All are 0 if no answer has come.
	Session SessionID
	Cxid    int32
	Zxid    Zxid
}

// hook is what a call keeps for the Hooks.
type hook struct {
	began time.Time
	told  func(CallEnd)
	end   CallEnd
}

// begin tells the Hooks that a call begins. It returns nil if there are no Hooks.
func (c *Client) begin(ctx context.Context, op OpCode, path string) *hook {
	if c.opt.Hooks == nil {
		return nil
	}
	return &hook{told: c.opt.Hooks.CallBegins(ctx, op, path), began: time.Now()}
}

// answered notes the answer of a call.
func (h *hook) answered(k *call) {
	if h != nil && k.err == nil {
		h.end.Session, h.end.Cxid, h.end.Zxid = k.session, k.xid, k.header.Zxid
	}
}

// ended tells the Hooks how the call has ended.
func (h *hook) ended(c *Client, err error) {
	if h == nil {
		return
	}
	h.end.Took, h.end.Err, h.end.Server = time.Since(h.began), err, c.State().Server
	if h.told != nil {
		h.told(h.end)
	}
}
