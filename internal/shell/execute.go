package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Execute runs one command line of a program and returns its exit status. It prints an
// error with the name of the program. A command fails if its output could not be written.
func Execute(root *cobra.Command, args []string) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	giveStatus(root)
	root.SetArgs(zkInvocation(args))
	out := NewOutput(os.Stdout)
	root.SetOut(out)
	cmd, err := root.ExecuteContextC(context.Background())
	if unwritten := out.Close(); unwritten != nil && (err == nil || errors.Is(err, syscall.EPIPE)) {
		err = NotWritten(unwritten)
	}
	if err == nil {
		return ExitDone
	}
	var s *StatusError
	if !errors.As(err, &s) { // every command returns a status, so this is cobra's own error
		s = Usage(fmt.Errorf("%w; see %s --help", flagError(err), cmd.CommandPath()))
	}
	if s.Err != nil {
		for line := range strings.SplitSeq(s.Err.Error(), "\n") {
			fmt.Fprintf(os.Stderr, "%s: %s\n", root.Name(), line)
		}
	}
	return s.Status
}

// flagError returns cobra's error about a wrong value of a flag in words that do not need knowledge of Go. It returns other errors unchanged.
func flagError(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	flag := wrong.GetFlag()
	want, ok := map[string]string{"bool": "true or false", "int": "a number", "int32": "a number", "int64": "a number", "duration": "a time such as 500ms, 10s or 1m30s"}[flag.Value.Type()]
	if !ok {
		return err
	}
	return fmt.Errorf("--%s %q: want %s", flag.Name, wrong.GetValue(), want)
}

// Usage returns the error of a wrong command line.
func Usage(err error) *StatusError { return &StatusError{Status: ExitUsage, Err: err} }

// giveStatus makes a command and its subcommands return a StatusError for every error.
func giveStatus(c *cobra.Command) {
	for _, sub := range c.Commands() {
		giveStatus(sub)
	}
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var s *StatusError
			if err == nil || errors.As(err, &s) {
				return err
			}
			return &StatusError{Status: ExitFailed, Err: err}
		}
	}
}
