package shell

import "fmt"

// Exit statuses of every command. Commands that run another command add its statuses,
// those of shells, and ExitLost to ExitNoServer.
const (
	ExitDone         = 0
	ExitFailed       = 1
	ExitUsage        = 2
	ExitNoConnection = 4
	ExitLost         = 120 // leadership, lock or lease was lost while the command ran
	ExitNotObtained  = 121 // the claim was not obtained within --wait
	ExitNoServer     = 122 // no connection; used instead of 4, which may be the command's own status
)

// StatusError is an error with an exit status. If Err is nil, no message is printed.
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

// usagef returns the error of a wrong command line.
func usagef(format string, args ...any) *StatusError {
	return &StatusError{ExitUsage, fmt.Errorf(format, args...)}
}
