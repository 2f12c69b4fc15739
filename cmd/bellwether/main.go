// Command bellwether is a coordination service: one program that is the server, and the client for people and
// scripts. `bellwether help` lists the commands.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"bellwether/internal/guard"
	"bellwether/internal/shell"
)

func main() {
	if guard.IsGuardian() {
		os.Exit(guard.Main())
	}
	os.Exit(shell.Execute(newRoot(), os.Args[1:]))
}

const rootLong = `Bellwether is a coordination service that speaks Apache ZooKeeper's protocols:
a server, and a client for people and scripts.

  bellwether serve                      a server on loopback, data in ./bellwether-data
  bellwether serve --config zoo.cfg     a server with ZooKeeper's configuration file
  bellwether serve --ensemble 3         three servers on this machine that elect a leader
  bellwether preflight --config FILE    what prevents a takeover of a ZooKeeper server
  bellwether demo                       three servers and five candidates; leaders are killed
  bellwether elect /job -- ./run-me     run a command on exactly one machine
  bellwether lock /backup -- ./backup   run a command while holding a lock
  bellwether recipes                    which clients lead, hold and wait for each other
  bellwether shell                      ZooKeeper's command line and more, at a prompt
  bellwether create /app 'hello'        data commands: also get, set, ls, stat and others
  bellwether status                     the role and state of each server
  bellwether member                     add and remove servers of a running ensemble
  bellwether shadow                     compare a ZooKeeper ensemble with an observer before a migration

Exit status: 0 done, 1 failed, 2 usage, 4 no connection. A command whose output could
not be written has failed. elect, lock and other commands that run a command pass on
its status and add further ones; see bellwether elect --help.`

func newRoot() *cobra.Command {
	root := shell.Group(&cobra.Command{
		Use:           "bellwether",
		Short:         "a coordination service that speaks ZooKeeper's protocols",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
	}, shell.Commands()...)
	root.AddCommand(newServe(), newDemo(), newData(), newTLS(), newPreflight(), newShadow(), newVersion(), newCompletion(root))
	root.AddCommand(shell.NewShell(func() []*cobra.Command { return []*cobra.Command{newVersion()} }))
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultHelpCmd()
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
				return shell.Usage(err)
			}
			return c.Help()
		},
	}
}
