// Package lines holds the state machines of recipes whose bids form a line: elections, locks and
// semaphores.
//
// A [Line] is one bid, from its creation to its removal. It leads, or holds a lock, for at most one term.
// Its [Rule] says for which of the bids ahead it waits. An [Election] is a Line that publishes itself at
// LEADER when its bid is first. A [Semaphore] consists of two Lines, one after the other. [MultiLock] takes
// several locks, and holds all or none. A [Fence] refuses tokens that are older than one that it has
// admitted.
//
//	create bid ▸ list, read own bid ▸ watch the nearest bid to wait for ▸ its event ▸ list, read …
//	                                ▸ no bid to wait for, session proven alive: lead ▸ publish at LEADER
//
// Read line.go first, then join.go, look.go, publish.go and leave.go, in the order of a term.
package lines
