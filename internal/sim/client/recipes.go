package client

// Recipe is the recipe for which the candidates of a run compete.
type Recipe string

// The recipes.
const (
	Election      Recipe = "election"
	Lock          Recipe = "lock"
	ReadWriteLock Recipe = "read-write lock"
	Semaphore     Recipe = "semaphore"
	Commit        Recipe = "two-phase commit"
	Queue         Recipe = "queue"
	WorkQueue     Recipe = "queue with acknowledgement"
	Count         Recipe = "counter and ids"
	DoubleBarrier Recipe = "double barrier"
	KazooBarrier  Recipe = "double barrier of kazoo"
	Barrier       Recipe = "barrier"
	Configuration Recipe = "configuration of a leader"
	Registration  Recipe = "registration"
	Caches        Recipe = "caches"
	Partitioner   Recipe = "partitioner"
	Work          Recipe = "work"
	MultiLocks    Recipe = "multi-locks"
)

// Claims are the recipes in which a claim passes from one holder to the next.
var Claims = []Recipe{Election, Lock, ReadWriteLock, Semaphore}

// Recipes are all recipes. The seed draws the last one, MultiLocks, only in place of
// Lock.
var Recipes = []Recipe{Election, Lock, ReadWriteLock, Semaphore, Commit, Queue, WorkQueue, Count, DoubleBarrier,
	KazooBarrier, Barrier, Configuration, Registration, Caches, Partitioner, Work, MultiLocks}

// CandidatesMin is the smallest number of candidates that a recipe needs.
var CandidatesMin = map[Recipe]int{Semaphore: 3, Commit: 3, Queue: 3, WorkQueue: 3, Count: 2, DoubleBarrier: 3, KazooBarrier: 3, Barrier: 2, Configuration: 2, Registration: 3, Partitioner: 2, Work: 2, MultiLocks: 2}
