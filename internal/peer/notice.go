package peer

import (
	"log/slog"
	"net"
	"sync"
)

// noticesMax bounds what is remembered as told; beyond it all is forgotten.
const noticesMax = 1024

// notices logs each complaint once for each address of another machine, so
// that who repeats a mistake for ever does not fill the log.
type notices struct {
	log  *slog.Logger
	mu   sync.Mutex
	told map[string]bool
}

func newNotices(log *slog.Logger) *notices {
	return &notices{log: log, told: map[string]bool{}}
}

// warn logs unless the same was said about the address, whatever its port.
func (n *notices) warn(address, what string, args ...any) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	key := host + " " + what
	n.mu.Lock()
	told := n.told[key]
	if len(n.told) >= noticesMax {
		clear(n.told)
	}
	n.told[key] = true
	n.mu.Unlock()
	if !told {
		n.log.Warn(what, append([]any{"peer", address}, args...)...)
	}
}
