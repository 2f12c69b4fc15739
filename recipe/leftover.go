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
// remove. It stands until the session ends, and all behind it wait.
type leftover struct {
	path    string
	session zk.SessionID
}

// lineOf is a line in which a client stands.
type lineOf struct {
	c      weak.Pointer[zk.Client]
	parent string
}

// leftovers are those of this process. Each is forgotten when it is found removed, or its session
// over. They are kept here because the next bid of a client may be that of another Lock.
var leftovers = struct {
	sync.Mutex
	at map[lineOf][]leftover
}{at: map[lineOf][]leftover{}}

// leave remembers a leftover.
func (a *agent) leave(at string) {
	line := lineOf{weak.Make(a.c), path.Dir(at)}
	leftovers.Lock()
	defer leftovers.Unlock()
	leftovers.at[line] = append(leftovers.at[line], leftover{at, a.c.Session().ID})
}

// removeLeftovers tries once more to remove what this client has left in the line at parent. The
// error says what stands in the way of the client's next bid there, which would wait for it
// without end.
func (a *agent) removeLeftovers(ctx context.Context, parent string) error {
	at := lineOf{weak.Make(a.c), parent}
	leftovers.Lock()
	left := slices.Clone(leftovers.at[at])
	leftovers.Unlock()
	for _, l := range left {
		err := a.c.Delete(zk.InSession(ctx, l.session), l.path, zk.AnyVersion)
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
			forget(at, l)
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			return fmt.Errorf("%s, which this client could not remove, stands in the way until its session ends: %w", l.path, err)
		}
	}
	return nil
}

func forget(at lineOf, l leftover) {
	leftovers.Lock()
	defer leftovers.Unlock()
	rest := slices.DeleteFunc(leftovers.at[at], func(one leftover) bool { return one == l })
	if len(rest) == 0 {
		delete(leftovers.at, at)
	} else {
		leftovers.at[at] = rest
	}
}
