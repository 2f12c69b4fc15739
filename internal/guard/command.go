package guard

import "os"

// Exit statuses of a command under a guardian besides its own.
const (
	ExitLost    = 120 // the deadline passed, or the parent said stop
	ExitNotExec = 126 // the command exists but cannot be run
	ExitNoCmd   = 127 // there is no such command
)

// Command is what a guardian runs.
type Command struct {
	Argv, Env []string
	Stdin     *os.File     // nil: that of this process
	Say       func(string) // is told what a person should know; any goroutine calls it
}
