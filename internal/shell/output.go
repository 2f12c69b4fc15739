package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"bellwether/internal/terminal"
)

// exitUnread is the exit status that a shell reports for a program killed by SIGPIPE: the
// reader of its output has closed the pipe.
const exitUnread = 128 + int(syscall.SIGPIPE)

// Output is the standard output of a program. It remembers the first failed write, so that
// the program can exit with a failure even if a command has ignored the error. It is safe
// for concurrent use.
type Output struct {
	file *os.File
	mu   sync.Mutex
	err  error // the error of the first failed write or of Close
}

// NewOutput returns an Output that writes to f.
func NewOutput(f *os.File) *Output { return &Output{file: f} }

// Write writes to the file. After a failure it returns the same error and
// writes nothing.
func (o *Output) Write(p []byte) (int, error) {
	if err := o.failure(); err != nil {
		return 0, err
	}
	n, err := o.file.Write(p)
	o.fail(err)
	return n, err
}

// Close closes the file, because some file systems report only then that they are full. It
// returns the first error of all writes.
func (o *Output) Close() error {
	if err := o.file.Close(); !errors.Is(err, os.ErrClosed) {
		o.fail(err)
	}
	return o.failure()
}

func (o *Output) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

func (o *Output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// NotWritten returns the error of a command whose output was not written. If the reader
// closed its pipe early, it needs no more output: the status is that of SIGPIPE, without a
// message.
func NotWritten(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return &StatusError{Status: exitUnread}
	}
	return &StatusError{ExitFailed, fmt.Errorf("the output was not written: %w", err)}
}

// untilUnread returns a context that ends with exitUnread when the reader of the output has
// closed the pipe. The caller must call stop.
func untilUnread(ctx context.Context, out io.Writer) (_ context.Context, stop func()) {
	o, ok := out.(*Output)
	if !ok {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	over := whenUnread(o.file, func() { end(&StatusError{Status: exitUnread}) })
	return ctx, func() {
		over()
		end(nil)
	}
}

// survivingSIGPIPE makes a write to a pipe without a reader fail instead of ending the
// process, until stop is called. Commands that the process starts meanwhile do not inherit
// this.
func survivingSIGPIPE() (stop func()) {
	unread := make(chan os.Signal, 1) // never read: it is enough that the write returns EPIPE
	signal.Notify(unread, syscall.SIGPIPE)
	return func() { signal.Stop(unread) }
}

// terminalWidth returns the number of columns of an output, or 0 if it is not a terminal or does not know its size.
func terminalWidth(out io.Writer) int {
	if f := fileOf(out); f != nil {
		columns, _ := terminal.Size(f)
		return columns
	}
	return 0
}

// isTerminal reports whether an output is a terminal.
func isTerminal(out io.Writer) bool {
	f := fileOf(out)
	return f != nil && terminal.Is(f)
}

// fileOf returns the file of an output; nil: it has none.
func fileOf(out io.Writer) *os.File {
	switch o := out.(type) {
	case *Output:
		return o.file
	case sharedOutput:
		return fileOf(o.Output)
	}
	return nil
}
