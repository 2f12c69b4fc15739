// Package local runs an ensemble of real server processes on this machine, each with its
// own folder and ports: to try things out, for demonstrations, and for tests that kill
// servers.
//
// [Make] creates the folders or reuses existing ones. [Ensemble.Start] starts a server's
// process, [Ensemble.Kill] kills one, and [Ensemble.Stop] ends all of them. The processes
// also end when this process ends for any reason: the standard input of each is a pipe
// from this process, and the started program must end when that pipe closes.
//
// There is one goroutine for each running process. It forwards the process's log and waits
// for its end. Ensemble.mu guards the set of running processes; it is not held while the
// package waits for a process.
package local
