package peer

import (
	"log/slog"
	"net"
	"sync"
)

// toldMax bounds what is remembered as told; beyond it all is forgotten.
const toldMax = 1024

// Told remembers what was said about which machine, so that who repeats a
// mistake for ever does not fill the log. The zero value has nothing told. It
// is safe for concurrent use.
type Told struct {
	mu   sync.Mutex
	told map[string]bool
}

// Before reports whether the same was said before about an address, whatever
// its port, and notes that it is now.
func (t *Told) Before(address, what string) bool {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	key := address + " " + what
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.told[key]
	if t.told == nil || len(t.told) >= toldMax {
		t.told = map[string]bool{}
	}
	t.told[key] = true
	return before
}

// notices logs each complaint once for each address of another machine.
type notices struct {
	log  *slog.Logger
	told Told
}

func newNotices(log *slog.Logger) *notices { return &notices{log: log} }

// warn logs unless the same was said about the address, whatever its port.
func (n *notices) warn(address, what string, args ...any) {
	if !n.told.Before(address, what) {
		n.log.Warn(what, append([]any{"peer", address}, args...)...)
	}
}
