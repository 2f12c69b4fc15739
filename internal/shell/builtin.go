package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"bellwether/internal/terminal"
	"bellwether/wire"
	"bellwether/zk"
)

// tree returns the commands of the shell.
func (s *session) tree() *cobra.Command {
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: true, CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}}
	root.AddCommand(commands(s.sessionApp)...)
	if s.extra != nil {
		for _, c := range s.extra() {
			s.setOutput(c)
			root.AddCommand(c)
		}
	}
	for _, builtin := range []func(*session, *app) *cobra.Command{
		newAddAuth, newAddWatch, newClose, newConnect, newHistory, newPrintWatches, newQuit, newRedo, newRemoveWatches,
	} {
		root.AddCommand(dataCommand(s.sessionApp, func(a *app) *cobra.Command { return builtin(s, a) }))
	}
	root.SetHelpCommand(newShellHelp(s, root))
	root.InitDefaultHelpCmd()
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "{{.UseLine}}", "{{trim .UseLine}}"))
	inShell(root)
	return root
}

// setOutput gives a command of the program the output form of the shell.
func (s *session) setOutput(c *cobra.Command) {
	if f := c.Flags().Lookup("output"); f != nil {
		f.Value.Set(s.output) // checkFlags has accepted the value
	}
}

// inShell removes from the examples of commands what only another shell understands, and the name of
// the program.
func inShell(c *cobra.Command) {
	for _, sub := range c.Commands() {
		inShell(sub)
	}
	var examples []string
	for line := range strings.SplitSeq(c.Example, "\n") {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "bellwether "); ok && !strings.ContainsAny(rest, "|<>;$&#") && !strings.Contains(rest, "--server") && !strings.Contains(rest, "--hold") {
			examples = append(examples, "  "+rest)
		}
	}
	c.Example = strings.Join(examples, "\n")
}

func newAddAuth(s *session, a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "addauth SCHEME CREDENTIALS",
		Short: "add credentials to the connection",
		Long: "Add credentials to the connection, and to each later one of this shell. The history never contains them.\n" +
			"ZooKeeper knows the scheme digest, whose CREDENTIALS are user:password.",
		Example: "  bellwether addauth digest ann:secret",
		Args:    argCount(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			auth := zk.Auth{Scheme: args[0]}
			if len(args) > 1 {
				auth.Data = []byte(args[1])
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				if err := zc.AddAuth(ctx, auth); err != nil {
					return err
				}
				s.auth = append(s.auth, auth.Scheme+":"+string(auth.Data))
				return a.printDone(struct {
					Added string `json:"added"`
				}{auth.Scheme})
			})
		},
	}
}

// printDone prints with -o json what a command has done. Without -o json such a command prints
// nothing.
func (a *app) printDone(v any) error {
	if a.json() {
		return printJSON(a.out, v)
	}
	return nil
}

func newAddWatch(s *session, a *app) *cobra.Command {
	mode := ""
	c := &cobra.Command{
		Use:   "addWatch PATH",
		Short: "print all events of a znode, or of a subtree",
		Long: "Print all events of a znode (mode PERSISTENT: its own, and the creation and deletion of its children) or of\n" +
			"a subtree (PERSISTENT_RECURSIVE), until removewatches or the end of the session. PATH need not exist.",
		Example: "  bellwether addWatch /app\n  bellwether addWatch -m PERSISTENT /app/config",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			modes := map[string]watchKind{"PERSISTENT": persistentWatch, "PERSISTENT_RECURSIVE": recursiveWatch}
			kind, ok := modes[strings.ToUpper(mode)]
			if !ok {
				return usagef("-m %q: want PERSISTENT or PERSISTENT_RECURSIVE", mode)
			}
			return a.with(cmd, func(ctx context.Context, zc *zk.Client) error {
				if err := s.addWatch(ctx, zc, kind, args[0]); err != nil {
					return err
				}
				return a.printDone(struct {
					Watched string `json:"watched"`
					Mode    string `json:"mode"`
				}{args[0], strings.ToUpper(mode)})
			})
		},
	}
	c.Flags().StringVarP(&mode, "mode", "m", "PERSISTENT_RECURSIVE", "PERSISTENT or PERSISTENT_RECURSIVE")
	return c
}

func (s *session) addWatch(ctx context.Context, zc *zk.Client, kind watchKind, path string) error {
	if s.events.watches(kind, path) {
		return nil
	}
	mode := wire.WatchPersistentRecursive
	if kind == persistentWatch {
		mode = wire.WatchPersistent
	}
	stream, err := zc.AddWatch(ctx, path, mode)
	if err == nil {
		s.events.addStream(kind, path, stream)
	}
	return err
}

func newRemoveWatches(s *session, a *app) *cobra.Command {
	var only [4]bool
	local := false
	c := &cobra.Command{
		Use:     "removewatches PATH",
		Short:   "remove the watches that this shell has set at a path",
		Long:    "Remove the watches that this shell has set at a path: all of them, or those of the given kinds.",
		Example: "  bellwether removewatches /app\n  bellwether removewatches /app -c",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds := []watchKind{dataWatch, childWatch, persistentWatch, recursiveWatch}
			if any := only[0] || only[1] || only[2] || only[3]; any {
				kinds = slices.DeleteFunc(kinds, func(k watchKind) bool { return !only[k-1] })
			}
			if problem := pathProblem(args[0]); problem != "" {
				return usagef("%s: %s", problem, printable(args[0]))
			}
			if local && s.client != nil {
				return s.removeWatches(cmd.Context(), args[0], kinds)
			}
			return a.with(cmd, func(ctx context.Context, _ *zk.Client) error { return s.removeWatches(ctx, args[0], kinds) })
		},
	}
	f := c.Flags()
	f.BoolVarP(&only[1], "children", "c", false, "watches of children")
	f.BoolVarP(&only[0], "data", "d", false, "watches of data and existence")
	f.BoolVarP(&only[2], "persistent", "p", false, "watches of addWatch -m PERSISTENT")
	f.BoolVarP(&only[3], "recursive", "r", false, "watches of addWatch -m PERSISTENT_RECURSIVE")
	f.BoolP("any", "a", false, "all of them, as without an option")
	f.BoolVarP(&local, "local", "l", false, "also without a connection")
	return c
}

