package guard

import "os"

// Exit statuses that Main and Wait return instead of the command's own status.
const (
	ExitLost    = 120 // the deadline passed, or the parent called Stop
	ExitNotExec = 126 // the command exists but cannot be run
	ExitNoCmd   = 127 // there is no such command
)

// Command describes the command that a guardian runs.
type Command struct {
	Argv, Env []string
	Stdin     *os.File     // nil: the standard input of this process
	Say       func(string) // receives messages for the user; called from any goroutine
}
