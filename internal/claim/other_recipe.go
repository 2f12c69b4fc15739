package claim

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is the recipe that the children of a znode belong to.
type Kind string

// The kinds. KindLock also covers the elections of kazoo and of Curator's LeaderSelector, because their
// znodes look the same.
const (
	KindElection      Kind = "election"
	KindLock          Kind = "lock"
	KindReadWriteLock Kind = "read-write lock"
	KindSemaphore     Kind = "semaphore"
	KindQueue         Kind = "queue"
	KindWorkQueue     Kind = "work queue"
	KindDoubleBarrier Kind = "double barrier"
	KindGroup         Kind = "group"
	KindService       Kind = "service"
	KindTransaction   Kind = "transaction"

	// The check at the start of a recipe knows the following kinds too. Package survey does
	// not distinguish them.
	KindBarrier     Kind = "barrier"
	KindPartitioner Kind = "partitioner"
	KindWork        Kind = "work"
)

// OtherRecipeError reports that a path was given to the recipe Want, but holds znodes of the recipe Found.
type OtherRecipeError struct {
	Path        string
	Want, Found string
}

func (e *OtherRecipeError) Error() string {
	return fmt.Sprintf("%s is in use by another recipe (%s), and cannot be used as %s: give each a path of its own", e.Path, e.Found, e.Want)
}

// OtherRecipe returns an [OtherRecipeError] if the names of a path's children show a recipe that cannot
// share the path with want. It returns nil if the names are ambiguous. An election without a LEADER znode
// looks like a lock, so the two are not told apart.
func OtherRecipe(path string, want Kind, names []string) error {
	found := recipeOf(names)
	if found == "" || found == want || slices.Contains(canShare[want], found) {
		return nil
	}
	return &OtherRecipeError{Path: path, Want: string(want), Found: string(found)}
}

// canShare lists, for each recipe, the other kinds that may share its path.
var canShare = map[Kind][]Kind{
	KindElection:      {KindLock},
	KindLock:          {KindReadWriteLock},
	KindReadWriteLock: {KindLock},
	KindTransaction:   {KindLock, KindReadWriteLock},
	KindPartitioner:   {KindLock, KindReadWriteLock},
	KindWork:          {KindLock, KindReadWriteLock, KindPartitioner},
}

// recipeOf returns the recipe that the names of the children show, or "" if they do not show one. Bids are
// checked first, because new bids join the line of the existing ones.
func recipeOf(names []string) Kind {
	has := func(all ...string) bool {
		return !slices.ContainsFunc(all, func(name string) bool { return !slices.Contains(names, name) })
	}
	any := func(is func(string) bool) bool { return slices.ContainsFunc(names, is) }
	switch bids := any(isOwnBid); {
	case bids && has("LEADER"):
		return KindElection
	case bids && any(isReadersBid):
		return KindReadWriteLock
	case bids:
		return KindLock
	case has("entries", "taken"):
		return KindWorkQueue
	case has("leases", "locks"):
		return KindSemaphore
	case has("members", "tasks"):
		return KindWork
	case has("members", "parts"):
		return KindPartitioner
	case any(func(name string) bool { _, ok := ParseItem(name); return ok }):
		return KindQueue
	case any(isTransaction):
		return KindTransaction
	case has("ready") && any(func(name string) bool { return IsHex32(name) || IsUUID(name) }):
		return KindDoubleBarrier
	}
	return ""
}

// isOwnBid reports whether a name is that of a bid with a nonce. No other znode has such a name by chance.
func isOwnBid(name string) bool {
	b, err := ParseBid(name)
	return err == nil && b.Naming != Foreign && b.Naming != Plain && len(name) > 32
}

func isReadersBid(name string) bool {
	b, err := ParseBid(name)
	return err == nil && IsShared(b.Naming)
}

func isTransaction(name string) bool {
	id, ok := strings.CutPrefix(name, TxPrefix)
	return ok && IsHex32(id)
}

// OtherThanGroup returns an [OtherRecipeError] if one of the ephemeral children of path is a bid of an
// election or a lock.
func OtherThanGroup(path string, ephemerals []string) error {
	if !slices.ContainsFunc(ephemerals, isOwnBid) {
		return nil
	}
	return OtherRecipe(path, KindGroup, ephemerals)
}
