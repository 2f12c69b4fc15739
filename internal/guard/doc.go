// Package guard runs a command for as long as a claim (leadership or a lock) is held,
// and no longer.
//
// The claim's holder (the parent) starts a guardian: a second process of the
// same binary under another process name. The guardian starts the command in its
// own process group. Shortly before the deadline it asks the command to end
// (SIGTERM); at the deadline it kills the command. The parent renews the deadline
// through a pipe. The end of the pipe asks the command to end, so the command ends
// in time even if the parent is stopped, gets no CPU time or is killed.
//
// On Linux, the guardian becomes the parent of every descendant of the command that
// loses its own parent. It therefore finds, kills and reaps also the processes that
// left the process group, as daemons do. The guardian ends only when no process of
// the command is left. The parent does the same for the processes of a killed
// guardian. It also continues a guardian that was stopped, and ends the command
// itself if the guardian does not do so in time. If the parent had other children
// before (a script's exec), or is process 1, it cannot tell them from the processes
// of a killed guardian: then it kills only the command's process group. Processes
// that SIGKILL does not end, for example those of another user, are reported, and
// [Child.Ended] waits for them.
//
// Limits: if parent and guardian are both killed by SIGKILL at once, Linux still
// kills the command itself (PDEATHSIG), unless it changed its user, but not the
// processes that the command has started. If both are stopped at once, the command
// runs until one of them is continued. Without /proc, and on systems other than
// Linux, only the process group is killed. The fencing token protects the resource in
// all these cases.
//
// A deadline is an absolute reading of two clocks: the wall clock, and a clock that
// never jumps and, on Linux, counts suspended time too. The deadline has passed when
// either clock has reached it. A late read of the pipe therefore cannot extend it.
//
// If the command's standard input is the terminal of a shell with job
// control, the parent behaves like a job of that shell; see terminal.go.
//
// The parent uses [Start], [Child.Renew], [Child.Stop] and [Child.Wait]. It has three
// goroutines for each guardian: one reads reports, one waits for the guardian's end,
// and one enforces the deadline if the guardian does not, and closes [Child.Ended].
// The guardian process runs [Main], with one goroutine that reads the pipe and one
// that reaps children. Read guardian.go first, then child.go, then killer.go for the
// search for processes.
//
// Unix only; the package is empty elsewhere.
package guard
