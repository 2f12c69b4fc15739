// Package guard runs a command for as long as a claim stands, and no longer.
//
// The claim's holder (the parent) starts a guardian: a second process of the
// same binary, which starts the command in a process group of its own and
// kills that group when the deadline has passed. The parent renews the
// deadline through a pipe. So the command ends in time even if the parent is
// stopped, starved or killed; if the guardian itself is killed, Linux ends
// the command with it, and the parent the rest of its group, unless that came
// before the parent was told of the group, right after the command's start.
// Only a guardian that is stopped cannot act, which no process can cure for
// itself (then the fencing token still holds), and what leaves the group is out
// of its reach.
//
// A deadline is an absolute reading of two clocks, one that never jumps and,
// on Linux, counts suspended time too, and the wall clock; it has passed when
// either says so. A late read of the pipe therefore cannot prolong it.
//
// Parent: [Start], [Child.Renew], [Child.Stop], [Child.Wait]. Guardian
// process: [Main]. Goroutines: Main has one that reads the pipe and one that
// waits for the command; both end with it. Read guardian.go first.
//
// Unix only; the package is empty elsewhere.
package guard
