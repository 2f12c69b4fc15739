package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/clientconfig"
	"bellwether/wire"
	"bellwether/zk"
)

// Environment variables with the defaults of flags.
const (
	envServer = "BELLWETHER_SERVER"
	envAuth   = "BELLWETHER_AUTH"
)

// app holds the flags that the client commands share, and the command's input and output.
type app struct {
	servers string
	named   bool          // --server was given
	timeout time.Duration // how long to try to connect
	session time.Duration
	auth    []string
	output  string
	readOnly,
	verbose bool
	access *clientconfig.Config // TLS and the login; nil: neither
	shell  *session             // the interactive shell that the command runs in; nil: none

	in       io.Reader
	out, err io.Writer
}

// maker makes the app of a command: newApp, or in the interactive shell one that shares the
// shell's session.
type maker func() *app

// Commands returns the client commands.
func Commands() []*cobra.Command {
	return append(commands(newApp), newElect(newApp), newLock(newApp), newSemaphore(newApp))
}

// commands returns the client commands that the interactive shell has too.
func commands(base maker) []*cobra.Command {
	commands := []*cobra.Command{newBarrier(base), newBench(base), newElection(base), newMember(base), newQueue(base), newStatus(base), newTop(base), newWatch(base)}
	for _, command := range []func(*app) *cobra.Command{
		newGet, newSet, newCreate, newDelete, newDeleteAll, newLs, newStat, newSync, newGetACL, newSetACL,
		newCount, newKick, newRecipes, newWhoAmI, newConfig, newListQuota, newSetQuota, newDelQuota,
		newEphemerals, newReconfig,
	} {
		commands = append(commands, dataCommand(base, command))
	}
	return commands
}

// dataCommand makes a command with one session, and adds the flags that all such commands have.
func dataCommand(base maker, command func(*app) *cobra.Command) *cobra.Command {
	a := base()
	c := command(a)
	a.serverFlags(c)
	a.sessionFlags(c)
	a.outputFlag(c)
	addExitStatuses(c)
	if a.shell == nil {
		c.Flags().BoolVarP(&a.readOnly, "read-only", "r", false, "accept a server that has lost its quorum")
	}
	return c
}

// addExitStatuses adds the common exit statuses to the help of a command that lists none.
func addExitStatuses(c *cobra.Command) {
	if c.Long == "" {
		c.Long = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	if !strings.Contains(c.Long, "Exit status") {
		c.Long += "\n\nExit status: 0 done, 1 failed, 2 usage, 4 no connection."
	}
}

func newApp() *app {
	return &app{session: 10 * time.Second, output: "text", in: os.Stdin, out: os.Stdout, err: os.Stderr}
}

// Group makes c a command that only has subcommands. Without arguments it prints its help.
// An unknown subcommand is an error that suggests a similar name.
func Group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.SuggestionsMinimumDistance = 2 // the number of letters in which a suggestion may differ
	c.Args = noCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			return noCommand(c, args) // the flag belongs to the unknown command before it
		}
		return err
	})
	c.AddCommand(commands...)
	return c
}

// noCommand returns an error for arguments that are not the name of a command.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("no command %q, did you mean %s?", args[0], near[0])
	}
	return fmt.Errorf("no command %q", args[0])
}

// serverFlags adds the flags that choose the servers. In the interactive shell it adds none:
// commands use the shell's servers.
func (a *app) serverFlags(c *cobra.Command) {
	if a.shell != nil {
		c.PreRunE = func(c *cobra.Command, _ []string) error {
			a.out = c.OutOrStdout()
			return a.checkFlags()
		}
		return
	}
	f := c.Flags()
	f.StringVar(&a.servers, "server", "", "servers host:port[,host:port…][/chroot] (default $"+envServer+" or 127.0.0.1:2181)")
	f.DurationVar(&a.timeout, "connect-timeout", 10*time.Second, "how long to try to connect")
	a.accessFlags(c)
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		a.named = c.Flags().Changed("server")
		a.out = c.OutOrStdout()
		if err := a.checkFlags(); err != nil {
			return err
		}
		return a.loadAccess(c)
	}
}

