package shell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/terminal"
)

// envHistory names the file with the history of the shell.
const envHistory = "BELLWETHER_HISTORY"

const shellLong = `Open a session with a server and execute commands in it: ZooKeeper's own, with the names and options of zkCli.sh, and
Bellwether's. help lists them, and help COMMAND explains one with examples. The session, its ephemeral znodes and its
watches last until quit, close, or the end of the input.

At a terminal, TAB completes commands, options and paths, the arrow keys and Ctrl-R recall commands, Ctrl-C cancels
a line or ends the running command, and Ctrl-D quits. Otherwise the commands are read from standard input, one a line; lines
that begin with # are comments. A quotation may contain line ends. -c and COMMAND give the commands on the command line.

A script goes on after a failed command, as with zkCli.sh; --stop ends it there. Exit status: 0 if all commands succeeded,
otherwise that of the first one that failed (1 failed, 2 usage, 4 no connection, 127 no such command). At a terminal it is 0.

zkCli.sh's options -server, -timeout (in ms), -r, -waitforconnection and -client-configuration work too. The history is in
$` + envHistory + `, by default ~/.local/state/bellwether/history; - keeps none. It never contains lines with
credentials, nor lines that begin with a blank.`

// shellFlags are the flags of the command shell.
type shellFlags struct {
	lines      []string
	stop, wait bool
	history    string
}

// NewShell returns the command shell. extra returns further commands for it.
func NewShell(extra func() []*cobra.Command) *cobra.Command {
	a := newApp()
	a.session = 30 * time.Second
	var flags shellFlags
	c := &cobra.Command{
		Use:   "shell [flags] [COMMAND [ARGUMENT]...]",
		Short: "execute commands in one session: at a terminal, or from a script",
		Long:  shellLong,
		Example: "  bellwether shell --server zk1,zk2,zk3\n  bellwether shell -c 'create /app' -c 'ls /'\n" +
			"  bellwether shell --stop < script\n  bellwether shell -server zk1:2181 ls /",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 && len(flags.lines) > 0 {
				return errors.New("give either -c or COMMAND")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runShell(cmd, a, extra, &flags, args) },
	}
	c.DisableFlagsInUseLine = true
	a.serverFlags(c)
	a.sessionFlags(c)
	a.outputFlag(c)
	f := c.Flags()
	f.SetInterspersed(false) // the options of COMMAND are its own
	f.BoolVarP(&a.readOnly, "read-only", "r", false, "accept a server that has lost its quorum")
	f.StringArrayVarP(&flags.lines, "command", "c", nil, "execute this line; may be repeated")
	f.BoolVar(&flags.stop, "stop", false, "end a script at the first command that fails")
	f.BoolVar(&flags.wait, "waitforconnection", false, "at a terminal: wait for the connection before the first prompt")
	f.StringVar(&flags.history, "history", "", "`FILE` with the history (default $"+envHistory+" or ~/.local/state/bellwether/history); -: none")
	return c
}

func runShell(cmd *cobra.Command, a *app, extra func() []*cobra.Command, flags *shellFlags, args []string) error {
	s := newSession(*a, extra)
	if out, ok := a.out.(*Output); ok {
		s.out = sharedOutput{out}
	}
	ctx := cmd.Context()
	defer func() {
		s.ending = true
		s.close(ctx)
	}()
	switch {
	case len(args) > 0:
		return s.one(ctx, args)
	case len(flags.lines) > 0:
		lines := strings.NewReader(strings.Join(flags.lines, "\n") + "\n")
		return s.script(ctx, &script{bufio.NewReader(lines)}, flags.stop)
	case terminal.CanEdit() && !a.json():
		return s.interact(ctx, flags)
	}
	return s.script(ctx, &script{bufio.NewReader(os.Stdin)}, flags.stop)
}

// one executes one command, whose words the command line gives.
func (s *session) one(ctx context.Context, words []string) error {
	if words[0] == "help" || words[0] == "version" {
		return s.command(ctx, words)
	}
	if err := s.mustConnect(ctx); err != nil {
		return err
	}
	err := s.command(ctx, words)
	s.events.drain()
	if errors.Is(err, errQuit) {
		return nil
	}
	return err
}

// script executes the lines of a script. It does not begin without a connection.
func (s *session) script(ctx context.Context, in lineReader, stop bool) error {
	if err := s.mustConnect(ctx); err != nil {
		return err
	}
	return s.run(ctx, in, stop)
}

// mustConnect opens a session and fails if there is no connection within the connect timeout.
func (s *session) mustConnect(ctx context.Context) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	s.client = c
	s.events.follow(c) // from now on, so that the first connection is not reported
	return nil
}

// promptWait is how long the shell waits for a connection before it shows a prompt.
const promptWait = 500 * time.Millisecond

// interact reads commands at a terminal.
func (s *session) interact(ctx context.Context, flags *shellFlags) error {
	history, err := terminal.OpenHistory(historyFile(flags.history), hasSecret)
	if err != nil {
		fmt.Fprintf(s.err, "%v; the history of this shell is not kept\n", err)
	}
	defer history.Close()
	wait := promptWait
	if flags.wait {
		wait = s.timeout
	}
	fmt.Fprintf(s.out, "Connecting to %s\nWelcome to Bellwether! help lists the commands, quit or Ctrl-D ends the shell.\n", s.servers)
	if err := s.open(ctx, wait); err != nil {
		return err
	}
	s.events.skip()
	s.history = history
	s.editor = terminal.NewEditor(history, s.complete, unfinished)
	return s.run(ctx, s.editor, false)
}

// historyFile returns the file with the history; empty for none.
func historyFile(flag string) string {
	file := flag
	if file == "" {
		file = os.Getenv(envHistory)
	}
	if file == "-" {
		return ""
	}
	if file != "" {
		return file
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "bellwether", "history")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "bellwether", "history")
}

// refuseDial is the Dial of a client that must not connect.
func refuseDial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("this client must not connect")
}
