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

	"bellwether/wire"
	"bellwether/zk"
)

// Environment names that stand in for flags.
const (
	envServer = "BELLWETHER_SERVER"
	envAuth   = "BELLWETHER_AUTH"
)

// app is what a command of the client side was asked.
type app struct {
	servers string
	named   bool          // by --server
	timeout time.Duration // how long to try to connect
	session time.Duration
	auth    []string
	output  string
	readOnly,
	verbose bool

	in       io.Reader
	out, err io.Writer
}

// Commands returns the commands of the client side.
func Commands() []*cobra.Command {
	commands := []*cobra.Command{newBarrier(), newBench(), newElect(), newElection(), newLock(), newQueue(), newSemaphore(), newStatus(), newWatch()}
	for _, command := range []func(*app) *cobra.Command{
		newGet, newSet, newCreate, newDelete, newDeleteAll, newLs, newStat, newSync, newGetACL, newSetACL,
		newCount, newKick, newRecipes, newWhoAmI, newConfig, newListQuota, newSetQuota, newDelQuota,
	} {
		commands = append(commands, dataCommand(command))
	}
	return commands
}

// dataCommand makes a command of one session with the flags that all of them have.
func dataCommand(command func(*app) *cobra.Command) *cobra.Command {
	a := newApp()
	c := command(a)
	a.serverFlags(c)
	a.sessionFlags(c)
	a.outputFlag(c)
	sayStatuses(c)
	c.Flags().BoolVarP(&a.readOnly, "read-only", "r", false, "accept a server that has lost its quorum")
	return c
}

// sayStatuses puts the exit statuses that all commands have into the help of one that has no others.
func sayStatuses(c *cobra.Command) {
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

// Group makes c a command that only holds others: alone it prints its help,
// and an unknown name below it is an error that suggests a near one.
func Group(c *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	c.SuggestionsMinimumDistance = 2 // letters that may be wrong
	c.Args = noCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			return noCommand(c, args) // the flag was meant for what stands before it
		}
		return err
	})
	c.AddCommand(commands...)
	return c
}

// noCommand is met with what no command's name is.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("no command %q, did you mean %s?", args[0], near[0])
	}
	return fmt.Errorf("no command %q", args[0])
}

// serverFlags gives a command the flags that say whom to ask.
func (a *app) serverFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.servers, "server", "", "servers host:port[,host:port…][/chroot] (default $"+envServer+" or 127.0.0.1:2181)")
	f.DurationVar(&a.timeout, "connect-timeout", 10*time.Second, "how long to try to connect")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		a.named = c.Flags().Changed("server")
		a.out = c.OutOrStdout()
		return a.checkFlags()
	}
}

// sessionFlags gives a command the flags of whoever opens a session.
func (a *app) sessionFlags(c *cobra.Command) {
	f := c.Flags()
	f.DurationVar(&a.session, "session-timeout", a.session, "session timeout to ask for")
	f.StringArrayVar(&a.auth, "auth", nil, "credential scheme:text, as in digest:user:password; may be repeated (default $"+envAuth+")")
	f.BoolVar(&a.verbose, "verbose", false, "say on stderr what the connection does")
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

// options are the client options that the flags ask for.
func (a *app) options() (*zk.Options, error) {
	o := &zk.Options{SessionTimeout: a.session, ReadOnly: a.readOnly}
	for _, s := range a.auth {
		scheme, text, ok := strings.Cut(s, ":")
		if !ok {
			return nil, usagef("--auth %q: want scheme:text, as in digest:user:password", s)
		}
		o.Auth = append(o.Auth, zk.Auth{Scheme: scheme, Data: []byte(text)})
	}
	o.Logger = a.logger()
	return o, nil
}

// logger is where connections are told of with --verbose.
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
		return nil, err
	case limited.Err() != nil:
		return nil, &StatusError{ExitNoConnection, fmt.Errorf("no connection within %v: %w; is the server running? --server names others", a.timeout, err)}
	}
	return nil, usagef("--server: %w", err)
}

// with runs f with a session that is closed behind it. It ends when there has been no
// connection for as long as one is tried for: what f asks for next would wait for ever.
func (a *app) with(cmd *cobra.Command, f func(context.Context, *zk.Client) error) error {
	return a.patient(cmd, func(ctx context.Context, c *zk.Client) error {
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

// patient is with for who waits, however long that takes. What the server said is put
// into the words of ZooKeeper's CLI.
func (a *app) patient(cmd *cobra.Command, f func(context.Context, *zk.Client) error) error {
	ctx := cmd.Context()
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	err = f(ctx, c)
	endSession(ctx, c)
	if errors.Is(err, zk.ErrConnectionLoss) {
		return &StatusError{ExitNoConnection, err}
	}
	return inWords(err)
}

// endWithoutConnection ends a context when the client has had no connection for too long.
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
			end(&StatusError{ExitNoConnection, fmt.Errorf("the connection was lost, and there is no other within %v: %w", a.timeout, zk.ErrConnectionLoss)})
		case <-ctx.Done():
		}
	}
}

// closeTime is how long a command waits for its session to be closed.
const closeTime = 2 * time.Second

// endSession closes a session; one that cannot be closed expires.
func endSession(ctx context.Context, c *zk.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	c.Close(ctx)
}

// inWords words the errors that a person meets; scripts match these texts.
func inWords(err error) error {
	var op *zk.OpError
	if !errors.As(err, &op) {
		return err
	}
	if errors.Is(err, zk.ErrNoChroot) {
		return fmt.Errorf("%w: create it, or correct the path behind the servers", err)
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
		return fmt.Errorf("the server does not take a TTL (extendedTypesEnabled=true): %w", err)
	}
	if errors.Is(err, zk.ErrBadArguments) {
		return usagef("Arguments are not valid : %s (paths begin with /, have no empty, . or .. part; / and /zookeeper stay)", op.Path)
	}
	return err
}

// argCount checks the number of arguments and words the complaint.
func argCount(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s, want %s", Count(len(args), "argument"), cmd.UseLine())
		}
		return nil
	}
}
