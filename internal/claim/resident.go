package claim

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is the recipe that the znodes below a parent belong to.
type Kind string

// The kinds. A lock may be an election of kazoo, or of Curator's
// LeaderSelector, whose znodes are the same.
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

	// A recipe that is about to begin tells these apart; a survey of the tree does not.
	KindBarrier     Kind = "barrier"
	KindPartitioner Kind = "partitioner"
	KindWork        Kind = "work"
)

// OtherRecipeError: the path that was given to a recipe, Want, is that of another one, Found,
// whose znodes stand there.
type OtherRecipeError struct {
	Path        string
	Want, Found string
}

func (e *OtherRecipeError) Error() string {
	return fmt.Sprintf("%s is in use by another recipe (%s), and cannot be used as %s: give each a path of its own", e.Path, e.Found, e.Want)
}

// OtherRecipe is an [OtherRecipeError] if the children of a path, by their names, are those of a
// recipe that want cannot share it with. What is not sure is nothing: strangers are left alone. An
// election whose leader is not published looks as a lock does, which is no reason to refuse it.
func OtherRecipe(path string, want Kind, names []string) error {
	found := resident(names)
	if found == "" || found == want || slices.Contains(neighbours[want], found) {
		return nil
	}
	return &OtherRecipeError{Path: path, Want: string(want), Found: string(found)}
}

// neighbours are the kinds whose znodes do not keep a recipe from working.
var neighbours = map[Kind][]Kind{
	KindElection:      {KindLock},
	KindLock:          {KindReadWriteLock},
	KindReadWriteLock: {KindLock},
	KindTransaction:   {KindLock, KindReadWriteLock},
	KindPartitioner:   {KindLock, KindReadWriteLock},
	KindWork:          {KindLock, KindReadWriteLock, KindPartitioner},
}

// resident is the recipe whose children have these names; empty where they do not tell. Bids come
// first: who stands in a line shares it with those that stand there already.
func resident(names []string) Kind {
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

// isOwnBid: the name is that of a bid with a nonce, which nothing else has by chance.
func isOwnBid(name string) bool {
	b, err := ParseBid(name)
	return err == nil && b.Naming != Foreign && b.Naming != Plain && len(name) > 32
}

func isReadersBid(name string) bool {
	b, err := ParseBid(name)
	return err == nil && b.Naming.Shared()
}

func isTransaction(name string) bool {
	id, ok := strings.CutPrefix(name, TxPrefix)
	return ok && IsHex32(id)
}

// OtherThanGroup is an [OtherRecipeError] if one of these ephemeral children of path is a bid, of
// which an election or a lock consists.
func OtherThanGroup(path string, ephemerals []string) error {
	if !slices.ContainsFunc(ephemerals, isOwnBid) {
		return nil
	}
	return OtherRecipe(path, KindGroup, ephemerals)
}
