// Package lines holds the state machines of bids that stand in a line: elections, locks and semaphores.
//
// A [Line] is one bid, from its creation to its removal. It leads, or holds a lock, for at most one term. Its
// [Rule] says for which bids ahead it has to wait. An [Election] is a Line whose first bid publishes itself
// at LEADER; a [Semaphore] is two Lines, one after the other. [Several] takes several locks, and holds all or
// none. A [Fence] refuses tokens that are older than one it has seen.
//
//	create bid ▸ list, read own bid ▸ watch the nearest bid in the way ▸ its event ▸ list, read …
//	                                ▸ none in the way, session proven alive: lead ▸ publish at LEADER
//
// Read line.go first, then join.go, look.go, publish.go and leave.go, in the order of a term.
package lines