func (s *session) removeWatches(ctx context.Context, path string, kinds []watchKind) error {
	once, streams, keys := s.events.remove(path, kinds...)
	if len(keys) == 0 {
		return errNoWatch(path)
	}
	s.events.removed(keys)
	errs := []error{zk.RemoveWatches(ctx, once...)}
	for _, stream := range streams {
		errs = append(errs, stream.Close(ctx))
	}
	return errors.Join(errs...)
}

func newClose(s *session, a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "close",
		Short: "end the session; connect begins another one",
		Long:  "End the session: its ephemeral znodes are deleted, and its watches are gone. connect begins another one.",
		Args:  argCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.close(cmd.Context())
			return nil
		},
	}
}

func newConnect(s *session, a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "connect [HOST:PORT[,HOST:PORT...][/CHROOT]]",
		Short: "begin another session, with these or the same servers",
		Long: "End the session and begin another one, with the named servers or the same ones. The command does not wait\n" +
			"long for the connection: the prompt shows its state.",
		Example: "  bellwether connect zk2:2181",
		Args:    argCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			before := s.servers
			s.servers = append(args, s.servers)[0]
			if err := checkServers(s.servers); err != nil {
				s.servers = before
				return err
			}
			s.close(cmd.Context())
			if s.editor != nil {
				return s.open(cmd.Context(), promptWait)
			}
			if err := s.mustConnect(cmd.Context()); err != nil {
				return err
			}
			s.events.print(s.events.stateText(s.events.status))
			return nil
		},
	}
}

// checkServers returns an error if a list of servers is malformed.
func checkServers(servers string) error {
	c, err := zk.Open(servers, &zk.Options{Dial: refuseDial})
	if err != nil {
		return usagef("%w", err)
	}
	return c.Close(context.Background())
}

func newHistory(s *session, a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "history",
		Short: "print the last commands of this shell with their numbers",
		Args:  argCount(0, 0),
		RunE: func(*cobra.Command, []string) error {
			for i := max(0, len(s.lines)-historyShown); i < len(s.lines); i++ {
				line := struct {
					Number  int    `json:"number"`
					Command string `json:"command"`
				}{i, s.lines[i]}
				if err := a.print(line, fmt.Sprintf("%d - %s", i, s.lines[i])); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// historyShown is how many commands history prints, as in ZooKeeper's CLI.
const historyShown = 11

func newRedo(s *session, _ *app) *cobra.Command {
	return &cobra.Command{
		Use:     "redo NUMBER",
		Short:   "execute a command of the history again",
		Example: "  bellwether history\n  bellwether redo 3",
		Args:    argCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 0 || n >= len(s.lines)-1 {
				return usagef("Command index out of range: %s; history lists the numbers", printable(args[0]))
			}
			line := s.lines[n]
			if words, err := terminal.Words(line); err == nil && words[0] == "redo" {
				return usagef("No redoing redos")
			}
			if strings.HasSuffix(line, " "+hidden) {
				return usagef("command %d had credentials, which were not kept: type it again", n)
			}
			s.lines[len(s.lines)-1] = line
			s.redone = true
			defer func() { s.redone = false }()
			return s.execute(cmd.Context(), line)
		},
	}
}

func newPrintWatches(s *session, a *app) *cobra.Command {
	return &cobra.Command{
		Use:       "printwatches [on|off]",
		Short:     "say whether events are printed, or change it",
		Example:   "  bellwether printwatches off",
		Args:      argCount(0, 1),
		ValidArgs: []string{"on", "off"},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				if args[0] != "on" && args[0] != "off" {
					return usagef("%q: want on or off", printable(args[0]))
				}
				s.events.shown = args[0] == "on"
				return nil
			}
			state := map[bool]string{true: "on", false: "off"}[s.events.shown]
			return a.print(struct {
				PrintWatches string `json:"printwatches"`
			}{state}, "printwatches is "+state)
		},
	}
}

func newQuit(*session, *app) *cobra.Command {
	return &cobra.Command{
		Use:     "quit",
		Aliases: []string{"exit"},
		Short:   "end the session and the shell",
		Args:    argCount(0, 0),
		RunE:    func(*cobra.Command, []string) error { return errQuit },
	}
}

func newShellHelp(s *session, root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "list the commands, or explain one with examples",
		Example: "  bellwether help\n  bellwether help create",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return s.listCommands(root)
			}
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 || c == root {
				return s.unknown(root, strings.Join(args, " "))
			}
			return c.Help()
		},
	}
}

// listCommands prints each command with a line about it.
func (s *session) listCommands(root *cobra.Command) error {
	all := root.Commands()
	width := 0
	for _, c := range all {
		width = max(width, len(c.Name()))
	}
	columns := terminalWidth(s.out)
	for _, c := range all {
		line := fmt.Sprintf("%-*s  %s", width, c.Name(), c.Short)
		if columns > 0 && columns < narrow {
			line = c.Name()
		}
		if _, err := fmt.Fprintln(s.out, line); err != nil {
			return err
		}
	}
	return nil
}
