package recipe

import (
	"fmt"
	"sync"

	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// TokenGate protects a resource that a lock guards: it refuses a holder that has been
// superseded, such as one that was suspended or whose request was delayed. It needs no
// connection to the servers. The zero value admits the first token, whatever it is; if
// the resource outlives the process, keep what Seen returns. Its methods may be called
// from any goroutine.
//
// It is for locks that one client holds at a time, and for readers and writers. It is
// not for the leases of a semaphore: they are held together, so an older token is as
// valid as a newer one.
type TokenGate struct {
	mu    sync.Mutex
	fence lines.Fence
}

// StaleToken says why a TokenGate refuses a token: it has seen the token of a newer
// holder.
type StaleToken struct{ Token, Newest zk.Zxid }

func (e *StaleToken) Error() string {
	return fmt.Sprintf("token %v is older than %v, which has been seen", e.Token, e.Newest)
}

// Admit is for a leader, the holder of a lock, or a writer. It returns nil if no newer
// token was seen, otherwise a *StaleToken. The same token may be admitted any number of
// times.
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

// Seen returns the newest token admitted. Admit it to a gate that replaces this one, so
// that the new gate refuses the same tokens.
func (g *TokenGate) Seen() zk.Zxid {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fence.Seen()
}