// sessionFlags adds the flags of commands that open a session.
func (a *app) sessionFlags(c *cobra.Command) {
	if a.shell != nil {
		return
	}
	f := c.Flags()
	f.DurationVar(&a.session, "session-timeout", a.session, "session timeout to request")
	f.StringArrayVar(&a.auth, "auth", nil, "credential scheme:text, as in digest:user:password; may be repeated (default $"+envAuth+")")
	f.BoolVar(&a.verbose, "verbose", false, "log connection events to stderr")
}

func (a *app) outputFlag(c *cobra.Command) {
	c.Flags().StringVarP(&a.output, "output", "o", a.output, "text or json")
}

func (a *app) checkFlags() error {
	if a.output != "text" && a.output != "json" {
		return usagef("--output %q: want text or json", a.output)
	}
	if a.timeout <= 0 {
		return usagef("--connect-timeout %v: want more than 0", a.timeout)
	}
	if a.session < time.Millisecond {
		return usagef("--session-timeout %v: want 1ms or more", a.session)
	}
	if a.servers == "" {
		a.servers = os.Getenv(envServer)
	}
	if a.servers == "" {
		a.servers = "127.0.0.1:2181"
	}
	if env := os.Getenv(envAuth); len(a.auth) == 0 && env != "" {
		a.auth = []string{env}
	}
	return nil
}

func (a *app) json() bool { return a.output == "json" }

// options returns the client options for the flags.
func (a *app) options() (*zk.Options, error) {
	o := &zk.Options{SessionTimeout: a.session, ReadOnly: a.readOnly}
	for _, s := range a.auth {
		scheme, text, ok := strings.Cut(s, ":")
		if !ok {
			return nil, usagef("--auth or $%s: want scheme:text, as in digest:user:password", envAuth) // s may be a password
		}
		o.Auth = append(o.Auth, zk.Auth{Scheme: scheme, Data: []byte(text)})
	}
	o.Logger = a.logger()
	a.access.Apply(o)
	return o, nil
}

// logger returns where to log connection events: standard error with --verbose.
func (a *app) logger() *slog.Logger {
	if !a.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.err, nil))
}

// connect opens a session within the connect timeout.
func (a *app) connect(ctx context.Context) (*zk.Client, error) {
	o, err := a.options()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	c, err := zk.Connect(limited, a.servers, o)
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil, errors.Is(err, zk.ErrAuthFailed):
		return nil, cliError(err)
	case limited.Err() != nil:
		return nil, &StatusError{ExitNoConnection, fmt.Errorf("no connection within %v: %w; check that the server is running, or name other servers with --server", a.timeout, err)}
	}
	return nil, usagef("--server: %w", err)
}

// with runs f with a session and then closes it. f fails if there is no connection for the
// connect timeout: otherwise its next request would wait without limit.
func (a *app) with(cmd *cobra.Command, f func(context.Context, *zk.Client) error) error {
	return a.withoutTimeout(cmd, func(ctx context.Context, c *zk.Client) error {
		ctx, end := context.WithCancelCause(ctx)
		var watcher sync.WaitGroup
		defer watcher.Wait()
		defer end(nil)
		watcher.Go(func() { a.endWithoutConnection(ctx, c, end) })
		err := f(ctx, c)
		var lost *StatusError
		if err != nil && errors.As(context.Cause(ctx), &lost) {
			return lost
		}
		return err
	})
}

