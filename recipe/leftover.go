package recipe

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"weak"

	"bellwether/zk"
)

// leftover is a bid, or a place in the line of a queue, that a client was not permitted to
// remove. It exists until the session ends, and all bids behind it wait.
type leftover struct {
	path    string
	session zk.SessionID
}

// lineKey is a line of bids, and a client that has bids in it.
type lineKey struct {
	c      weak.Pointer[zk.Client]
	parent string
}

// leftovers are all leftovers of this process. Each is forgotten once it is found removed or its session
// has ended. The map is global because the client's next bid in a line may come from another Lock value.
var leftovers = struct {
	sync.Mutex
	at map[lineKey][]leftover
}{at: map[lineKey][]leftover{}}

// recordLeftover records a znode that this client could not remove.
func (a *agent) recordLeftover(at string) {
	line := lineKey{weak.Make(a.c), path.Dir(at)}
	leftovers.Lock()
	defer leftovers.Unlock()
	leftovers.at[line] = append(leftovers.at[line], leftover{at, a.c.Session().ID})
}

// removeLeftovers tries again to remove what this client has left in the line at parent. If that
// fails, the error names the znode: the client's next bid in that line would wait for it until
// the session ends.
func (a *agent) removeLeftovers(ctx context.Context, parent string) error {
	at := lineKey{weak.Make(a.c), parent}
	leftovers.Lock()
	left := slices.Clone(leftovers.at[at])
	leftovers.Unlock()
	for _, l := range left {
		err := a.c.Delete(zk.InSession(ctx, l.session), l.path, zk.AnyVersion)
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
			forgetLeftover(at, l)
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			return fmt.Errorf("%s, which this client could not remove, stands in the way until its session ends: permit the client to delete it, or delete it: %w", l.path, err)
		}
	}
	return nil
}

func forgetLeftover(at lineKey, l leftover) {
	leftovers.Lock()
	defer leftovers.Unlock()
	rest := slices.DeleteFunc(leftovers.at[at], func(one leftover) bool { return one == l })
	if len(rest) == 0 {
		delete(leftovers.at, at)
	} else {
		leftovers.at[at] = rest
	}
}
