package recipe

import (
	"fmt"
	"sync"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// TokenGate stands before a resource that a lock protects and refuses who has
// been overtaken: a holder of old that was stopped, or whose request was on
// its way for long. It needs no connection to the servers. The zero value
// admits everybody first; keep what it has seen, see Seen, where the resource
// outlives the process. Its methods may be called from any goroutine.
//
// It is for what one holds at a time, and for readers and writers. The leases of a
// semaphore are held together, so that an older token is as good as a newer.
type TokenGate struct {
	mu    sync.Mutex
	fence claim.Fence
}

// StaleToken is why a TokenGate refuses: a newer holder was there already.
type StaleToken struct{ Token, Newest zk.Zxid }

func (e *StaleToken) Error() string {
	return fmt.Sprintf("token %v is older than %v, which has been seen", e.Token, e.Newest)
}

// Admit is for the leader, the holder of a lock, or a writer. It returns nil
// if no newer token was seen, else a [*StaleToken]. The same token may come
// any number of times.
func (g *TokenGate) Admit(token zk.Zxid) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if newest, ok := g.fence.Admit(token); !ok {
		return &StaleToken{token, newest}
	}
	return nil
}

// AdmitShared is for readers: it returns nil if no newer token of a writer
// was seen. Tokens of readers may come in any order.
func (g *TokenGate) AdmitShared(token zk.Zxid) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if newest, ok := g.fence.AdmitShared(token); !ok {
		return &StaleToken{token, newest}
	}
	return nil
}

// Seen is the newest token admitted. Admit it to a gate made later, so that it
// refuses what this one would.
func (g *TokenGate) Seen() zk.Zxid {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fence.Seen()
}
