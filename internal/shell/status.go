package shell

import "fmt"

// Exit statuses of every command. Those that run a command while they hold
// something add those of shells and their own.
const (
	ExitDone         = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitNoConnection = 4
	ExitLost         = 120 // leadership, lock or lease was lost while the command ran
	ExitNotObtained  = 121 // not within --wait
	ExitNoServer     = 122 // no connection, where 4 may be the command's
)

// StatusError is an error with the exit status it stands for. A nil Err
// prints nothing: the status alone is the message.
type StatusError struct {
	Status int
	Err    error
}

func (e *StatusError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *StatusError) Unwrap() error { return e.Err }

// usagef is an error of whoever typed the command.
func usagef(format string, args ...any) *StatusError {
	return &StatusError{ExitUsage, fmt.Errorf(format, args...)}
}
