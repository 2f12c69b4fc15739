// Package local runs an ensemble of real server processes on this machine,
// each with a folder and ports of its own: for trying out, for demonstrations
// and for tests that kill.
//
// [Make] writes, or takes up again, the folders; [Ensemble.Start] starts the
// process of a server, [Ensemble.Kill] ends one without a goodbye, and
// [Ensemble.Stop] ends all of them. The processes end too when this one does,
// however it ends: each has a pipe from it as its standard input, and the
// program that is started must end when that closes.
//
// Goroutines: one for each running process, which passes its log on and waits
// for its end. Ensemble.mu guards which processes run; it is not held while a
// process is waited for.
package local
