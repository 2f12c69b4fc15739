package store

import (
	"errors"
	"fmt"
	"syscall"

	"bellwether/wire"
)

// DamageError is damage on the disk that no crash can cause.
type DamageError struct {
	File   string
	Offset int64  // in bytes; where the damaged record or part begins
	What   string // what is wrong
	Do     string // what an operator can do

	gap bool // transactions are missing, but nothing in the files is damaged
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s at offset %d: %s; %s", e.File, e.Offset, e.What, e.Do)
}

// FullError says that the disk has no space, or the process no file descriptor. If Append or Sync returns it, the log was
// durably cut back and ends with Zxid. The store can still be used, and the same call may
// succeed later.
type FullError struct {
	File string
	Zxid wire.Zxid // the last durable transaction
	Err  error
}

func (e *FullError) Error() string {
	if noDescriptor(e.Err) {
		return fmt.Sprintf("%s: %v; raise the limit of open files, or close connections; nothing after %v was logged", e.File, e.Err, e.Zxid)
	}
	return fmt.Sprintf("%s: no space: %v; free some space; nothing after %v was logged", e.File, e.Err, e.Zxid)
}

func (e *FullError) Unwrap() error { return e.Err }

// noDescriptor reports whether err means that a file was not opened because too many are open.
func noDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// BusyError says that another process uses the directory.
type BusyError struct{ Dir string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s is in use by another process; stop that one or choose another directory", e.Dir)
}

// LayoutError describes directories that must not be used as they are.
type LayoutError struct {
	Dir  string
	What string
	Do   string
}

func (e *LayoutError) Error() string { return fmt.Sprintf("%s %s; %s", e.Dir, e.What, e.Do) }

// PoisonedError says that writing the log failed in a way that leaves the content of the
// disk unknown. The process must end; the next start reads the disk again.
type PoisonedError struct{ Err error }

func (e *PoisonedError) Error() string {
	remedy := "repair the disk"
	if errors.Is(e.Err, syscall.EFBIG) {
		remedy = "the file would exceed the limit of file size of the process or of the file system: raise it (ulimit -f, LimitFSIZE=), or set preAllocSize and txnLogSizeLimitInKb so that their sum is below it"
	}
	return fmt.Sprintf("the log is no longer written: %v; %s, then start the server again", e.Err, remedy)
}

func (e *PoisonedError) Unwrap() error { return e.Err }