// withoutTimeout is like with, but for commands that may wait without limit. It rewords the errors of
// the server as ZooKeeper's CLI does.
func (a *app) withoutTimeout(cmd *cobra.Command, f func(context.Context, *zk.Client) error) error {
	ctx := cmd.Context()
	if a.shell != nil {
		return a.shell.use(ctx, f)
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	err = f(ctx, c)
	endSession(ctx, c)
	return requestError(err)
}

// requestError returns the error of a request with its exit status and in the words of ZooKeeper's CLI.
func requestError(err error) error {
	if errors.Is(err, zk.ErrConnectionLoss) {
		return &StatusError{ExitNoConnection, err}
	}
	return cliError(err)
}

// endWithoutConnection ends a context when the client has had no connection for the
// connect timeout.
func (a *app) endWithoutConnection(ctx context.Context, c *zk.Client, end context.CancelCauseFunc) {
	late := time.NewTimer(a.timeout)
	defer late.Stop()
	for s := c.State(); ctx.Err() == nil; {
		if s.State == zk.Connected || s.State == zk.ReadOnly {
			late.Stop()
			if s, _ = s.Next(ctx); ctx.Err() == nil {
				late.Reset(a.timeout)
			}
			continue
		}
		select {
		case <-s.Changed():
			s, _ = s.Next(ctx)
		case <-late.C:
			end(&StatusError{ExitNoConnection, fmt.Errorf("the connection was lost, and no server could be reached within %v: %w", a.timeout, zk.ErrConnectionLoss)})
		case <-ctx.Done():
		}
	}
}

// closeTimeout is how long a command waits until its session is closed.
const closeTimeout = 2 * time.Second

// endSession closes a session. A session that cannot be closed expires.
func endSession(ctx context.Context, c *zk.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	c.Close(ctx)
}

// cliError returns err in the words of ZooKeeper's CLI, which scripts match.
func cliError(err error) error {
	if errors.Is(err, wire.ErrSessionClosedRequireAuth) {
		return fmt.Errorf("%w: use --sasl-user, --jaas, --kerberos-principal, --auth or --tls-cert; the log of the server names the schemes that it accepts", err)
	}
	var op *zk.OpError
	if !errors.As(err, &op) {
		return err
	}
	if op.Op == wire.OpReconfig.String() {
		if err := reconfigError(op); err != nil {
			return err
		}
	}
	if errors.Is(err, zk.ErrNoChroot) {
		return fmt.Errorf("%w: create it, or correct the path after the servers", err)
	}
	for _, w := range []struct {
		code error
		text string
	}{
		{zk.ErrNoNode, "Node does not exist: %s"},
		{zk.ErrNodeExists, "Node already exists: %s"},
		{zk.ErrNotEmpty, "Node not empty: %s"},
		{zk.ErrBadVersion, "version No is not valid : %s"},
		{zk.ErrNoAuth, "Insufficient permission : %s"},
		{zk.ErrInvalidACL, "Acl is not valid : %s"},
		{zk.ErrNoChildrenForEphemerals, "Ephemerals cannot have children: %s"},
		{zk.ErrNotReadOnly, "Not a read-only call: %s"},
		{zk.ErrQuotaExceeded, "Quota has exceeded : %s"},
	} {
		if errors.Is(err, w.code) {
			return fmt.Errorf(w.text, op.Path)
		}
	}
	if errors.Is(err, zk.ErrUnsupported) && op.Op == wire.OpCreateTTL.String() {
		return fmt.Errorf("the server does not support TTLs (extendedTypesEnabled=true enables them): %w", err)
	}
	if problem := pathProblem(op.Path); problem != "" && errors.Is(err, zk.ErrBadArguments) {
		return usagef("%s: %s", problem, printable(op.Path))
	}
	if errors.Is(err, zk.ErrBadArguments) {
		return usagef("Arguments are not valid : %s (/ and /zookeeper cannot be changed or deleted)", op.Path)
	}
	return err
}

// argCount checks the number of arguments.
func argCount(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s, want %s", Count(len(args), "argument"), strings.TrimSpace(cmd.UseLine()))
		}
		return nil
	}
}
