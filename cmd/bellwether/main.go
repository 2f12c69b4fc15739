// Command bellwether is a coordination service: it serves, and it is the
// client for people and scripts. `bellwether help` lists the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"bellwether/internal/shell"
)

func main() { os.Exit(run(os.Args[1:])) }

// run carries out one command line and returns the exit status.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	status := shell.Status(err)
	if err == nil {
		return status
	}
	var s *shell.StatusError
	if !errors.As(err, &s) || s.Err != nil {
		fmt.Fprintf(os.Stderr, "bellwether: %v\n", err)
	}
	return status
}

const rootLong = `Bellwether is a coordination service that speaks Apache ZooKeeper's protocols:
a server, and a client for people and scripts.

  bellwether serve                      a server on loopback, data in ./bellwether-data
  bellwether serve --config zoo.cfg     a server as ZooKeeper's file says
  bellwether elect /job -- ./run-me     run a command on exactly one machine
  bellwether create /app 'hello'        one-shot data commands: get, set, ls, stat, …
  bellwether status                     the servers at a glance

Exit status: 0 done, 1 failed, 2 usage, 4 no connection; elect passes on the
status of its command and adds its own, see bellwether elect --help.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "bellwether",
		Short:         "a coordination service that speaks ZooKeeper's protocols",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &shell.StatusError{Status: shell.ExitUsage, Err: fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newServe(), newData(), newVersion())
	root.AddCommand(shell.Commands()...)
	root.InitDefaultCompletionCmd()
	return root
}

// unknownCommand is met when no command has the first argument's name.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("no command %q; see bellwether --help", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text = fmt.Sprintf("no command %q; did you mean %s?", args[0], near[0])
	}
	return &shell.StatusError{Status: shell.ExitUsage, Err: errors.New(text)}
}
