// Package schedule runs the goroutines of a test one at a time, in an order that a seed
// decides. It contains stand-ins for the types of sync and sync/atomic. Package
// instrument builds shipped code with them in place of the originals.
//
// A goroutine stops before it takes a lock, uses an atomic or a channel, or calls [Point]
// or [Wait]. A [Schedule] lets exactly one of the stopped goroutines go on, and waits
// until that one has stopped again or has ended. Code between two stops is not
// interrupted. That hides no order of code without data races, because every access to
// shared memory comes after a stop.
//
// A Schedule belongs to a bubble of testing/synctest, which tells it when all goroutines
// have stopped. Time passes only when no goroutine can go on. The order of maps is not under
// control, so a seed repeats a run only if the code does not depend on it.
//
// There is at most one Schedule at a time. Without one, [Point] does nothing, and the
// locks only check that nobody would have to wait.
//
// Read schedule.go first, then locks.go.
package schedule
