// Package guard runs a command for as long as a claim stands, and no longer.
//
// The claim's holder (the parent) starts a guardian: a second process of the
// same binary, under a name of its own. The guardian starts the command in a
// process group of its own, and asks it to end (SIGTERM), then kills it, when
// the deadline has passed. The parent renews the deadline through a pipe. The
// end of the pipe asks the command to end, so it ends in time even if the parent
// is stopped, starved or killed.
//
// On Linux, the guardian adopts every descendant of the command that loses its
// parent. So it finds, kills and collects also what has left the process group,
// as daemons do; the guardian ends only when nothing of the command is left. The
// parent adopts what a killed guardian leaves behind, and ends it likewise; it
// also continues a guardian that was stopped, and ends the command itself where
// the guardian does not do so in time. It cannot tell a killed guardian's
// processes from other children where it has had such (a script's exec) or is
// process 1: there it kills the command's process group only. Processes that
// SIGKILL does not end, those of another user for example, are reported, and the
// end of the command waits for them.
//
// What is out of reach: both processes killed by SIGKILL at once. Then Linux
// still kills the command itself (PDEATHSIG), unless it changed its user, but
// not what the command has started. Where both are stopped at once, the command
// runs on until one of them is continued. Without /proc, and on other systems
// than Linux, only the process group is killed. The fencing token holds always.
//
// A deadline is an absolute reading of two clocks, one that never jumps and,
// on Linux, counts suspended time too, and the wall clock; it has passed when
// either says so. A late read of the pipe therefore cannot prolong it.
//
// Where the command's standard input is the terminal of a shell with job
// control, the parent behaves like a job of that shell; see terminal.go.
//
// Parent: [Start], [Child.Renew], [Child.Stop], [Child.Wait]. Its goroutines
// for each guardian: one reads reports, one waits for the guardian, one acts in
// its place and closes [Child.Ended]. Guardian process: [Main], with one
// goroutine that reads the pipe and one that collects children. Read
// guardian.go first, then child.go, and hunt.go for what the search does.
//
// Unix only; the package is empty elsewhere.
package guard
