// Command bellwether is a coordination service: it serves, and it is the
// client for people and scripts. `bellwether help` lists the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"bellwether/internal/shell"
)

func main() { os.Exit(run(os.Args[1:])) }

// run carries out one command line and returns the exit status.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	out := shell.NewOutput(os.Stdout)
	root.SetOut(out)
	cmd, err := root.ExecuteContextC(context.Background())
	if unwritten := out.Close(); unwritten != nil && (err == nil || errors.Is(err, syscall.EPIPE)) {
		err = shell.NotWritten(unwritten)
	}
	if err == nil {
		return shell.ExitDone
	}
	var s *shell.StatusError
	if !errors.As(err, &s) { // what a command returns has a status: this is cobra's complaint
		s = usage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	}
	if s.Err != nil {
		for line := range strings.SplitSeq(s.Err.Error(), "\n") {
			fmt.Fprintf(os.Stderr, "bellwether: %s\n", line)
		}
	}
	return s.Status
}

// failing gives the errors of a command and of those below it a status.
func failing(c *cobra.Command) {
	for _, sub := range c.Commands() {
		failing(sub)
	}
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			var s *shell.StatusError
			if err == nil || errors.As(err, &s) {
				return err
			}
			return &shell.StatusError{Status: shell.ExitFailed, Err: err}
		}
	}
}

const rootLong = `Bellwether is a coordination service that speaks Apache ZooKeeper's protocols:
a server, and a client for people and scripts.

  bellwether serve                      a server on loopback, data in ./bellwether-data
  bellwether serve --config zoo.cfg     a server as ZooKeeper's file says
  bellwether serve --ensemble 3         three servers on this machine that elect a leader
  bellwether demo                       three servers and five candidates, leaders are killed
  bellwether elect /job -- ./run-me     run a command on exactly one machine
  bellwether lock /backup -- ./backup   run a command while holding a lock
  bellwether recipes                    who leads, who holds, who waits for whom
  bellwether create /app 'hello'        one-shot data commands: get, set, ls, stat, …
  bellwether status                     the servers at a glance

Exit status: 0 done, 1 failed, 2 usage, 4 no connection. A command whose output could
not be written has failed. elect, lock and their like pass on the status of their
command and add their own, see bellwether elect --help.`

func newRoot() *cobra.Command {
	root := shell.Group(&cobra.Command{
		Use:           "bellwether",
		Short:         "a coordination service that speaks ZooKeeper's protocols",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
	}, shell.Commands()...)
	root.AddCommand(newServe(), newDemo(), newData(), newSim(), newVersion(), newCompletion(root))
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultHelpCmd()
	failing(root)
	return root
}

func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "explain a command",
		Example: "  bellwether help serve\n  bellwether help data check",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = c.ValidateArgs(rest)
			}
			if err != nil {
				return usage(err)
			}
			return c.Help()
		},
	}
}

// usage is an error of whoever typed the command.
func usage(err error) *shell.StatusError {
	return &shell.StatusError{Status: shell.ExitUsage, Err: err}
}
