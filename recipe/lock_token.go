package recipe

import (
	"fmt"
	"sync"

	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// TokenGate protects a resource that a lock guards. It refuses a holder that another holder has
// replaced, such as one that was suspended or whose request was delayed. It needs no
// connection to the servers. The zero value admits the first token, whatever it is. If
// the resource outlives the process, store the result of Seen. Its methods may be called
// from any goroutine.
//
// A TokenGate is for leaders, for locks that one client holds at a time, and for readers and writers. It does
// not work for the leases of a semaphore: clients hold them together, so an older token is as
// valid as a newer one.
type TokenGate struct {
	mu    sync.Mutex
	fence lines.Fence
}

// StaleToken says why a TokenGate refuses a token: the gate has already admitted the token of a newer
// holder.
type StaleToken struct{ Token, Newest zk.Zxid }

func (e *StaleToken) Error() string {
	return fmt.Sprintf("token %v is older than %v, which has been seen", e.Token, e.Newest)
}

// Admit checks the token of a leader, of the holder of a lock, or of a writer. It returns nil if the gate has
// admitted no newer token, and otherwise a *StaleToken. The same token may be admitted any number of
// times.
func (g *TokenGate) Admit(token zk.Zxid) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if newest, ok := g.fence.Admit(token); !ok {
		return &StaleToken{token, newest}
	}
	return nil
}

// AdmitShared checks the token of a reader. It returns nil if the gate has admitted no newer token of a
// writer, and otherwise a *StaleToken. Tokens of readers may come in any order.
func (g *TokenGate) AdmitShared(token zk.Zxid) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if newest, ok := g.fence.AdmitShared(token); !ok {
		return &StaleToken{token, newest}
	}
	return nil
}

// Seen returns the newest token admitted. Pass it to Admit of a gate that replaces this one, so
// that the new gate refuses the same tokens.
func (g *TokenGate) Seen() zk.Zxid {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fence.Seen()
}
